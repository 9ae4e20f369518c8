package compiler

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// call is one call of a function in a machine.
type call struct {
	args   []uint64 // words, in the order of the parameters
	result []uint64
	during func() // what happens in the function
}

// rig is a compiled unit in a machine.
type rig struct {
	t    testing.TB
	unit *Unit
	*machine
}

func newRig(t testing.TB, f Features, opts Options, specs ...string) *rig {
	target := newTarget(t, f)
	var probes []*Probe
	for _, s := range specs {
		probes = append(probes, mustResolve(t, target, s))
	}
	opts.Arch, opts.Features = target.Arch, f
	if opts.RingBytes == 0 {
		opts.RingBytes = 1 << 20
	}
	unit, err := Compile(probes, opts)
	require.NoError(t, err)
	return &rig{t, unit, newMachine(unit)}
}

// do makes a call: the entry programs run, then the return programs.
func (r *rig) do(c call) {
	r.t.Helper()
	r.enter(c)()
}

// enter runs the entry programs and is the function that returns.
func (r *rig) enter(c call) (leave func()) {
	r.t.Helper()
	fn := r.unit.Attachments[0].Probe.Func
	ctx := make([]byte, 8*(len(c.args)+2))
	for i, a := range c.args {
		binary.LittleEndian.PutUint64(ctx[8*i:], a)
	}
	stack := make([]byte, 512)
	regs := make([]byte, 168)
	sp := r.alloc(stack)
	binary.LittleEndian.PutUint64(regs[AMD64.SP:], sp)
	word := 0
	for _, p := range fn.Params {
		for _, w := range p.Words {
			if w.Reg >= 0 {
				binary.LittleEndian.PutUint64(regs[w.Reg:], c.args[word])
			} else {
				binary.LittleEndian.PutUint64(stack[w.Stack:], c.args[word])
			}
			word++
		}
	}
	trampoline, probe := r.alloc(ctx), r.alloc(regs)
	r.runAll(trampoline, probe, Fentry, Kprobe)
	return func() {
		r.t.Helper()
		if c.during != nil {
			c.during()
		}
		clear(regs) // registers do not survive the function
		for i, v := range c.result {
			binary.LittleEndian.PutUint64(ctx[8*(len(c.args)+i):], v)
			binary.LittleEndian.PutUint64(regs[AMD64.RetRegs[i]:], v)
		}
		binary.LittleEndian.PutUint64(regs[AMD64.SP:], sp+8)
		r.runAll(trampoline, probe, Fexit, Kretprobe)
	}
}

func (r *rig) runAll(trampoline, regs uint64, kinds ...Kind) {
	r.t.Helper()
	for _, a := range r.unit.Attachments {
		ctx := regs
		if a.Kind.trampoline() {
			ctx = trampoline
		}
		for _, k := range kinds {
			if a.Kind == k {
				insns := r.unit.Collection.Programs[a.Program].Instructions
				require.NoError(r.t, r.run(insns, ctx), "%v", insns)
			}
		}
	}
}

// shown decodes the records into lines such as "entry count=5 buf=fault".
func (r *rig) shown() []string {
	var lines []string
	for _, rec := range r.records {
		ev := r.unit.Events[binary.LittleEndian.Uint32(rec[HeaderEvent:])]
		var line strings.Builder
		line.WriteString(map[EventKind]string{EntryEvent: "entry", ReturnEvent: "return", CallEvent: "call"}[ev.Kind])
		for i, it := range ev.Items {
			line.WriteString(fmt.Sprintf(" %s=%s", it.Value.Name, showSlot(rec, ev, i)))
		}
		lines = append(lines, line.String())
	}
	r.records = nil
	return lines
}

func showSlot(rec []byte, ev *Event, i int) string {
	s, v := ev.Layout.Slots[i], ev.Items[i].Value
	head := word(rec[s.Off:][:8])
	switch Fault(rec[ev.Layout.Faults+i]) {
	case ValueFault:
		return fmt.Sprintf("fault(%#x)", head)
	case PointeeFault:
		return fmt.Sprintf("*fault(%#x)", head)
	}
	data := rec[s.Data:][:s.Cap]
	switch {
	case v.String:
		n := 0
		for data[n] != 0 {
			n++
		}
		return fmt.Sprintf("%q", data[:n])
	case v.Pointee != nil && v.Pointee == v.Type, v.Scalar == nil, v.Pointee != nil:
		if len(data) > 24 {
			return fmt.Sprintf("%d bytes of %d", len(data), s.Full)
		}
		return fmt.Sprintf("%x", data)
	case v.Scalar.Signed:
		return fmt.Sprint(int64(head<<(64-v.Scalar.Size*8)) >> (64 - v.Scalar.Size*8))
	}
	return fmt.Sprint(head << (64 - v.Scalar.Size*8) >> (64 - v.Scalar.Size*8))
}
