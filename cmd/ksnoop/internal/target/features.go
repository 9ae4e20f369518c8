package target

import (
	"slices"

	"github.com/cilium/ebpf/btf"
	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/resolve"
)

// kernelFeatures are the features of kernels of these versions, as Debian builds
// them, oldest first. Those from 6.18 on preempt tasks lazily by default.
var kernelFeatures = []struct {
	name string
	compiler.Features
	kprobeSession bool // kprobe.session links
}{
	{"5.10", compiler.Features{
		Trampoline: true, TrampolineWords: 6, ReturnInstances: 1024,
	}, false},
	{"6.1", compiler.Features{
		Trampoline: true, TrampolineWords: 6, TrampolineStructs: true, CurrentTask: true, CountsSkipped: true, FuncArg: true, CompareExchange: true, RuntimeAlloc: true,
	}, false},
	{"6.12", compiler.Features{
		Trampoline: true, TrampolineWords: 12, TrampolineStructs: true, CurrentTask: true, CountsSkipped: true, FuncArg: true, CompareExchange: true, RuntimeAlloc: true,
		ConsistentBTF: true, KprobeMulti: true,
	}, true},
	{"6.18", compiler.Features{
		Trampoline: true, TrampolineWords: 12, TrampolineStructs: true, CurrentTask: true, CountsSkipped: true, FuncArg: true, CompareExchange: true, RuntimeAlloc: true,
		ConsistentBTF: true, KprobeMulti: true, ReturnsUnlimited: true, CancelRepeats: true, Preemptible: true,
	}, true},
	{"7.2", compiler.Features{
		Trampoline: true, TrampolineWords: 12, TrampolineStructs: true, CurrentTask: true, CountsSkipped: true, FuncArg: true, CompareExchange: true, RuntimeAlloc: true,
		ConsistentBTF: true, KprobeMulti: true, ReturnsUnlimited: true, Preemptible: true,
	}, true},
}

// onARM64 removes the features that kernels of these versions lack on arm64: fentry
// came with 6.4 and took 8 words until 6.16, kprobe.multi came with 6.14.
var onARM64 = map[string]func(f *compiler.Features){
	"5.10": func(f *compiler.Features) { f.Trampoline = false },
	"6.1":  func(f *compiler.Features) { f.Trampoline = false },
	"6.12": func(f *compiler.Features) { f.TrampolineWords, f.KprobeMulti = 8, false },
}

// FeaturesOf returns the features of kernels of a version, with these types on this
// architecture. The version is one of Versions, or "" for the newest one.
func FeaturesOf(version string, types *btf.Spec, arch *compiler.Arch) compiler.Features {
	i := len(kernelFeatures) - 1
	if version != "" {
		i = slices.Index(Versions(), version)
	}
	f := kernelFeatures[i].Features
	if lack := onARM64[kernelFeatures[i].name]; lack != nil && arch == compiler.ARM64 {
		lack(&f)
	}
	if kernelFeatures[i].kprobeSession && f.KprobeMulti {
		f.SessionIsReturn = resolve.TypeID(types, "bpf_session_is_return", (*btf.Func)(nil))
	}
	return f
}

// Versions returns the versions of kernels whose features are known, oldest first.
func Versions() (names []string) {
	for _, k := range kernelFeatures {
		names = append(names, k.name)
	}
	return names
}
