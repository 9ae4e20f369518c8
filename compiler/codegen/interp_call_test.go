package codegen

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/compilertest"
)

// errno returns a helper's negative result.
func errno(n int64) uint64 { return uint64(-n) }

func (m *machine) helper(fn asm.BuiltinFunc) (uint64, error) {
	r := m.regs
	switch fn {
	case asm.FnKtimeGetNs:
		m.readings++
		return m.time + (m.readings-1)*m.tick, nil
	case asm.FnGetCurrentPidTgid:
		return m.pidtid, nil
	case asm.FnGetCurrentTask:
		return m.task, nil
	case asm.FnGetCurrentTaskBtf:
		return m.currentTask(), nil
	case asm.FnGetSmpProcessorId:
		return uint64(m.cpu), nil
	case asm.FnGetFuncArg:
		return m.funcWord(r[1]+8*r[2], r[3])
	case asm.FnGetFuncRet:
		return m.funcWord(r[1]+8*m.words, r[2])
	case asm.FnGetAttachCookie:
		return m.cookie, nil
	case asm.FnGetFuncIp:
		return m.ip, nil
	case asm.FnTailCall: // the rig runs the other program when this one has ended
		m.jump, m.jumpTo = m.names[r[2]], int(r[3])
		return errno(22), nil
	case asm.FnGetCurrentUidGid:
		return 100<<32 | uint64(m.uid), nil
	case asm.FnGetCurrentCgroupId:
		return 4242, nil
	case asm.FnCurrentTaskUnderCgroup:
		if name := m.names[r[1]]; name != compiler.CgroupMap || r[2] != 0 {
			return 0, fmt.Errorf("cgroup %d of map %q", r[2], name)
		}
		return m.cgroup, nil
	case asm.FnGetStack:
		return m.getStack(r[2], r[3], r[4])
	case asm.FnGetStackid:
		if m.maps[m.names[r[2]]] == nil {
			return 0, errors.New("stacks of no map")
		}
		return m.stackNumber(int(r[3])), nil
	case asm.FnGetCurrentComm:
		b, err := m.at(r[1], r[2])
		if err == nil {
			m.write(r[1], len(b))
			clear(b)
			copy(b[:len(b)-1], m.comm)
		}
		return 0, err
	case asm.FnProbeReadKernel:
		return m.probeRead(r[1], r[2], r[3], false)
	case asm.FnProbeReadUser:
		return m.probeRead(r[1], r[2], r[3], true)
	case asm.FnProbeReadKernelStr:
		return m.probeReadStr(r[1], r[2], r[3], false)
	case asm.FnProbeReadUserStr:
		return m.probeReadStr(r[1], r[2], r[3], true)
	case asm.FnRingbufReserve:
		if m.full || m.large > 0 && r[2] >= m.large {
			return 0, nil
		}
		b := bytes.Repeat([]byte{0xee}, int(r[2])) // old records
		addr := m.alloc(b)
		m.open[addr] = b
		return addr, nil
	case asm.FnRingbufDiscard:
		if _, ok := m.open[r[1]]; !ok {
			return 0, fmt.Errorf("discard of %#x, which is not reserved", r[1])
		}
		delete(m.open, r[1])
		return 0, nil
	case asm.FnRingbufSubmit:
		b, ok := m.open[r[1]]
		if !ok {
			return 0, fmt.Errorf("submit of %#x, which is not reserved", r[1])
		}
		delete(m.open, r[1])
		m.records = append(m.records, b)
		if m.onWrite != nil {
			m.onWrite()
		}
		return 0, nil
	case asm.FnSeqWrite:
		return m.seqWrite(r[1], r[2], r[3])
	case asm.FnMapLookupElem, asm.FnMapUpdateElem, asm.FnMapDeleteElem:
		return m.mapHelper(fn)
	}
	return 0, fmt.Errorf("helper %v is not modelled", fn)
}

// callStacks has what bpf_get_stack returns.
type callStacks struct {
	kernel []uint64 // return addresses, from the function on
	// program counts the frames of the program itself, which are above them.
	program int
	leaf    bool   // whether the function's caller is in a register alone
	user    []byte // frames with build ids; nil if there is no user stack
}

// frames returns the frames of the kernel's stack without the first skip ones.
func (s *callStacks) frames(skip int) []byte {
	b := slices.Repeat([]byte{0x99}, 8*s.program)
	for i, addr := range s.kernel {
		if i != 1 || !s.leaf {
			b = binary.LittleEndian.AppendUint64(b, addr)
		}
	}
	return b[min(8*skip, len(b)):]
}

// stackNumber returns the number of the kernel's stack: the one that is set, or one for
// each stack.
func (m *machine) stackNumber(skip int) uint64 {
	if m.stack != 0 {
		return m.stack
	}
	frames := m.stacks.frames(skip)
	id := string(frames[:min(len(frames), stackBytes)])
	if m.numbers[id] == 0 {
		m.numbers[id] = uint64(len(m.numbers) + 1)
	}
	return m.numbers[id]
}

// getStack copies a stack, with zeroes after it.
func (m *machine) getStack(to, size, flags uint64) (uint64, error) {
	b, err := m.at(to, size)
	if err != nil {
		return 0, err
	}
	m.write(to, len(b))
	clear(b)
	element, frames := uint64(8), m.stacks.frames(int(flags&0xff))
	switch flags &^ 0xff {
	case 0:
	case userStack | userBuildIDs:
		if element, frames = 32, m.stacks.user; frames == nil {
			return errno(14), nil
		}
		frames = frames[min(int(element*(flags&0xff)), len(frames)):]
	default:
		return 0, fmt.Errorf("a stack with flags %#x", flags)
	}
	if size%element != 0 {
		return errno(22), nil
	}
	return uint64(copy(b, frames)), nil
}

// seqWrite writes to the file of an iterator, unless there is too little room.
func (m *machine) seqWrite(file, from, n uint64) (uint64, error) {
	b, err := m.at(from, n)
	if err != nil || file != m.seqFile {
		return 0, fmt.Errorf("write to %#x: %w", file, err)
	}
	if len(m.seq)+len(b) >= m.seqRoom {
		return errno(75), nil
	}
	m.seq = append(m.seq, b...)
	return 0, nil
}

// funcWord copies a word of a trampoline's context.
func (m *machine) funcWord(from, to uint64) (uint64, error) {
	src, err := m.at(from, 8)
	if err != nil {
		return 0, err
	}
	dst, err := m.at(to, 8)
	if err != nil {
		return 0, err
	}
	m.write(to, copy(dst, src))
	return 0, nil
}

// currentTask returns the address of a task_struct with the name of the thread,
// followed by rests of other names.
func (m *machine) currentTask() uint64 {
	b := bytes.Repeat([]byte{0xee}, compilertest.TaskSize)
	if task, err := m.at(m.task, compilertest.TaskSize); err == nil {
		copy(b[compilertest.ParentOffset:], task[compilertest.ParentOffset:])
	}
	copy(b[compilertest.CommOffset:], m.comm+"\x00")
	b[compilertest.CommOffset+compiler.CommSize-1] = 0
	return m.alloc(b)
}

// elsewhere reports whether a helper for the memory of processes, or of the
// kernel, does not read the address because it is the other's. Without PAN, the
// kernel can read both.
func (m *machine) elsewhere(src uint64, user bool) bool {
	inUser := int64(src) >= 0
	return inUser && !user && !m.readsUser || user && !inUser
}

func (m *machine) probeRead(dst, n, src uint64, user bool) (uint64, error) {
	to, err := m.at(dst, n)
	if err != nil {
		return 0, err
	}
	m.write(dst, len(to))
	from, err := m.at(src, n)
	if err == nil {
		err = m.checkWritten(src, len(from))
		if err != nil {
			return 0, err
		}
	}
	if err != nil || m.elsewhere(src, user) {
		clear(to)
		return errno(14), nil
	}
	copy(to, from)
	return 0, nil
}

func (m *machine) probeReadStr(dst, n, src uint64, user bool) (uint64, error) {
	m.strings++
	to, err := m.at(dst, n)
	if err != nil {
		return 0, err
	}
	m.write(dst, len(to))
	if m.elsewhere(src, user) {
		return errno(14), nil
	}
	for i := range to {
		from, err := m.at(src+uint64(i), 1)
		if err != nil {
			clear(to)
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
	name := m.names[m.regs[1]]
	spec := m.maps[name]
	if spec == nil {
		return 0, errors.New("the first argument is no map")
	}
	raw, err := m.at(m.regs[2], uint64(spec.KeySize))
	if err != nil {
		return 0, err
	}
	if err := m.checkWritten(m.regs[2], len(raw)); err != nil {
		return 0, err
	}
	if addr, ok := m.arrays[name]; ok {
		index := word(raw)
		if index >= uint64(spec.MaxEntries) {
			return 0, nil
		}
		return addr + index*uint64(spec.ValueSize), nil
	}
	key := string(raw)
	hash := m.hashes[name]
	switch fn {
	case asm.FnMapLookupElem:
		return hash[key], nil
	case asm.FnMapDeleteElem:
		if _, there := hash[key]; !there {
			return errno(2), nil
		}
		delete(hash, key)
		return 0, nil
	}
	_, there := hash[key]
	switch {
	case there && m.regs[4] == uint64(ebpf.UpdateNoExist):
		return errno(17), nil
	case !there && len(hash) >= int(spec.MaxEntries):
		return errno(7), nil
	}
	if err := m.checkWritten(m.regs[3], int(spec.ValueSize)); err != nil {
		return 0, err
	}
	value, err := m.at(m.regs[3], uint64(spec.ValueSize))
	if err != nil {
		return 0, err
	}
	hash[key] = m.alloc(bytes.Clone(value))
	return 0, nil
}
