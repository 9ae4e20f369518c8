package compiler

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

// machine interprets generated programs against fake kernel memory.
type machine struct {
	memory
	maps    map[string]*ebpf.MapSpec
	hashes  map[string]map[string]uint64
	arrays  map[string]uint64 // address of the first element
	handles map[string]uint64 // map pointers
	names   map[uint64]string // of maps, by their pointers
	records [][]byte          // submitted
	open    map[uint64][]byte // reserved
	task    uint64            // address of the current one
	pidtid  uint64
	cpu     uint32
	uid     uint32
	comm    string
	cgroup  uint64 // what bpf_current_task_under_cgroup says
	time    uint64
	cookie  uint64
	atRet   bool   // the session's return side runs
	result  uint64 // of the program
	set     [11]bool
	frame   uint64          // address of the program's stack
	written [stackSize]bool // bytes of it
	full    bool            // the ring buffer
	regs    [11]uint64
	steps   int // instructions run
	decoded map[*asm.Instruction][]instruction
}

func newMachine(u *Unit) *machine {
	m := &machine{
		memory: memory{next: 0xffff_c900_0000_0000}, maps: u.Collection.Maps, hashes: map[string]map[string]uint64{},
		arrays: map[string]uint64{}, handles: map[string]uint64{}, names: map[uint64]string{}, open: map[uint64][]byte{},
		pidtid: 7<<32 | 8, cpu: 3, uid: 1000, comm: "worker", time: 1000, decoded: map[*asm.Instruction][]instruction{},
	}
	m.frame = m.alloc(make([]byte, stackSize))
	for name, spec := range u.Collection.Maps {
		m.handles[name] = m.alloc(make([]byte, 8))
		m.names[m.handles[name]] = name
		switch spec.Type {
		case ebpf.Hash:
			m.hashes[name] = map[string]uint64{}
		case ebpf.Array, ebpf.PerCPUArray:
			m.arrays[name] = m.alloc(make([]byte, spec.ValueSize*spec.MaxEntries))
		}
	}
	return m
}

func word(b []byte) uint64 {
	var x [8]byte
	copy(x[:], b)
	return binary.LittleEndian.Uint64(x[:])
}

// instruction is one with what a machine wants to know of it each time.
type instruction struct {
	asm.Instruction
	class     asm.Class
	reference string
	to        int     // where a jump goes
	reads     [2]bool // the destination, the source
	sets      bool    // the destination
	ran       bool
}

// decode looks at each instruction once.
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

// registers finds out which registers are read and set.
func (in *instruction) registers() {
	class, op := in.class, in.OpCode.ALUOp()
	jumps := class.IsJump() && in.OpCode.JumpOp() != asm.Call
	in.reads[0] = class.IsALU() && op != asm.Mov || class == asm.StXClass || class == asm.StClass ||
		jumps && in.OpCode.JumpOp() != asm.Exit && in.OpCode.JumpOp() != asm.Ja
	in.reads[1] = (class.IsALU() && op != asm.Swap || jumps) && in.OpCode.Source() == asm.RegSource ||
		class == asm.StXClass || class == asm.LdXClass
	in.sets = class.IsALU() || class == asm.LdXClass || class == asm.LdClass
}

// What step returns instead of the instruction to go on at.
const (
	stepNext = -1
	stepExit = -2
)

// run executes a program with a context of bytes at an address of its own.
func (m *machine) run(insns asm.Instructions, ctx uint64) error {
	program, err := m.decode(insns)
	if err != nil {
		return err
	}
	m.regs = [11]uint64{1: ctx, 10: m.frame + stackSize}
	m.set, m.written = [11]bool{1: true, 10: true}, [stackSize]bool{}
	m.steps = 0
	for pc := 0; pc < len(program); pc++ {
		if m.steps++; m.steps > 1e6 {
			return errors.New("does not end")
		}
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

// exit checks how a program ends.
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

// step executes one instruction and is the place to go on at.
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
		v += word(b)
	}
	m.write(addr, len(b))
	copy(b, binary.LittleEndian.AppendUint64(nil, v))
	return nil
}

func (m *machine) call(fn asm.BuiltinFunc) error {
	r0, err := m.helper(fn)
	m.regs[0] = r0
	m.clobber()
	m.set[0] = fn != asm.FnRingbufSubmit // it returns nothing
	return err
}

// clobber ruins the argument registers, as calls do.
func (m *machine) clobber() {
	m.set[0] = true
	for i := 1; i <= 5; i++ {
		m.regs[i] = 0xdead_dead_dead_dead
		m.set[i] = false
	}
}

// checkSet refuses what the verifier does: registers that nothing was put into.
func (m *machine) checkSet(in *instruction) error {
	switch {
	case in.reads[0] && !m.set[in.Dst]:
		return fmt.Errorf("%v is not set", in.Dst)
	case in.reads[1] && !m.set[in.Src]:
		return fmt.Errorf("%v is not set", in.Src)
	}
	if in.sets {
		m.set[in.Dst] = true
	}
	return nil
}

// write notes that bytes were written, if they are of the stack.
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
