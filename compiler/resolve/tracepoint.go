package resolve

import (
	"strings"

	"github.com/cilium/ebpf/btf"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
)

const (
	// tracepointType is the prefix of the typedef of the signature of a
	// tracepoint's programs (include/trace/bpf_probe.h).
	tracepointType = "btf_trace_"
	// tracepointSymbol is the prefix of the function that calls BPF programs.
	tracepointSymbol = "__bpf_trace_"
)

// TracepointNames are the prefixes of the functions that the kernel generates for a
// tracepoint, and that have the names of its arguments. Tracepoints of one class share
// all of these but the first.
var TracepointNames = []string{"__traceiter_", tracepointSymbol, "trace_event_raw_event_", "perf_trace_"}

// findTracepoint binds the name of a tracepoint.
func findTracepoint(trace *spec.Trace, target *compiler.Target) (*compiler.Function, error) {
	name := trace.Func.Name
	types, module, err := tracepointTypes(target, trace)
	if err != nil {
		return nil, err
	}
	var typedef *btf.Typedef
	if types.TypeByName(tracepointType+name, &typedef) != nil {
		return nil, unknownTracepoint(trace, target, types)
	}
	proto := protoOf(typedef)
	if proto == nil {
		return nil, trace.Errorf(trace.Func.At, "tracepoint %s has no prototype in BTF", name)
	}
	named := &btf.FuncProto{Return: &btf.Void{}, Params: nameParams(types, name, proto.Params[1:])}
	sig, err := Place(named, target.Arch)
	if err != nil {
		return nil, trace.Errorf(trace.Func.At, "tracepoint %s has a signature that BTF does not describe: %v", spec.Subject(name), err)
	}
	return &compiler.Function{
		Name: name, Module: module, Tracepoint: true, Symbol: name, Types: types, Copies: 1, Signature: *sig,
		Type: &btf.Func{Name: name, Type: named},
	}, nil
}

// tracepointTypes returns the BTF that has a tracepoint: that of vmlinux or of
// a module.
func tracepointTypes(t *compiler.Target, trace *spec.Trace) (*btf.Spec, string, error) {
	var typedef *btf.Typedef
	if t.Kernel.TypeByName(tracepointType+trace.Func.Name, &typedef) == nil {
		return t.Kernel, "", nil
	}
	for _, s := range symbolsNamed(t, tracepointSymbol+trace.Func.Name) {
		if s.Module == "" || t.Module == nil {
			continue
		}
		types, err := t.Module(s.Module)
		if err != nil {
			return nil, "", trace.Errorf(trace.Func.At, "tracepoint %s is in module %s: %v", spec.Subject(trace.Func.Name), s.Module, err)
		}
		return types, s.Module, nil
	}
	return t.Kernel, "", nil
}

// protoOf returns the prototype of a tracepoint's programs. Its first parameter
// is not one of the tracepoint.
func protoOf(t *btf.Typedef) *btf.FuncProto {
	ptr, ok := btf.As[*btf.Pointer](t)
	if !ok {
		return nil
	}
	proto, ok := ptr.Target.(*btf.FuncProto)
	if !ok || len(proto.Params) == 0 {
		return nil
	}
	return proto
}

// nameParams copies the names of the arguments, which the typedef lacks, from
// one of the functions that the kernel generates for the tracepoint.
func nameParams(types *btf.Spec, name string, params []btf.FuncParam) []btf.FuncParam {
	named := append([]btf.FuncParam(nil), params...)
	for _, prefix := range TracepointNames {
		for _, f := range funcsByName(types, prefix+name) {
			proto, ok := f.Type.(*btf.FuncProto)
			if !ok || len(proto.Params) != len(params)+1 {
				continue
			}
			for i := range named {
				named[i].Name = proto.Params[i+1].Name
			}
			return named
		}
	}
	return named
}

// unnamed reports whether BTF lacks the names of the arguments.
func unnamed(fn *compiler.Function) bool {
	proto, ok := fn.Type.Type.(*btf.FuncProto) // it may have fewer arguments, see implSuffix
	return ok && len(proto.Params) > 0 && proto.Params[0].Name == ""
}

func unknownTracepoint(trace *spec.Trace, target *compiler.Target, types *btf.Spec) error {
	name := trace.Func.Name
	err := trace.Errorf(trace.Func.At, "there is no tracepoint %s in this kernel", name).WithKind(spec.NoTracepoint)
	if otherWord(err, target, trace) {
		return err
	}
	names := func(yield func(string) bool) {
		for t := range untilError(typeNames(target, types, TypedefKind)) {
			if n, ok := strings.CutPrefix(t, tracepointType); ok && !yield(n) {
				return
			}
		}
	}
	if near, ok := spec.Nearest(name, names); ok {
		if trace.Line != nil {
			return err.WithMeant("%s", near)
		}
		return err.WithMeant("tp:%s", near)
	}
	return err
}
