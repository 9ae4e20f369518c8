package codegen

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/ksnoop/ksnoop/compiler"
)

// machine interprets generated programs against fake kernel memory.
type machine struct {
	memory
	maps    map[string]*ebpf.MapSpec
	hashes  map[string]map[string]uint64
	arrays  map[string]uint64 // address of the first element
	handles map[string]uint64 // map pointers
	names   map[uint64]string // names of maps by their pointers
	records [][]byte          // submitted
	onWrite func()            // called when one is submitted, or nil
	open    map[uint64][]byte // reserved
	task    uint64            // address of the current task_struct
	pidtid  uint64
	cpu     uint32
	uid     uint32
	comm    string
	stack   uint64 // number of the stack, or 0
	stacks  callStacks
	numbers map[string]uint64 // of stacks
	cgroup  uint64            // result of bpf_current_task_under_cgroup
	time    uint64
	tick    uint64 // by which the clock goes on at each reading, until the program ends
	// readings counts how often the program has read the clock.
	readings uint64
	cookie   uint64
	words    uint64 // number of argument words of the function
	ip       uint64 // address of the function
	jump     string // map of the last jump to another program, and the index
	jumpTo   int
	atRet    bool            // whether the return side of a kprobe.session runs
	result   uint64          // result of the program
	set      [11]bool        // which registers are set
	frame    uint64          // address of the program's stack
	written  [stackSize]bool // which bytes of the stack are written
	seqFile  uint64          // address of the file that an iterator writes to
	seq      []byte          // written to it
	seqRoom  int             // bytes from which on it is full
	full     bool            // whether the ring buffer is full
	large    uint64          // size of records that it has no room for; 0 if there are none
	strings  int             // how often a string was read
	// half is set if the upper half of R0 is not known. Before Linux 6.4, errors of
	// maps have 32 bits.
	half    bool
	failing *failing // helper that fails; nil if none
	// readsUser is set if the helpers for the kernel's memory read that of
	// processes, too.
	readsUser bool

	regs    [11]uint64
	steps   int // number of instructions run
	typed   typedPointers
	decoded map[*asm.Instruction][]instruction

	interrupt   func() // runs once
	interruptAt int    // before the instruction with this number, counted from now on
}

func newMachine(u *compiler.Unit) *machine {
	m := &machine{
		memory: memory{next: 0xffff_c900_0000_0000}, maps: u.Collection.Maps, hashes: map[string]map[string]uint64{},
		arrays: map[string]uint64{}, handles: map[string]uint64{}, names: map[uint64]string{}, open: map[uint64][]byte{},
		pidtid: 7<<32 | 7, cpu: 3, uid: 1000, comm: "worker", time: 1000, tick: 1, decoded: map[*asm.Instruction][]instruction{},
	}
	m.numbers = map[string]uint64{}
	m.stacks.kernel = []uint64{0xffff_ffff_8100_0010, 0xffff_ffff_8100_0120}
	m.frame = m.alloc(make([]byte, stackSize))
	for name, spec := range u.Collection.Maps {
		m.handles[name] = m.alloc(make([]byte, 8))
		m.names[m.handles[name]] = name
		switch spec.Type {
		case ebpf.Hash:
			m.hashes[name] = map[string]uint64{}
		case ebpf.Array, ebpf.PerCPUArray:
			b := make([]byte, spec.ValueSize*spec.MaxEntries)
			for _, kv := range spec.Contents {
				copy(b[kv.Key.(uint32)*spec.ValueSize:], kv.Value.([]byte))
			}
			m.arrays[name] = m.alloc(b)
		}
	}
	return m
}

func word(b []byte) uint64 {
	var x [8]byte
	copy(x[:], b)
	return binary.LittleEndian.Uint64(x[:])
}

// instruction is a decoded instruction.
type instruction struct {
	asm.Instruction
	class     asm.Class
	reference string
	to        int     // index of the jump target
	reads     [2]bool // whether it reads the destination and the source
	sets      bool    // whether it sets the destination
	ran       bool
}

// decode decodes each instruction once.
func (m *machine) decode(insns asm.Instructions) ([]instruction, error) {
	if d := m.decoded[&insns[0]]; d != nil {
		return d, nil
	}
	labels, err := insns.SymbolOffsets()
	if err != nil {
		return nil, err
	}
	d := make([]instruction, len(insns))
	for i, in := range insns {
		d[i] = instruction{Instruction: in, class: in.OpCode.Class(), reference: in.Reference()}
		at, ok := labels[d[i].reference]
		if in.OpCode.Class().IsJump() && d[i].reference != "" && !ok {
			return nil, fmt.Errorf("%d: jump to %q, which is nowhere", i, d[i].reference)
		}
		d[i].to = at
		d[i].registers()
	}
	m.decoded[&insns[0]] = d
	return d, nil
}

// registers determines which registers are read and set.
func (in *instruction) registers() {
	class, op := in.class, in.OpCode.ALUOp()
	jumps := class.IsJump() && in.OpCode.JumpOp() != asm.Call
	in.reads[0] = class.IsALU() && op != asm.Mov || class == asm.StXClass || class == asm.StClass ||
		jumps && in.OpCode.JumpOp() != asm.Exit && in.OpCode.JumpOp() != asm.Ja
	in.reads[1] = (class.IsALU() && op != asm.Swap || jumps) && in.OpCode.Source() == asm.RegSource ||
		class == asm.StXClass || class == asm.LdXClass
	in.sets = class.IsALU() || class == asm.LdXClass || class == asm.LdClass
}

// Results of step other than the index of the next instruction.
const (
	stepNext = -1
	stepExit = -2
)

// run executes a program with the context at an address.
func (m *machine) run(insns asm.Instructions, ctx uint64) error {
	program, err := m.decode(insns)
	if err != nil {
		return err
	}
	m.regs = [11]uint64{1: ctx, 10: m.frame + stackSize}
	m.set, m.written = [11]bool{1: true, 10: true}, [stackSize]bool{}
	m.steps, m.readings = 0, 0
	m.typed.begin()
	for pc := 0; pc < len(program); pc++ {
		if m.steps++; m.steps > 1e6 {
			return errors.New("does not end")
		}
		m.mayInterrupt()
		program[pc].ran = true
		to, err := m.step(&program[pc])
		switch {
		case err != nil:
			return fmt.Errorf("%d: %v: %w", pc, program[pc].Instruction, err)
		case to == stepExit:
			return m.exit()
		case to != stepNext:
			pc = to - 1
		}
	}
	return errors.New("fell off the end")
}

// mayInterrupt runs the interrupt if it is due.
func (m *machine) mayInterrupt() {
	if m.interruptAt--; m.interrupt == nil || m.interruptAt != 0 {
		return
	}
	saved := *m
	m.frame, m.open = m.alloc(make([]byte, stackSize)), map[uint64][]byte{}
	m.interrupt = nil
	saved.interrupt()
	m.regs, m.set, m.frame, m.written = saved.regs, saved.set, saved.frame, saved.written
	m.open, m.steps, m.readings, m.cookie, m.atRet, m.cpu = saved.open, saved.steps, saved.readings, saved.cookie, saved.atRet, saved.cpu
	m.ip, m.jump, m.jumpTo = saved.ip, saved.jump, saved.jumpTo
}

// exit checks the state at the end of a program.
func (m *machine) exit() error {
	m.result = m.regs[0]
	if !m.set[0] {
		return errors.New("R0 is not set at the end")
	}
	if len(m.open) > 0 {
		return errors.New("a reserved record was neither submitted nor discarded")
	}
	return nil
}

// step executes one instruction and returns the index of the next.
func (m *machine) step(in *instruction) (int, error) {
	r := &m.regs
	src := uint64(in.Constant)
	class := in.class
	if (class.IsJump() || class.IsALU()) && in.OpCode.Source() == asm.RegSource {
		src = r[in.Src]
	}
	if err := m.checkSet(in); err != nil {
		return stepNext, err
	}
	if err := m.checkTyped(in); err != nil {
		return stepNext, err
	}
	switch {
	case class.IsALU() && in.OpCode.ALUOp() == asm.Swap:
		v, err := swap(r[in.Dst], in.Constant)
		r[in.Dst] = v
		return stepNext, err
	case class.IsALU():
		v, err := alu(in.OpCode.ALUOp(), r[in.Dst], src, class == asm.ALU64Class)
		r[in.Dst] = v
		return stepNext, err
	case in.IsLoadFromMap():
		addr, ok := m.handles[in.reference]
		if in.Src == asm.PseudoMapValue {
			addr, ok = m.arrays[in.reference]
			addr += uint64(in.Constant) >> 32
		}
		if !ok {
			return stepNext, fmt.Errorf("no map %q", in.reference)
		}
		r[in.Dst] = addr
		return stepNext, nil
	case in.OpCode.IsDWordLoad():
		r[in.Dst] = uint64(in.Constant)
		return stepNext, nil
	case class == asm.LdXClass:
		addr := r[in.Src] + uint64(int64(in.Offset))
		b, err := m.at(addr, uint64(in.OpCode.Size().Sizeof()))
		if err == nil {
			err = m.checkWritten(addr, len(b))
		}
		if errors.Is(err, errFault) && int64(r[in.Src]) < 0 {
			r[in.Dst] = 0 // a typed load of a bad kernel address
			return stepNext, nil
		}
		r[in.Dst] = word(b)
		return stepNext, err
	case class == asm.StXClass || class == asm.StClass:
		return stepNext, m.store(in)
	case in.OpCode.JumpOp() == asm.Exit:
		return stepExit, nil
	case in.IsKfuncCall():
		m.regs[0] = 0
		if m.atRet {
			m.regs[0] = 1
		}
		m.clobber()
		return stepNext, nil
	case in.OpCode.JumpOp() == asm.Call:
		return stepNext, m.call(asm.BuiltinFunc(in.Constant))
	}
	a := r[in.Dst]
	if class == asm.Jump32Class {
		a, src = uint64(uint32(a)), uint64(uint32(src))
	}
	taken, err := jump(in.OpCode.JumpOp(), a, src)
	if taken {
		return in.to, err
	}
	return stepNext, err
}

func (m *machine) store(in *instruction) error {
	addr := m.regs[in.Dst] + uint64(int64(in.Offset))
	b, err := m.at(addr, uint64(in.OpCode.Size().Sizeof()))
	if err != nil {
		return err
	}
	v := uint64(in.Constant)
	if in.OpCode.Class() == asm.StXClass {
		v = m.regs[in.Src]
	}
	if in.OpCode.Mode() == asm.AtomicMode {
		var err error
		if v, err = m.atomic(in, v, word(b)); err != nil {
			return err
		}
	}
	m.write(addr, len(b))
	copy(b, binary.LittleEndian.AppendUint64(nil, v))
	return nil
}

// atomic returns what an atomic instruction stores in place of old.
func (m *machine) atomic(in *instruction, v, old uint64) (uint64, error) {
	switch op := in.OpCode.AtomicOp(); op {
	case asm.CmpXchg:
		if old != m.regs[0] {
			v = old
		}
		m.regs[0], m.set[0] = old, true
	case asm.Xchg:
		m.regs[in.Src] = old
	case asm.AddAtomic:
		v += old
	case asm.FetchAdd:
		v += old
		m.regs[in.Src] = old
	default:
		return 0, fmt.Errorf("%v is not modelled", op)
	}
	return v, nil
}

func (m *machine) call(fn asm.BuiltinFunc) error {
	if !m.set[asm.R1] && !withoutArguments[fn] {
		return fmt.Errorf("%v is called, and %v is not set", fn, asm.R1)
	}
	r0, failed := m.fails(fn)
	var err error
	if !failed {
		r0, err = m.helper(fn)
	}
	m.regs[0] = r0
	m.clobber()
	m.half = fn == asm.FnMapUpdateElem || fn == asm.FnMapDeleteElem
	m.set[0] = fn != asm.FnRingbufSubmit && fn != asm.FnRingbufDiscard // they return no value
	return err
}

// withoutArguments lists the helpers that have none.
var withoutArguments = map[asm.BuiltinFunc]bool{
	asm.FnKtimeGetNs: true, asm.FnGetSmpProcessorId: true, asm.FnGetCurrentPidTgid: true, asm.FnGetCurrentUidGid: true,
	asm.FnGetCurrentTask: true, asm.FnGetCurrentTaskBtf: true, asm.FnGetCurrentCgroupId: true,
}

// clobber overwrites the argument registers, as calls do.
func (m *machine) clobber() {
	m.set[0] = true
	for i := 1; i <= 5; i++ {
		m.regs[i] = 0xdead_dead_dead_dead
		m.set[i] = false
	}
	m.typed.clobber()
}

// checkSet refuses, as the verifier does, reads of registers that have not been
// set.
func (m *machine) checkSet(in *instruction) error {
	switch {
	case in.reads[0] && !m.set[in.Dst]:
		return fmt.Errorf("%v is not set", in.Dst)
	case in.reads[1] && !m.set[in.Src]:
		return fmt.Errorf("%v is not set", in.Src)
	case m.half && (in.reads[0] && in.Dst == asm.R0 || in.reads[1] && in.Src == asm.R0) && !in.readsHalf():
		return errors.New("the upper half of R0 is not known")
	}
	if in.sets && in.Dst == asm.R0 {
		m.half = false
	}
	if in.sets {
		m.set[in.Dst] = true
	}
	return nil
}

// readsHalf reports whether what the instruction does depends on the lower half of a
// register alone, or only on whether an error is one.
func (in *instruction) readsHalf() bool {
	switch op := in.OpCode.JumpOp(); in.class {
	case asm.ALUClass, asm.Jump32Class:
		return true
	case asm.JumpClass:
		return in.OpCode.Source() == asm.ImmSource && in.Constant == 0 && (op == asm.JEq || op == asm.JNE)
	}
	return false
}

// write records which bytes of the stack are written.
func (m *machine) write(addr uint64, n int) {
	if at := addr - m.frame; at < stackSize {
		for i := range m.written[at:][:n] {
			m.written[int(at)+i] = true
		}
	}
}

func (m *machine) checkWritten(addr uint64, n int) error {
	at := addr - m.frame
	if at >= stackSize {
		return nil
	}
	for i, ok := range m.written[at:][:n] {
		if !ok {
			return fmt.Errorf("the stack at %d was not written", int(at)+i-stackSize)
		}
	}
	return nil
}
