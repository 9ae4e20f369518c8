package codegen

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf/asm"
	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/compilertest"
	"github.com/ksnoop/ksnoop/compiler/resolve"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/compiler/spec/kprobe"
)

// call is one call of a function in a machine.
type call struct {
	fn     string   // name of the function; "" if there is only one
	args   []uint64 // words, in the order of the parameters
	result []uint64
	during func() // runs while the function runs
	caller uint64 // return address
}

// rig is a compiled unit in a machine.
type rig struct {
	t    testing.TB
	unit *generator
	*machine
	arch   *compiler.Arch                                       // architecture whose registers calls have
	stack  *kernelStack                                         // stack on which calls are made
	missed compiler.Kind                                        // kind whose programs the kernel skips
	skips  string                                               // another program that the kernel skips
	guard  func(a *compiler.Attachment, run func() error) error // runs a program, or skips it; nil if all run

	ran       int // number of instructions run
	cancelled map[cancelledCall]bool
	entered   map[string]uint64 // calls by function
	shownOf   map[*compiler.EventType]uint64
	wanted    map[int]*compiler.Counters // expected counters
}

// A cancelledCall is a call for which the kernel does not run the return side of a
// kprobe.session, because the program has returned 1 at the entry.
type cancelledCall struct {
	program string
	regs    uint64
}

// kernelStack is the stack of a task or of interrupts.
type kernelStack struct {
	addr  uint64
	bytes []byte
	depth int
}

// stackFrame is the size of a call's part of the stack: a context, then the
// frame.
const stackFrame = 1024

// newStack allocates a stack as the kernel does: at a multiple of its size.
func (r *rig) newStack() *kernelStack {
	r.next = (r.next + 2*resolve.DefaultStackSize) &^ (resolve.DefaultStackSize - 1)
	s := &kernelStack{bytes: make([]byte, resolve.DefaultStackSize)}
	s.addr = r.alloc(s.bytes)
	return s
}

// push allocates a call's part of the stack below the earlier ones.
func (s *kernelStack) push() (addr uint64, bytes []byte) {
	s.depth++
	top := len(s.bytes) - s.depth*stackFrame
	clear(s.bytes[top:][:stackFrame])
	return s.addr + uint64(top), s.bytes[top:][:stackFrame]
}

func newRig(t testing.TB, f compiler.Features, opts compiler.Options, specs ...string) *rig {
	return newRigOf(t, f, opts, resolve.Wishes{}, specs...)
}

func newRigOf(t testing.TB, f compiler.Features, opts compiler.Options, w resolve.Wishes, specs ...string) *rig {
	return newRigOn(t, compilertest.NewTarget(t, f), opts, w, specs...)
}

// newRigOn returns a rig with specs compiled for a target.
func newRigOn(t testing.TB, target *compiler.Target, opts compiler.Options, w resolve.Wishes, specs ...string) *rig {
	var traces []*spec.Trace
	for _, s := range specs {
		trace, err := kprobe.ParseAny(s)
		require.NoError(t, err)
		traces = append(traces, trace)
	}
	plan, err := resolve.All(traces, target, w)
	require.NoError(t, err)
	if opts.RingBytes == 0 {
		opts.RingBytes = 1 << 20
	}
	unit, err := generate(plan.Probes, opts)
	require.NoError(t, err)
	for name, ps := range unit.Collection.Programs {
		requireReachable(t, name, ps.Instructions)
	}
	return withMachine(t, unit, target.Arch)
}

// withMachine returns a rig that runs a unit in a machine.
func withMachine(t testing.TB, unit *generator, arch *compiler.Arch) *rig {
	r := &rig{t: t, unit: unit, arch: arch, machine: newMachine(unit.Unit), entered: map[string]uint64{}, cancelled: map[cancelledCall]bool{}, wanted: map[int]*compiler.Counters{}}
	r.readsUser = arch.ReadsUser
	for i := range unit.Events {
		r.wanted[i] = &compiler.Counters{}
	}
	r.newThread()
	return r
}

// parentPID is the id of the parent of all processes.
const parentPID = 5

// newTask allocates a task_struct.
func (r *rig) newTask(parent uint64, pid uint32) uint64 {
	name := le(uint64(0x746e65726170), uint64(0)) // "parent"
	return r.alloc(slices.Concat(le(uint64(0), r.stack.addr, uint64(0)), name, le(parent, pid, uint32(0))))
}

// newThread switches to another thread.
func (r *rig) newThread() {
	r.stack = r.newStack()
	r.task = r.newTask(r.newTask(0, parentPID), uint32(r.pidtid>>32))
	r.pidtid++
}

// inOtherThread returns a function that makes calls in another thread.
func (r *rig) inOtherThread(calls func()) func() {
	return func() {
		task, stack, pidtid := r.task, r.stack, r.pidtid
		r.newThread()
		calls()
		r.task, r.stack, r.pidtid = task, stack, pidtid
	}
}

// do makes a call: the entry programs run, then the return programs.
func (r *rig) do(c call) {
	r.t.Helper()
	r.enter(c)()
}

// enter runs the entry programs and returns a function that runs the return
// programs.
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
	putCallerFrame(r.arch, regs, sp)
	if r.arch == compiler.ARM64 {
		binary.LittleEndian.PutUint64(regs[compiler.ARM64.Registers["x30"]:], c.caller)
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
	r.runAll(fn, trampoline, probe, compiler.Fentry, compiler.Kprobe, compiler.KprobeMulti, compiler.KprobeSession, compiler.TpBTF)
	if r.arch == compiler.AMD64 {
		binary.LittleEndian.PutUint64(stack, someCode) // kretprobes replace the return address by their own
	}
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
		if !putCallerFrame(r.arch, regs, sp) || !hasMulti(r.unit.Attachments) {
			binary.LittleEndian.PutUint64(regs[r.arch.SP:], sp+popped(r.arch))
		}
		binary.LittleEndian.PutUint64(regs[r.arch.IP:], c.caller)
		r.atRet = true
		r.runAll(fn, trampoline, probe, compiler.Fexit, compiler.Kretprobe, compiler.KretprobeMulti, compiler.KprobeSession)
	}
}

// someCode is the address of an instruction.
const someCode = 0xffff_ffff_8100_1234

// putCallerFrame stores the frame pointer of the caller in registers, if the
// architecture has one.
func putCallerFrame(arch *compiler.Arch, regs []byte, sp uint64) bool {
	if arch.CallerFrame == 0 {
		return false
	}
	binary.LittleEndian.PutUint64(regs[arch.CallerFrame:], sp+32)
	return true
}

// hasMulti reports whether attachments of the multi kinds are among those given.
// Where the architecture has a caller's frame, their return probes get no stack
// pointer.
func hasMulti(all []compiler.Attachment) bool {
	return slices.ContainsFunc(all, func(at compiler.Attachment) bool { return at.Kind.Multi() })
}

// registersSize is the largest size of struct pt_regs.
const registersSize = 336

// popped returns the number of bytes that a function pops off the stack when it
// returns.
func popped(arch *compiler.Arch) uint64 {
	if arch == compiler.AMD64 {
		return 8
	}
	return 0
}

// function returns the traced function with a name.
func (r *rig) function(name string) *compiler.Function {
	for _, p := range r.unit.Probes() {
		if name == "" || p.Func.Name == name {
			return p.Func
		}
	}
	r.t.Fatalf("%s is not traced", name)
	return nil
}

func (r *rig) runAll(fn *compiler.Function, trampoline, regs uint64, kinds ...compiler.Kind) {
	r.t.Helper()
	require.NoError(r.t, r.runEach(fn, trampoline, regs, kinds...))
}

// runEach runs the programs of the given kinds that are attached to a function.
func (r *rig) runEach(fn *compiler.Function, trampoline, regs uint64, kinds ...compiler.Kind) error {
	for _, a := range r.unit.Attachments {
		ctx := regs
		if a.Kind.Trampoline() {
			ctx = trampoline
		}
		for _, place := range a.Places {
			if !slices.Contains(kinds, a.Kind) || a.Kind == r.missed || a.Program == r.skips || place.Symbol != fn.Symbol {
				continue
			}
			call := cancelledCall{a.Program, regs}
			if r.atRet && r.cancelled[call] {
				continue
			}
			r.cookie, r.words, r.ip = place.Cookie, uint64(fn.Words()), place.Addr
			r.typed.context(fn, a.Kind, ctx)
			r.stacks.program, r.stacks.leaf = 0, r.arch.RetAddr.Reg >= 0 && !r.atRet
			if a.Kind.Trampoline() {
				r.stacks.program, r.stacks.leaf = int(r.arch.ProgramFrames), false
			}
			r.jump = ""
			run := func() error { return r.runProgram(a.Program, ctx) }
			if r.guard != nil {
				if err := r.guard(&a, run); err != nil {
					return err
				}
			} else if err := run(); err != nil {
				return err
			}
			if r.jump != "" {
				require.Equal(r.t, a.JumpMap, r.jump)
				require.Equal(r.t, place.Jump, r.jumpTo)
				r.typed.context(fn, a.Kind, ctx)
				if err := r.runProgram(a.Jumps[r.jumpTo], ctx); err != nil {
					return err
				}
			} else if len(a.Jumps) > 0 {
				require.NotNil(r.t, place.Probe.Follow, "it does not jump")
			}
			if a.Kind == compiler.KprobeSession && !r.atRet && r.result == 1 {
				r.cancelled[call] = true
			}
		}
	}
	return nil
}

func (r *rig) runProgram(name string, ctx uint64) error {
	insns := r.unit.Collection.Programs[name].Instructions
	if err := r.run(insns, ctx); err != nil {
		return fmt.Errorf("%w\n%v", err, insns)
	}
	r.ran += r.steps
	return nil
}

// shown returns the records as lines such as "entry count=5 buf=fault".
func (r *rig) shown() []string {
	var lines []string
	for _, rec := range r.records {
		ev := r.unit.Events[binary.LittleEndian.Uint32(rec[compiler.HeaderEvent:])]
		var line strings.Builder
		line.WriteString(map[compiler.EventKind]string{compiler.EntryEvent: "entry", compiler.ReturnEvent: "return", compiler.CallEvent: "call"}[ev.Kind])
		for i, it := range ev.Items {
			line.WriteString(fmt.Sprintf(" %s=%s", it.Name, showSlot(rec, ev, i)))
		}
		lines = append(lines, line.String())
	}
	r.records = nil
	return lines
}

func showSlot(rec []byte, ev *compiler.EventType, i int) string {
	s, v := ev.Layout.Slot(i, len(rec)), ev.Items[i]
	head := word(rec[s.Off:][:8])
	switch compiler.Fault(rec[ev.Layout.Faults+i]) {
	case compiler.ValueFault:
		return fmt.Sprintf("fault(%#x)", head)
	case compiler.PointeeFault:
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

// requireReachable checks, as the verifier does, that there is no dead code and
// that no path runs off the end.
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
