package resolve

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cilium/ebpf/btf"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
)

const (
	// iteratorType is the prefix of the function whose parameters the programs of an
	// iterator get (DEFINE_BPF_ITER_FUNC in include/linux/bpf.h). Other functions
	// have this prefix, too.
	iteratorType = "bpf_iter_"
	// iterationType is the structure that the first parameter of each points to.
	iterationType = "bpf_iter_meta"
)

// iteratorProto returns the prototype of the programs of an iterator, or nil if a
// type is not that of an iterator.
func iteratorProto(t btf.Type) *btf.FuncProto {
	fn, ok := t.(*btf.Func)
	if !ok || !strings.HasPrefix(fn.Name, iteratorType) {
		return nil
	}
	proto, ok := fn.Type.(*btf.FuncProto)
	if !ok || len(proto.Params) < 2 {
		return nil
	}
	if _, number := btf.As[*btf.Int](proto.Return); !number {
		return nil
	}
	ptr, ok := btf.As[*btf.Pointer](proto.Params[0].Type)
	if !ok {
		return nil
	}
	if meta, ok := btf.As[*btf.Struct](ptr.Target); !ok || meta.Name != iterationType {
		return nil
	}
	return proto
}

// findIterator binds the name of an iterator.
func findIterator(trace *spec.Trace, target *compiler.Target) (*compiler.Function, error) {
	name := trace.Func.Name
	var proto *btf.FuncProto
	for _, t := range funcsByName(target.Kernel, iteratorType+name) {
		if p := iteratorProto(t); p != nil {
			proto = p
		}
	}
	if proto == nil {
		return nil, unknownIterator(trace, target)
	}
	// What a program returns is for the kernel alone.
	proto = &btf.FuncProto{Return: &btf.Void{}, Params: proto.Params}
	sig, err := Place(proto, target.Arch)
	if err != nil {
		return nil, trace.Errorf(trace.Func.At, "iterator %s has a signature that BTF does not describe: %v", spec.Subject(name), err)
	}
	return &compiler.Function{
		Name: name, Iterator: true, LastAgain: name == "ksym", Symbol: name, Types: target.Kernel, Copies: 1, Signature: *sig,
		Type: &btf.Func{Name: name, Type: proto},
	}, nil
}

// iterators lists the iterators that a glob matches, in alphabetical order.
func iterators(t *spec.Trace, target *compiler.Target) ([]string, error) {
	var names []string
	for name, err := range typeNames(target, target.Kernel, FuncKind) {
		if err != nil {
			return nil, fmt.Errorf("read the kernel's types: %w", err)
		}
		if name, ok := strings.CutPrefix(name, iteratorType); ok && spec.IsName(name) && spec.Matches(t.Func.Name, name) {
			names = append(names, name)
		}
	}
	names = slices.DeleteFunc(names, func(name string) bool {
		return !slices.ContainsFunc(funcsByName(target.Kernel, iteratorType+name), func(f *btf.Func) bool { return iteratorProto(f) != nil })
	})
	slices.Sort(names)
	return slices.Compact(names), nil
}

func unknownIterator(trace *spec.Trace, target *compiler.Target) error {
	err := trace.Errorf(trace.Func.At, "there is no iterator %s in this kernel", trace.Func.Name).WithKind(spec.NoIterator)
	all := *trace
	all.Func.Name = "*"
	names, listErr := iterators(&all, target)
	if listErr != nil || len(names) == 0 {
		return err
	}
	if near, ok := spec.Nearest(trace.Func.Name, slices.Values(names)); ok {
		return err.WithMeant("iter:%s", near)
	}
	return err.WithHint("it has %s", strings.Join(names, ", "))
}

// checkIterator refuses iterators over the elements of one map, such as bpf_map_elem:
// a spec cannot name a map.
func checkIterator(trace *spec.Trace, fn *compiler.Function) error {
	if len(fn.Params) > 2 && fn.Params[1].Name == "map" {
		return trace.Errorf(trace.Func.At, "%s goes over the elements of one map, and a spec cannot name a map", spec.Subject(fn.Name)).
			WithHint("iter:bpf_map lists the maps themselves")
	}
	return nil
}

// notInSpan refuses iterators as points of a span: their rows are not calls.
func notInSpan(t *spec.Trace) error {
	if t.Ending == nil {
		return nil
	}
	for _, point := range []*spec.Trace{t, t.Ending} {
		if point.Iterator {
			return t.Errorf(point.Func.At, "a span is between two calls, and %s is an iterator", point.Func.Name).
				WithHint("an iterator reads what is there now, in a spec of its own")
		}
	}
	return nil
}

// checkMixed refuses iterators and functions in one command.
func checkMixed(traces []*spec.Trace) error {
	isIterator := func(t *spec.Trace) bool { return t.Iterator }
	first := slices.IndexFunc(traces, isIterator)
	if first < 0 {
		return nil
	}
	other := slices.IndexFunc(traces, func(t *spec.Trace) bool { return !isIterator(t) })
	if other < 0 {
		return nil
	}
	t := traces[first]
	return t.Locate(t.Errorf(t.Func.At, "iterator %s ends when it has read all that is there, and %s waits for calls", t.Func.Name, traces[other].Target()).
		WithHint("use a command for each"))
}

// ownBuiltin returns the error for a builtin of an iterator, which runs in the thread
// that reads it.
func (b *binder) ownBuiltin(e *spec.Builtin) error {
	err := b.errorf(e.Span(), "%s is an iterator, which ksnoop runs itself: $%s would be that of ksnoop", b.subject(), e.Name.Name)
	if e.Name.Name == "duration" {
		err = b.errorf(e.Span(), "%s is an iterator, whose rows take no time", b.subject())
	}
	if b.param("task") != nil && e.Name.Name != "duration" {
		return err.WithHint("name members of the object: task->comm, task->tgid")
	}
	return err.WithHint("it has %s", strings.Join(paramNames(b.fn), ", "))
}
