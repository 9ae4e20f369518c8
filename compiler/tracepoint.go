package compiler

import (
	"strings"

	"github.com/cilium/ebpf/btf"

	"github.com/ksnoop/ksnoop/compiler/spec"
)

const (
	// tracepointType is before a tracepoint's name in the name of the
	// typedef of its programs' signature (include/trace/bpf_probe.h).
	tracepointType = "btf_trace_"
	// tracepointSymbol is before it in the name of its function for BPF.
	tracepointSymbol = "__bpf_trace_"
)

// tracepointNames are before it in the names of the functions that the kernel
// makes for it.
var tracepointNames = []string{tracepointSymbol, "trace_event_raw_event_", "perf_trace_"}

// findTracepoint binds the name of a tracepoint.
func findTracepoint(trace *spec.Trace, target *Target) (*Function, error) {
	name := trace.Func.Name
	types, module, err := target.tracepointTypes(trace)
	if err != nil {
		return nil, err
	}
	var typedef *btf.Typedef
	if types.TypeByName(tracepointType+name, &typedef) != nil {
		return nil, unknownTracepoint(trace, target, types)
	}
	proto := protoOf(typedef)
	if proto == nil {
		return nil, spec.Errorf(trace.Text, trace.Func.At, "tracepoint %s has no prototype in BTF", name)
	}
	named := &btf.FuncProto{Return: &btf.Void{}, Params: nameParams(types, name, proto.Params[1:])}
	sig, err := place(named, target.Arch)
	if err != nil {
		return nil, spec.Errorf(trace.Text, trace.Func.At, "tracepoint %s has a signature that BTF does not describe: %v", name, err)
	}
	return &Function{
		Name: name, Module: module, Tracepoint: true, Symbol: name, types: types, Copies: 1, Signature: *sig,
		Type: &btf.Func{Name: name, Type: named},
	}, nil
}

// tracepointTypes is the BTF that a tracepoint is in: of vmlinux or a module.
func (t *Target) tracepointTypes(trace *spec.Trace) (*btf.Spec, string, error) {
	var typedef *btf.Typedef
	if t.Kernel.TypeByName(tracepointType+trace.Func.Name, &typedef) == nil {
		return t.Kernel, "", nil
	}
	for _, s := range t.symbols(tracepointSymbol + trace.Func.Name) {
		if s.Module == "" || t.Module == nil {
			continue
		}
		types, err := t.Module(s.Module)
		if err != nil {
			return nil, "", spec.Errorf(trace.Text, trace.Func.At, "tracepoint %s is in module %s: %v", trace.Func.Name, s.Module, err)
		}
		return types, s.Module, nil
	}
	return t.Kernel, "", nil
}

// protoOf is the prototype of a tracepoint's programs: its first parameter is
// not the tracepoint's.
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

// nameParams takes the names of the arguments, which the typedef lacks, from
// one of the functions that the kernel makes for the tracepoint.
func nameParams(types *btf.Spec, name string, params []btf.FuncParam) []btf.FuncParam {
	named := append([]btf.FuncParam(nil), params...)
	for _, prefix := range tracepointNames {
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

// unnamed says whether BTF has no names for the arguments.
func (fn *Function) unnamed() bool {
	return len(fn.Params) > 0 && fn.Type.Type.(*btf.FuncProto).Params[0].Name == ""
}

func unknownTracepoint(trace *spec.Trace, target *Target, types *btf.Spec) error {
	name := trace.Func.Name
	err := spec.Errorf(trace.Text, trace.Func.At, "there is no tracepoint %s in this kernel", name)
	names := func(yield func(string) bool) {
		for t := range readable(target.typeNames(types, "")) {
			if n, ok := strings.CutPrefix(t, tracepointType); ok && !yield(n) {
				return
			}
		}
	}
	if near, ok := spec.Nearest(name, names); ok {
		return err.WithHint("did you mean 'tp:%s'?", near)
	}
	return err
}
