//go:build linux

package e2e

import (
	"fmt"
	"testing"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/e2e/guest"
	"github.com/ksnoop/ksnoop/kallsyms"
	"github.com/ksnoop/ksnoop/runtime"
)

// runtimeTests attach programs made by hand: what package runtime does with
// every attach kind.
var runtimeTests = []struct {
	name string
	test func(*testing.T)
}{
	{"features", testRuntimeFeatures},
	{"kinds", testRuntimeKinds},
	{"module", testRuntimeModule},
	{"tracepoint", testRuntimeTracepoint},
	{"badplaces", testRuntimeBadPlaces},
	{"leftout", testRuntimeLeftOut},
	{"returninstances", testRuntimeReturnInstances},
	{"user", testRuntimeUser},
	{"stale", testRuntimeStale},
	{"missed", testRuntimeMissed},
	{"verifier", testRuntimeVerifier},
	{"hooks", testRuntimeHooks},
}

func testRuntime(t *testing.T, _ *kernel) {
	for _, test := range runtimeTests {
		t.Run(test.name, test.test)
	}
}

// The functions that the programs are put on: system calls that nothing else
// makes.
const (
	getpgid     = "__x64_sys_getpgid"
	getsid      = "__x64_sys_getsid"
	getpriority = "__x64_sys_getpriority"
)

func callKernel(name string, times int) {
	number := map[string]uintptr{getpgid: unix.SYS_GETPGID, getsid: unix.SYS_GETSID, getpriority: unix.SYS_GETPRIORITY}[name]
	for range times {
		unix.Syscall(number, 0, 0, 0)
	}
}

// openGuest describes the guest's kernel, with the symbols of the functions.
func openGuest(t *testing.T) (*runtime.Kernel, *compiler.Target) {
	if !guest.Inside() {
		t.Skip("runs inside a virtual machine, see TestMatrix")
	}
	kernel, err := runtime.OpenKernel()
	require.NoError(t, err)
	target, err := kernel.Target(kallsyms.Wanted{Keep: func(name string) bool {
		return name == getpgid || name == getsid || name == getpriority
	}})
	require.NoError(t, err)
	return kernel, target
}

// A counter is a unit whose programs count their runs, as records lost.
type counter struct{ *compiler.Unit }

func newCounter() counter {
	return counter{&compiler.Unit{Collection: &ebpf.CollectionSpec{
		Maps: map[string]*ebpf.MapSpec{
			compiler.EventsMap: {Name: compiler.EventsMap, Type: ebpf.RingBuf, MaxEntries: 4096},
			compiler.CountersMap: {
				Name: compiler.CountersMap, Type: ebpf.PerCPUArray, KeySize: 4,
				ValueSize: uint32(unsafe.Sizeof(compiler.Counters{})), MaxEntries: 16,
			},
		},
		Programs: map[string]*ebpf.ProgramSpec{},
	}}}
}

func (c counter) probe(name string) *compiler.Probe {
	p := &compiler.Probe{Func: &compiler.Function{Name: name}}
	c.Events = append(c.Events, &compiler.Event{Probe: p})
	return p
}

var programTypes = map[compiler.Kind]struct {
	program ebpf.ProgramType
	attach  ebpf.AttachType
}{
	compiler.Fentry:         {ebpf.Tracing, ebpf.AttachTraceFEntry},
	compiler.Fexit:          {ebpf.Tracing, ebpf.AttachTraceFExit},
	compiler.TpBTF:          {ebpf.Tracing, ebpf.AttachTraceRawTp},
	compiler.Kprobe:         {ebpf.Kprobe, ebpf.AttachNone},
	compiler.Kretprobe:      {ebpf.Kprobe, ebpf.AttachNone},
	compiler.KprobeMulti:    {ebpf.Kprobe, ebpf.AttachTraceKprobeMulti},
	compiler.KretprobeMulti: {ebpf.Kprobe, ebpf.AttachTraceKprobeMulti},
	compiler.Session:        {ebpf.Kprobe, ebpf.AttachTraceKprobeSession},
}

// attach adds a program of a kind at places. It counts for the probe whose
// number is the place's cookie, or the first place's if the kind has no cookies.
func (c counter) attach(kind compiler.Kind, instances int, places ...compiler.Place) {
	number := asm.Mov.Imm(asm.R0, int32(places[0].Cookie))
	if kind.Multi() {
		number = asm.FnGetAttachCookie.Call()
	}
	types := programTypes[kind]
	spec := &ebpf.ProgramSpec{Name: "count", Type: types.program, AttachType: types.attach, License: "Dual MIT/GPL", Instructions: asm.Instructions{
		number,
		asm.StoreMem(asm.RFP, -4, asm.R0, asm.Word),
		asm.LoadMapPtr(asm.R1, 0).WithReference(compiler.CountersMap),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, -4),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "exit"),
		asm.Mov.Imm(asm.R1, 1),
		asm.AddAtomic.Mem(asm.R0, asm.R1, asm.DWord, 0),
		asm.Mov.Imm(asm.R0, 0).WithSymbol("exit"),
		asm.Return(),
	}}
	if types.program == ebpf.Tracing {
		spec.AttachTo = places[0].Symbol
	}
	name := fmt.Sprintf("%s %d", kind, len(c.Attachments))
	c.Collection.Programs[name] = spec
	c.Attachments = append(c.Attachments, compiler.Attachment{Program: name, Kind: kind, Places: places, ReturnInstances: instances})
}

// hits reads the runs, by the probes' numbers.
func hits(t *testing.T, s *runtime.Session) []uint64 {
	counters, err := s.Tallies()
	require.NoError(t, err)
	var counts []uint64
	for _, c := range counters {
		counts = append(counts, c.Lost)
	}
	return counts
}

func load(t *testing.T, c counter, k *runtime.Kernel) *runtime.Session {
	s, err := runtime.Load(c.Unit, k)
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

// supports says whether the kernel has a kind, by what its features say.
func supports(f compiler.Features, kind compiler.Kind) bool {
	switch kind {
	case compiler.KprobeMulti, compiler.KretprobeMulti:
		return f.KprobeMulti
	case compiler.Session:
		return f.SessionIsReturn != 0
	}
	return true
}
