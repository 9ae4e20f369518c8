package compiler

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf/asm"
	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/compiler/spec/kprobe"
)

// call is one call of a function in a machine.
type call struct {
	fn     string   // the function; "": the only one
	args   []uint64 // words, in the order of the parameters
	result []uint64
	during func() // what happens in the function
	caller uint64 // where it returns to
}

// rig is a compiled unit in a machine.
type rig struct {
	t    testing.TB
	unit *Unit
	*machine
	arch   *Arch        // whose registers calls have
	stack  *kernelStack // that calls are made on
	missed Kind         // the kernel skips programs of this kind

	entered map[string]uint64 // calls by function
	shownOf map[*Event]uint64
	tallied map[int]*Counters // what should be counted by now
}

// kernelStack is a task's stack, or that of interrupts.
type kernelStack struct {
	addr  uint64
	bytes []byte
	depth int
}

// stackFrame is what a call takes of a stack: a context, then the frame.
const stackFrame = 1024

// newStack makes a stack where the kernel would: at a multiple of its size.
func (r *rig) newStack() *kernelStack {
	r.next = (r.next + 2*defaultStackSize) &^ (defaultStackSize - 1)
	s := &kernelStack{bytes: make([]byte, defaultStackSize)}
	s.addr = r.alloc(s.bytes)
	return s
}

// push makes room for a call below the ones before.
func (s *kernelStack) push() (addr uint64, bytes []byte) {
	s.depth++
	top := len(s.bytes) - s.depth*stackFrame
	clear(s.bytes[top:][:stackFrame])
	return s.addr + uint64(top), s.bytes[top:][:stackFrame]
}

func newRig(t testing.TB, f Features, opts Options, specs ...string) *rig {
	return newRigOf(t, f, opts, Wishes{}, specs...)
}

func newRigOf(t testing.TB, f Features, opts Options, w Wishes, specs ...string) *rig {
	return newRigOn(t, newTarget(t, f), opts, w, specs...)
}

// newRigOn compiles specs for a target.
func newRigOn(t testing.TB, target *Target, opts Options, w Wishes, specs ...string) *rig {
	var traces []*spec.Trace
	for _, s := range specs {
		trace, err := kprobe.ParseAny(s)
		require.NoError(t, err)
		traces = append(traces, trace)
	}
	plan, err := ResolveAll(traces, target, w)
	require.NoError(t, err)
	opts.Arch, opts.Features = target.Arch, target.Features
	if opts.RingBytes == 0 {
		opts.RingBytes = 1 << 20
	}
	unit, err := Compile(plan.Probes, opts)
	require.NoError(t, err)
	for name, ps := range unit.Collection.Programs {
		requireReachable(t, name, ps.Instructions)
	}
	return withMachine(t, unit, target.Arch)
}

// withMachine puts a unit into a machine.
func withMachine(t testing.TB, unit *Unit, arch *Arch) *rig {
	r := &rig{t: t, unit: unit, arch: arch, machine: newMachine(unit), entered: map[string]uint64{}, tallied: map[int]*Counters{}}
	for i := range unit.Events {
		r.tallied[i] = &Counters{}
	}
	r.stack = r.newStack()
	r.task = r.alloc(le(uint64(0), r.stack.addr))
	return r
}

// do makes a call: the entry programs run, then the return programs.
func (r *rig) do(c call) {
	r.t.Helper()
	r.enter(c)()
}

// enter runs the entry programs and is the function that returns.
func (r *rig) enter(c call) (leave func()) {
	r.t.Helper()
	fn := r.function(c.fn)
	r.entered[fn.Name]++
	on := r.stack
	trampoline, frame := on.push()
	ctx, stack := frame[:stackFrame/2], frame[stackFrame/2:]
	for i, a := range c.args {
		binary.LittleEndian.PutUint64(ctx[8*i:], a)
	}
	sp := trampoline + stackFrame/2
	regs := make([]byte, registersSize)
	binary.LittleEndian.PutUint64(regs[r.arch.SP:], sp)
	if r.arch == ARM64 {
		binary.LittleEndian.PutUint64(regs[ARM64.Registers["x30"]:], c.caller)
	} else {
		binary.LittleEndian.PutUint64(stack, c.caller)
	}
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
	if fn.Untyped {
		for i, a := range c.args {
			if n := len(r.arch.ArgRegs); i < n {
				binary.LittleEndian.PutUint64(regs[r.arch.ArgRegs[i]:], a)
			} else {
				binary.LittleEndian.PutUint64(stack[r.arch.StackArg+8*(i-n):], a)
			}
		}
	}
	probe := r.alloc(regs)
	r.atRet = false
	r.runAll(fn, trampoline, probe, Fentry, Kprobe, KprobeMulti, Session, TpBTF)
	return func() {
		r.t.Helper()
		if c.during != nil {
			c.during()
		}
		on.depth--
		clear(regs) // registers do not survive the function
		for i, v := range c.result {
			binary.LittleEndian.PutUint64(ctx[8*(len(c.args)+i):], v)
			binary.LittleEndian.PutUint64(regs[r.arch.RetRegs[i]:], v)
		}
		binary.LittleEndian.PutUint64(regs[r.arch.SP:], sp+popped(r.arch))
		binary.LittleEndian.PutUint64(regs[r.arch.IP:], c.caller)
		if r.arch == AMD64 {
			clear(stack[:8]) // kretprobes put an address of their own there
		}
		r.atRet = true
		r.runAll(fn, trampoline, probe, Fexit, Kretprobe, KretprobeMulti, Session)
	}
}

// registersSize is how large struct pt_regs is where it is largest.
const registersSize = 336

// popped is how much of the stack a function takes away when it returns.
func popped(arch *Arch) uint64 {
	if arch == AMD64 {
		return 8
	}
	return 0
}

// function is the traced function of a name.
func (r *rig) function(name string) *Function {
	for _, p := range r.unit.Probes() {
		if name == "" || p.Func.Name == name {
			return p.Func
		}
	}
	r.t.Fatalf("%s is not traced", name)
	return nil
}

func (r *rig) runAll(fn *Function, trampoline, regs uint64, kinds ...Kind) {
	r.t.Helper()
	require.NoError(r.t, r.runEach(fn, trampoline, regs, kinds...))
}

// runEach runs the programs of some kinds that are on a function.
func (r *rig) runEach(fn *Function, trampoline, regs uint64, kinds ...Kind) error {
	for _, a := range r.unit.Attachments {
		ctx := regs
		if a.Kind.trampoline() {
			ctx = trampoline
		}
		for _, place := range a.Places {
			if !slices.Contains(kinds, a.Kind) || a.Kind == r.missed || place.Symbol != fn.Symbol {
				continue
			}
			r.cookie = place.Cookie
			insns := r.unit.Collection.Programs[a.Program].Instructions
			if err := r.run(insns, ctx); err != nil {
				return fmt.Errorf("%w\n%v", err, insns)
			}
		}
	}
	return nil
}

// shown decodes the records into lines such as "entry count=5 buf=fault".
func (r *rig) shown() []string {
	var lines []string
	for _, rec := range r.records {
		ev := r.unit.Events[binary.LittleEndian.Uint32(rec[HeaderEvent:])]
		var line strings.Builder
		line.WriteString(map[EventKind]string{EntryEvent: "entry", ReturnEvent: "return", CallEvent: "call"}[ev.Kind])
		for i, it := range ev.Items {
			line.WriteString(fmt.Sprintf(" %s=%s", it.Name, showSlot(rec, ev, i)))
		}
		lines = append(lines, line.String())
	}
	r.records = nil
	return lines
}

func showSlot(rec []byte, ev *Event, i int) string {
	s, v := ev.Layout.Slots[i], ev.Items[i]
	head := word(rec[s.Off:][:8])
	switch Fault(rec[ev.Layout.Faults+i]) {
	case ValueFault:
		return fmt.Sprintf("fault(%#x)", head)
	case PointeeFault:
		return fmt.Sprintf("*fault(%#x)", head)
	}
	data := rec[s.Data:][:s.Cap]
	switch {
	case v.IsText():
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

// requireReachable checks what the verifier does: that nothing is dead code,
// and that nothing runs off the end.
func requireReachable(t testing.TB, name string, insns asm.Instructions) {
	labels, err := insns.SymbolOffsets()
	require.NoError(t, err, "%s\n%v", name, insns)
	reached := make([]bool, len(insns))
	for todo := []int{0}; len(todo) > 0; {
		pc := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		require.Less(t, pc, len(insns), "%s runs off its end\n%v", name, insns)
		if reached[pc] {
			continue
		}
		reached[pc] = true
		in := insns[pc]
		jumps := in.OpCode.Class().IsJump() && in.OpCode.JumpOp() != asm.Call && in.OpCode.JumpOp() != asm.Exit
		if jumps {
			to, ok := labels[in.Reference()]
			require.True(t, ok, "%s jumps to %q\n%v", name, in.Reference(), insns)
			todo = append(todo, to)
		}
		if in.OpCode.JumpOp() != asm.Exit && in.OpCode.JumpOp() != asm.Ja || !in.OpCode.Class().IsJump() {
			todo = append(todo, pc+1)
		}
	}
	for pc, ok := range reached {
		require.True(t, ok, "%s: instruction %d is never reached\n%v", name, pc, insns)
	}
}
