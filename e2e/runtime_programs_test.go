//go:build linux

package e2e

import (
	"fmt"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/runtime"
)

// runtimeTests lists tests of package runtime with handwritten programs of every
// attach kind.
var runtimeTests = []struct {
	name string
	test func(*testing.T, *kernel)
}{
	{"features", testRuntimeFeatures},
	{"kinds", testRuntimeKinds},
	{"module", testRuntimeModule},
	{"reloaded", testRuntimeReloaded},
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

func testRuntime(t *testing.T, k *kernel) {
	for _, test := range runtimeTests {
		t.Run(test.name, func(t *testing.T) { test.test(t, k) })
	}
}

// The functions that the programs are attached to: system calls that no other
// process makes.
const (
	getpgid     = syscallPrefix + "sys_getpgid"
	getsid      = syscallPrefix + "sys_getsid"
	getpriority = syscallPrefix + "sys_getpriority"
)

func callKernel(name string, times int) {
	number := map[string]uintptr{getpgid: unix.SYS_GETPGID, getsid: unix.SYS_GETSID, getpriority: unix.SYS_GETPRIORITY}[name]
	for range times {
		unix.Syscall(number, 0, 0, 0)
	}
}

// A counter is a unit whose programs count their runs, as lost records.
type counter struct{ *compiler.Unit }

func newCounter() counter { return newCounters(16) }

// newCounters returns a counter with room for the given number of probes.
func newCounters(probes int) counter {
	layout := compiler.CounterLayout{Events: probes}
	return counter{&compiler.Unit{Counters: layout, Collection: &ebpf.CollectionSpec{
		Maps: map[string]*ebpf.MapSpec{
			compiler.EventsMap:   {Name: compiler.EventsMap, Type: ebpf.RingBuf, MaxEntries: 4096},
			compiler.CountersMap: layout.Map(),
		},
		Programs: map[string]*ebpf.ProgramSpec{},
	}}}
}

func (c counter) probe(name string) *compiler.Probe {
	p := &compiler.Probe{Func: &compiler.Function{Name: name}}
	c.Events = append(c.Events, &compiler.EventType{Number: len(c.Events), Probe: p})
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
	compiler.KprobeSession:  {ebpf.Kprobe, ebpf.AttachTraceKprobeSession},
}

// attach adds a program of a kind at places. It counts for the probe whose
// number is the place's cookie, or that of the first place if the kind has no
// cookies.
func (c counter) attach(kind compiler.Kind, instances int, places ...compiler.Place) {
	number := asm.Mov.Imm(asm.R0, int32(places[0].Cookie))
	if kind.Multi() {
		number = asm.FnGetAttachCookie.Call()
	}
	types := programTypes[kind]
	spec := &ebpf.ProgramSpec{Name: "count", Type: types.program, AttachType: types.attach, License: "Dual MIT/GPL", Instructions: asm.Instructions{
		number,
		asm.JGE.Imm(asm.R0, int32(c.Counters.Events), "exit"),
		asm.Mul.Imm(asm.R0, int32(c.Counters.At(1, 0)-c.Counters.At(0, 0))),
		asm.LoadMapValue(asm.R1, 0, uint32(c.Counters.At(0, 0))).WithReference(compiler.CountersMap),
		asm.Add.Reg(asm.R1, asm.R0),
		asm.Mov.Imm(asm.R0, 1),
		asm.AddAtomic.Mem(asm.R1, asm.R0, asm.DWord, 0),
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

// hits returns the number of runs of each probe.
func hits(t *testing.T, s *runtime.Session) []uint64 {
	counters, err := s.EventCounts()
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

// supports reports whether the kernel has a kind, according to its features.
func supports(f compiler.Features, kind compiler.Kind) bool {
	switch kind {
	case compiler.KprobeMulti, compiler.KretprobeMulti:
		return f.KprobeMulti
	case compiler.KprobeSession:
		return f.SessionIsReturn != 0
	case compiler.Fentry, compiler.Fexit:
		return f.Trampoline
	}
	return true
}
