package resolve

import (
	"fmt"
	"strings"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
)

// endings has the functions and tracepoints that end objects of a type, for the types
// whose objects may end without kfree or the like: their memory is kept for the next
// object, or belongs to a larger one. A kernel needs to have only one of them.
var endings = map[string][]string{
	"sk_buff": {"kfree_skbmem", "napi_skb_cache_put", "kfree_skb_add_bulk"},
	"file":    {"__fput"},
	"inode":   {"evict"},
	"dentry":  {"dentry_free"},
	"request": {"__blk_mq_free_request", "blk_mq_free_request"},
	"bio":     {"bio_free"},
	"page":    {"tp:mm_page_free"},
	"folio":   {"tp:mm_page_free"},
}

// EndFunctions returns the functions at which objects of some type end.
func EndFunctions() (all []string) {
	for _, names := range endings {
		for _, name := range names {
			if !strings.HasPrefix(name, "tp:") {
				all = append(all, name)
			}
		}
	}
	return all
}

// frees are the tracepoints at which memory is freed.
var frees = []string{"kfree", "kmem_cache_free"}

// end adds the probes that end objects.
func (w *follower) end() error {
	w.ends = endings[w.structure.Name]
	for _, name := range w.ends {
		if !strings.HasPrefix(name, "tp:") {
			_ = w.meet("", name, true, false, false) // a kernel needs to have only one of them
		}
	}
	return w.frees()
}

// frees adds the tracepoints at which the memory of objects is freed.
func (w *follower) frees() error {
	byRule := 0
	for _, p := range w.plan.Probes {
		if p.Follow != nil && p.Follow.Role == compiler.Ends {
			byRule++
		}
	}
	for _, name := range w.ends {
		if tracepoint, ok := strings.CutPrefix(name, "tp:"); ok {
			p, err := w.free(tracepoint, 0)
			if err != nil {
				return err
			}
			w.add(p, nil, false)
			return nil // pages are not freed by the other tracepoints
		}
	}
	if byRule == 0 && len(w.ends) > 0 {
		w.plan.Notes = append(w.plan.Notes, fmt.Sprintf("where a struct %s ends cannot be traced on this kernel: an object ends when its memory is freed", w.structure.Name))
	}
	for _, name := range frees {
		p, err := w.free(name, 1)
		if err != nil {
			return err
		}
		w.add(p, nil, false)
	}
	return nil
}

// free binds a tracepoint whose argument at index is the memory that is freed. The
// probe shows which code frees it, if the tracepoint tells that.
func (w *follower) free(name string, index int) (*compiler.Probe, error) {
	t := &spec.Trace{Text: w.trace.Text, Tracepoint: true, Func: spec.Ident{Name: name, At: w.trace.Func.At}, Items: []*spec.Item{}}
	fn, err := FindFunction(t, w.target)
	if err != nil {
		return nil, err
	}
	if len(fn.Params) <= index {
		return nil, fmt.Errorf("tracepoint %s has other arguments than expected", name)
	}
	p := &compiler.Probe{Trace: t, Asked: w.trace, Func: fn}
	b := newBuilder(p, w.target)
	argument := func(i int, format string) (*compiler.Value, error) {
		b.alias, b.object, b.side = "$freed", &fn.Params[i], compiler.AtEntry
		return b.value(&spec.Builtin{Name: spec.Ident{Name: "freed"}}, spec.Ident{Name: format})
	}
	object, err := argument(index, "")
	if err != nil {
		return nil, err
	}
	object.Pointee = nil
	f := &compiler.Follow{Role: compiler.Frees, Object: object, Type: w.structure}
	if len(fn.Params) > index+1 {
		if cache := pointedStructure(fn.Params[index+1].Type); cache != nil && cache.Name == "kmem_cache" {
			b.alias, b.object = "$cache", &fn.Params[index+1]
			size, err := b.value(&spec.Member{X: &spec.Builtin{Name: spec.Ident{Name: "cache"}}, Name: spec.Ident{Name: "object_size"}}, spec.Ident{})
			if err != nil {
				return nil, err
			}
			f.Size = size
		}
	}
	var shown []*compiler.Value
	if index > 0 {
		site, err := argument(0, "symbol")
		if err != nil {
			return nil, err
		}
		site.Name = compiler.FreedBy
		shown = append(shown, site)
	}
	if err := b.settlePoint(shown, nil, object); err != nil {
		return nil, err
	}
	p.Follow = f
	return p, nil
}
