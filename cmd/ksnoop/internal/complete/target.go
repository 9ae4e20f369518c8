package complete

import (
	"strings"

	"github.com/ksnoop/ksnoop/btfdump/rawbtf"
	"github.com/ksnoop/ksnoop/compiler/resolve"
	"github.com/ksnoop/ksnoop/compiler/spec"
)

// target completes the function, or the tracepoint, that begins at at.
func (c *specWord) target(at int, bare bool) {
	c.at = at
	more := []string{"("}
	if bare {
		more = nil
	}
	module, name, ok := strings.Cut(c.word[at:], ":")
	if ok {
		c.at += len(module) + 1
	}
	switch {
	case module == "tp" && ok:
		c.tracepoints(name, more)
	case module == "iter" && ok:
		c.iterators(name, more)
	case ok && module == "vmlinux":
		c.functions(c.source.kernel(), name, more)
	case ok:
		c.functions(c.source.module(module), name, more)
	default:
		c.functions(c.source.kernel(), module, more)
		c.prefixes(module, more)
	}
}

// prefixes completes the text before a colon, and functions of modules if no
// function of vmlinux matches.
func (c *specWord) prefixes(name string, more []string) {
	none := len(c.found) == 0 && name != ""
	c.add("tp:", "tracepoints")
	c.add("iter:", "iterators")
	for _, m := range c.source.modules() {
		if name != "" {
			c.add(m+":", "module")
		}
		if none {
			c.functions(c.source.module(m), name, more)
		}
	}
}

func (c *specWord) functions(types *rawbtf.Types, prefix string, more []string) {
	if types == nil {
		return
	}
	last := ""
	for _, name := range types.Named(prefix, rawbtf.Func) {
		if name != last && spec.IsName(name) && !strings.HasPrefix(name, "__bpf_trace_") {
			c.add(name, "", more...)
		}
		last = name
	}
}

// tracepointType is the prefix of a tracepoint's name in the name of its type.
const tracepointType = "btf_trace_"

func (c *specWord) tracepoints(prefix string, more []string) {
	for _, types := range c.all() {
		for _, name := range types.Named(tracepointType+prefix, rawbtf.Typedef) {
			c.add(strings.TrimPrefix(name, tracepointType), "", more...)
		}
	}
}

// iteratorType precedes an iterator's name in the name of the function that has its
// parameters.
const iteratorType = "bpf_iter_"

func (c *specWord) iterators(prefix string, more []string) {
	types := c.source.kernel()
	if types == nil {
		return
	}
	for _, name := range types.Named(iteratorType+prefix, rawbtf.Func) {
		if iterator := strings.TrimPrefix(name, iteratorType); c.iterator(iterator) != nil {
			c.add(iterator, "", more...)
		}
	}
}

// iterator returns the values of an iterator, or nil if there is none of that name.
// Other functions with the prefix do not return a number, or do not begin with the
// parameter about the iteration.
func (c *specWord) iterator(name string) *call {
	types := c.source.kernel()
	fn := functionCall(types, iteratorType+name)
	if fn == nil || len(fn.params) < 2 || types.Kind(fn.result) != rawbtf.Int || types.Name(types.Target(fn.params[0].Type)) != iteratorType+"meta" {
		return nil
	}
	fn.result, fn.iterator = 0, true
	return fn
}

// all returns the types of the kernel and of all modules.
func (c *specWord) all() []*rawbtf.Types {
	all := []*rawbtf.Types{c.source.kernel()}
	for _, m := range c.source.modules() {
		if types := c.source.module(m); types != nil {
			all = append(all, types)
		}
	}
	return all
}

// call returns the values of a target, or nil if there is no such target.
func (c *specWord) call(target string) *call {
	module, name, ok := strings.Cut(target, ":")
	if !ok {
		name = target
	}
	if name == "" || spec.IsGlob(name) {
		return nil
	}
	switch {
	case module == "tp" && ok:
		return c.tracepoint(name)
	case module == "iter" && ok:
		return c.iterator(name)
	case ok && module != "vmlinux":
		return functionCall(c.source.module(module), name)
	}
	if fn := functionCall(c.source.kernel(), name); fn != nil {
		return fn
	}
	for _, m := range c.source.modules() {
		if fn := functionCall(c.source.module(m), name); fn != nil {
			return fn
		}
	}
	return nil
}

func functionCall(types *rawbtf.Types, name string) *call {
	if types == nil {
		return nil
	}
	id := types.Find(name, rawbtf.Func)
	if id == 0 {
		return nil
	}
	proto := types.Target(id)
	return &call{types: types, params: types.Fields(proto), result: types.Target(proto)}
}

// tracepoint takes the names of the arguments from a function, as the type has no
// names.
func (c *specWord) tracepoint(name string) *call {
	for _, types := range c.all() {
		if types.Find(tracepointType+name, rawbtf.Typedef) == 0 {
			continue
		}
		for _, prefix := range resolve.TracepointNames {
			if fn := functionCall(types, prefix+name); fn != nil && len(fn.params) > 0 {
				return &call{types: types, params: fn.params[1:], tracepoint: true}
			}
		}
		proto := types.Fields(types.Target(types.Underlying(types.Find(tracepointType+name, rawbtf.Typedef))))
		return &call{types: types, params: proto[min(1, len(proto)):], tracepoint: true}
	}
	return nil
}
