package main

import (
	"slices"

	"github.com/cilium/ebpf/btf"

	"github.com/ksnoop/ksnoop/compiler"
)

// kernelFeatures is what kernels of these versions can do, as Debian builds
// them, oldest first. Those from 6.18 on preempt tasks lazily by default.
var kernelFeatures = []struct {
	name string
	compiler.Features
	sessions bool // kprobe.session links
}{
	{"5.10", compiler.Features{
		Trampoline: true, TrampolineWords: 6, ReturnInstances: 1024,
	}, false},
	{"6.1", compiler.Features{
		Trampoline: true, TrampolineWords: 6, TrampolineStructs: true, RuntimeAlloc: true,
	}, false},
	{"6.12", compiler.Features{
		Trampoline: true, TrampolineWords: 12, TrampolineStructs: true, RuntimeAlloc: true,
		ConsistentBTF: true, KprobeMulti: true,
	}, true},
	{"6.18", compiler.Features{
		Trampoline: true, TrampolineWords: 12, TrampolineStructs: true, RuntimeAlloc: true,
		ConsistentBTF: true, KprobeMulti: true, ReturnsUnlimited: true, Preemptible: true,
	}, true},
	{"7.2", compiler.Features{
		Trampoline: true, TrampolineWords: 12, TrampolineStructs: true, RuntimeAlloc: true,
		ConsistentBTF: true, KprobeMulti: true, ReturnsUnlimited: true, Preemptible: true,
	}, true},
}

// featuresOf is what kernels of a version can do, with these types; "" is the
// newest one.
func featuresOf(version string, types *btf.Spec) (compiler.Features, error) {
	var names []string
	for _, k := range kernelFeatures {
		names = append(names, k.name)
	}
	i := slices.Index(names, version)
	if version == "" {
		i = len(names) - 1
	}
	if i < 0 {
		return compiler.Features{}, usagef("--kernel-features is %q: it must be %s", version, orList(names))
	}
	f := kernelFeatures[i].Features
	if kernelFeatures[i].sessions {
		f.SessionIsReturn = functionID(types, "bpf_session_is_return")
	}
	return f, nil
}

// functionID is the number of a function in BTF; 0: it is not there.
func functionID(types *btf.Spec, name string) btf.TypeID {
	var f *btf.Func
	if types.TypeByName(name, &f) != nil {
		return 0
	}
	id, err := types.TypeID(f)
	if err != nil {
		return 0
	}
	return id
}
