package compiler

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

// machine interprets generated programs against fake kernel memory.
type machine struct {
	maps    map[string]*ebpf.MapSpec
	memory  map[uint64][]byte // regions by address
	hashes  map[string]map[uint64]uint64
	arrays  map[string]uint64 // address of the first element
	handles map[uint64]string // map pointers
	records [][]byte          // submitted
	open    map[uint64][]byte // reserved
	pidtid  uint64
	time    uint64
	full    bool // the ring buffer
	next    uint64
	regs    [11]uint64
	steps   int // instructions run
}

func newMachine(u *Unit) *machine {
	m := &machine{
		maps: u.Collection.Maps, memory: map[uint64][]byte{}, hashes: map[string]map[uint64]uint64{},
		arrays: map[string]uint64{}, handles: map[uint64]string{}, open: map[uint64][]byte{},
		pidtid: 7<<32 | 8, time: 1000, next: 0xffff_c900_0000_0000,
	}
	for name, spec := range u.Collection.Maps {
		m.handles[m.alloc(make([]byte, 8))] = name
		switch spec.Type {
		case ebpf.Hash:
			m.hashes[name] = map[uint64]uint64{}
		case ebpf.Array, ebpf.PerCPUArray:
			m.arrays[name] = m.alloc(make([]byte, spec.ValueSize*spec.MaxEntries))
		}
	}
	return m
}

// alloc puts b into memory and is its address. No two regions touch.
func (m *machine) alloc(b []byte) uint64 {
	addr := m.next
	m.memory[addr] = b
	m.next += uint64(len(b)+8192) &^ 4095
	return addr
}

var errFault = errors.New("no memory there")

func (m *machine) at(addr, n uint64) ([]byte, error) {
	for base, b := range m.memory {
		if addr >= base && addr-base+n <= uint64(len(b)) {
			return b[addr-base:][:n], nil
		}
	}
	return nil, fmt.Errorf("%#x+%d: %w", addr, n, errFault)
}

func word(b []byte) uint64 {
	var x [8]byte
	copy(x[:], b)
	return binary.LittleEndian.Uint64(x[:])
}

// run executes a program with a context of bytes at an address of its own.
func (m *machine) run(insns asm.Instructions, ctx uint64) error {
	labels, err := insns.SymbolOffsets()
	if err != nil {
		return err
	}
	stack := m.alloc(make([]byte, stackSize))
	defer delete(m.memory, stack)
	m.regs = [11]uint64{1: ctx, 10: stack + stackSize}
	for pc := 0; pc < len(insns); pc++ {
		if m.steps++; m.steps > 1e6 {
			return errors.New("does not end")
		}
		in := insns[pc]
		to, err := m.step(in)
		switch {
		case err != nil:
			return fmt.Errorf("%d: %v: %w", pc, in, err)
		case to == "exit program":
			if len(m.open) > 0 {
				return errors.New("a reserved record was neither submitted nor discarded")
			}
			return nil
		case to != "":
			at, ok := labels[to]
			if !ok || at <= pc {
				return fmt.Errorf("%d: jump to %q, which is not further down", pc, to)
			}
			pc = at - 1
		}
	}
	return errors.New("fell off the end")
}

// step executes one instruction and is the label to go on at.
func (m *machine) step(in asm.Instruction) (string, error) {
	r := &m.regs
	src := uint64(in.Constant)
	class := in.OpCode.Class()
	if (class.IsJump() || class.IsALU()) && in.OpCode.Source() == asm.RegSource {
		src = r[in.Src]
	}
	switch {
	case class.IsALU():
		v, err := alu(in.OpCode.ALUOp(), r[in.Dst], src, class == asm.ALU64Class)
		r[in.Dst] = v
		return "", err
	case in.IsLoadFromMap():
		for addr, name := range m.handles {
			if name == in.Reference() {
				r[in.Dst] = addr
				return "", nil
			}
		}
		return "", fmt.Errorf("no map %q", in.Reference())
	case in.OpCode.IsDWordLoad():
		r[in.Dst] = uint64(in.Constant)
		return "", nil
	case class == asm.LdXClass:
		addr := r[in.Src] + uint64(int64(in.Offset))
		b, err := m.at(addr, uint64(in.OpCode.Size().Sizeof()))
		if err != nil && int64(addr) < 0 {
			r[in.Dst] = 0 // a typed load of a bad kernel address
			return "", nil
		}
		r[in.Dst] = word(b)
		return "", err
	case class == asm.StXClass || class == asm.StClass:
		return "", m.store(in)
	case in.OpCode.JumpOp() == asm.Exit:
		return "exit program", nil
	case in.OpCode.JumpOp() == asm.Call:
		return "", m.call(asm.BuiltinFunc(in.Constant))
	}
	a := r[in.Dst]
	if class == asm.Jump32Class {
		a, src = uint64(uint32(a)), uint64(uint32(src))
	}
	taken, err := jump(in.OpCode.JumpOp(), a, src)
	if taken {
		return in.Reference(), err
	}
	return "", err
}

func (m *machine) store(in asm.Instruction) error {
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
	copy(b, binary.LittleEndian.AppendUint64(nil, v))
	return nil
}

func alu(op asm.ALUOp, a, b uint64, wide bool) (r uint64, err error) {
	if !wide {
		a, b = uint64(uint32(a)), uint64(uint32(b))
	}
	switch op {
	case asm.Mov:
		r = b
	case asm.Add:
		r = a + b
	case asm.LSh:
		r = a << (b & 63)
	case asm.RSh:
		r = a >> (b & 63)
	case asm.ArSh:
		r = uint64(int64(a) >> (b & 63))
	default:
		return 0, fmt.Errorf("operation %v is not modelled", op)
	}
	if !wide {
		r = uint64(uint32(r))
	}
	return r, nil
}

func jump(op asm.JumpOp, a, b uint64) (bool, error) {
	switch op {
	case asm.Ja:
		return true, nil
	case asm.JEq:
		return a == b, nil
	case asm.JNE:
		return a != b, nil
	case asm.JGT:
		return a > b, nil
	case asm.JGE:
		return a >= b, nil
	case asm.JLT:
		return a < b, nil
	case asm.JLE:
		return a <= b, nil
	case asm.JSGT:
		return int64(a) > int64(b), nil
	case asm.JSGE:
		return int64(a) >= int64(b), nil
	case asm.JSLT:
		return int64(a) < int64(b), nil
	case asm.JSLE:
		return int64(a) <= int64(b), nil
	}
	return false, fmt.Errorf("jump %v is not modelled", op)
}

// errno is a helper's negative result.
func errno(n int64) uint64 { return uint64(-n) }

func (m *machine) call(fn asm.BuiltinFunc) error {
	r0, err := m.helper(fn)
	m.regs[0] = r0
	for i := 1; i <= 5; i++ { // a call clobbers the argument registers
		m.regs[i] = 0xdead_dead_dead_dead
	}
	return err
}

func (m *machine) helper(fn asm.BuiltinFunc) (uint64, error) {
	r := m.regs
	switch fn {
	case asm.FnKtimeGetNs:
		return m.time, nil
	case asm.FnGetCurrentPidTgid:
		return m.pidtid, nil
	case asm.FnGetSmpProcessorId:
		return 3, nil
	case asm.FnGetCurrentComm:
		b, err := m.at(r[1], r[2])
		if err == nil {
			clear(b)
			copy(b, "worker")
		}
		return 0, err
	case asm.FnProbeReadKernel:
		return m.probeRead(r[1], r[2], r[3])
	case asm.FnProbeReadKernelStr:
		return m.probeReadStr(r[1], r[2], r[3])
	case asm.FnRingbufReserve:
		if m.full {
			return 0, nil
		}
		b := bytes.Repeat([]byte{0xee}, int(r[2])) // old records
		addr := m.alloc(b)
		m.open[addr] = b
		return addr, nil
	case asm.FnRingbufSubmit:
		b, ok := m.open[r[1]]
		if !ok {
			return 0, fmt.Errorf("submit of %#x, which is not reserved", r[1])
		}
		delete(m.open, r[1])
		m.records = append(m.records, b)
		return 0, nil
	case asm.FnMapLookupElem, asm.FnMapUpdateElem, asm.FnMapDeleteElem:
		return m.mapHelper(fn)
	}
	return 0, fmt.Errorf("helper %v is not modelled", fn)
}

func (m *machine) probeRead(dst, n, src uint64) (uint64, error) {
	to, err := m.at(dst, n)
	if err != nil {
		return 0, err
	}
	from, err := m.at(src, n)
	if err != nil || int64(src) >= 0 {
		clear(to)
		return errno(14), nil
	}
	copy(to, from)
	return 0, nil
}

func (m *machine) probeReadStr(dst, n, src uint64) (uint64, error) {
	to, err := m.at(dst, n)
	if err != nil {
		return 0, err
	}
	for i := range to {
		from, err := m.at(src+uint64(i), 1)
		if err != nil {
			return errno(14), nil
		}
		to[i] = from[0]
		if from[0] == 0 {
			return uint64(i + 1), nil
		}
	}
	to[n-1] = 0
	return n, nil
}

func (m *machine) mapHelper(fn asm.BuiltinFunc) (uint64, error) {
	name := m.handles[m.regs[1]]
	spec := m.maps[name]
	if spec == nil {
		return 0, errors.New("the first argument is no map")
	}
	raw, err := m.at(m.regs[2], uint64(spec.KeySize))
	if err != nil {
		return 0, err
	}
	key := word(raw)
	if addr, ok := m.arrays[name]; ok {
		if key >= uint64(spec.MaxEntries) {
			return 0, nil
		}
		return addr + key*uint64(spec.ValueSize), nil
	}
	hash := m.hashes[name]
	switch fn {
	case asm.FnMapLookupElem:
		return hash[key], nil
	case asm.FnMapDeleteElem:
		delete(hash, key)
		return 0, nil
	}
	if len(hash) >= int(spec.MaxEntries) {
		return errno(7), nil
	}
	value, err := m.at(m.regs[3], uint64(spec.ValueSize))
	if err != nil {
		return 0, err
	}
	hash[key] = m.alloc(bytes.Clone(value))
	return 0, nil
}
