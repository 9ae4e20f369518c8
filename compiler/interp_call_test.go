package compiler

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

// errno is a helper's negative result.
func errno(n int64) uint64 { return uint64(-n) }

func (m *machine) helper(fn asm.BuiltinFunc) (uint64, error) {
	r := m.regs
	switch fn {
	case asm.FnKtimeGetNs:
		return m.time, nil
	case asm.FnGetCurrentPidTgid:
		return m.pidtid, nil
	case asm.FnGetCurrentTask:
		return m.task, nil
	case asm.FnGetCurrentTaskBtf:
		return m.currentTask(), nil
	case asm.FnGetSmpProcessorId:
		return uint64(m.cpu), nil
	case asm.FnGetAttachCookie:
		return m.cookie, nil
	case asm.FnGetCurrentUidGid:
		return 100<<32 | uint64(m.uid), nil
	case asm.FnGetCurrentCgroupId:
		return 4242, nil
	case asm.FnCurrentTaskUnderCgroup:
		if name := m.names[r[1]]; name != CgroupMap || r[2] != 0 {
			return 0, fmt.Errorf("cgroup %d of map %q", r[2], name)
		}
		return m.cgroup, nil
	case asm.FnGetStack:
		b, err := m.at(r[2], r[3])
		if err == nil {
			m.write(r[2], 16)
			copy(b, binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, 0xffff_ffff_8100_0010), 0xffff_ffff_8100_0120))
		}
		return 16, err
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

// currentTask is a task_struct with the name of the thread, and rests of others.
func (m *machine) currentTask() uint64 {
	b := bytes.Repeat([]byte{0xee}, fixtureComm+commSize)
	copy(b[fixtureComm:], m.comm+"\x00")
	b[len(b)-1] = 0
	return m.alloc(b)
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
	if err != nil || user != (int64(src) >= 0) {
		clear(to)
		return errno(14), nil
	}
	copy(to, from)
	return 0, nil
}

func (m *machine) probeReadStr(dst, n, src uint64, user bool) (uint64, error) {
	to, err := m.at(dst, n)
	if err != nil {
		return 0, err
	}
	m.write(dst, len(to))
	if user != (int64(src) >= 0) {
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
