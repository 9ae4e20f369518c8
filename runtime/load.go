package runtime

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	goruntime "runtime"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"golang.org/x/sys/unix"
)

// load loads a collection. Package ebpf would read all types to find those that
// programs are attached to, and copies each program several times, so it loads
// only the programs that are attached to what vmlinux does not have, and those
// that the kernel refuses, for the verifier's log.
func (k *Kernel) load(spec *ebpf.CollectionSpec) (*ebpf.Collection, error) {
	targets := map[string]btf.TypeID{}
	others := *spec
	others.Programs = map[string]*ebpf.ProgramSpec{}
	for name, p := range spec.Programs {
		if id := k.targetID(p); id != 0 || p.Type == ebpf.Kprobe || p.Type == ebpf.PerfEvent || p.Type == ebpf.RawTracepoint {
			targets[name] = id
		} else {
			others.Programs[name] = p
		}
	}
	coll, err := ebpf.NewCollectionWithOptions(&others, ebpf.CollectionOptions{Cache: k.cache})
	if err != nil {
		return nil, err
	}
	for name, id := range targets {
		prog, err := loadProgram(spec.Programs[name], id, coll.Maps)
		if err == nil {
			coll.Programs[name] = prog
			continue
		}
		coll.Close()
		if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOMEM) {
			return nil, fmt.Errorf("program %s: %w", name, err)
		}
		return ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{Cache: k.cache})
	}
	return coll, nil
}

// fillJumps stores the programs that links jump to. The indices of those that the
// verifier has refused stay empty.
func (s *Session) fillJumps() error {
	for _, at := range s.unit.Attachments {
		for i, name := range at.Jumps {
			prog := s.coll.Programs[name]
			if prog == nil {
				continue
			}
			if err := s.coll.Maps[at.JumpMap].Put(uint32(i), prog); err != nil {
				s.coll.Close()
				return fmt.Errorf("store program %s: %w", name, err)
			}
		}
	}
	return nil
}

// loadEach loads the programs of a collection one by one, and returns the errors
// of those that the verifier refuses.
func (k *Kernel) loadEach(spec *ebpf.CollectionSpec) (_ *ebpf.Collection, refused map[string]error, err error) {
	one := *spec
	one.Programs = nil
	coll, err := ebpf.NewCollectionWithOptions(&one, ebpf.CollectionOptions{Cache: k.cache})
	if err != nil {
		return nil, nil, err
	}
	refused = map[string]error{}
	for name, p := range spec.Programs {
		one.Programs = map[string]*ebpf.ProgramSpec{name: p}
		with, err := ebpf.NewCollectionWithOptions(&one, ebpf.CollectionOptions{Cache: k.cache, MapReplacements: coll.Maps})
		switch {
		case err == nil:
			coll.Programs[name] = with.DetachProgram(name)
			with.Close()
		case refusedByVerifier(err):
			refused[name] = err
		default:
			coll.Close()
			return nil, nil, err
		}
	}
	return coll, refused, nil
}

// targetID returns the id of the type that a program is attached to, or 0 if
// vmlinux has none.
func (k *Kernel) targetID(p *ebpf.ProgramSpec) btf.TypeID {
	if p.Type != ebpf.Tracing {
		return 0
	}
	switch p.AttachType {
	case ebpf.AttachTraceFEntry, ebpf.AttachTraceFExit:
		return k.typeID(p.AttachTo, (*btf.Func)(nil))
	case ebpf.AttachTraceIter:
		return k.typeID("bpf_iter_"+p.AttachTo, (*btf.Func)(nil))
	case ebpf.AttachTraceRawTp:
		return k.typeID("btf_trace_"+p.AttachTo, (*btf.Typedef)(nil))
	}
	return 0
}

// progLoad is union bpf_attr for BPF_PROG_LOAD (include/uapi/linux/bpf.h), up to
// the members that came with trampolines in 5.5.
type progLoad struct {
	kind, insnCount         uint32
	insns, license          uint64
	logLevel, logSize       uint32
	log                     uint64
	version, flags          uint32
	name                    [16]byte
	ifindex, attach         uint32
	btf, funcInfoSize       uint32
	funcInfo                uint64
	funcInfoCount, lineSize uint32
	lineInfo                uint64
	lineCount, attachID     uint32
	attachProg, _           uint32
}

// loadProgram loads a program that is attached to a type of vmlinux, or to none
// if target is 0. It returns the kernel's error unchanged.
func loadProgram(p *ebpf.ProgramSpec, target btf.TypeID, maps map[string]*ebpf.Map) (*ebpf.Program, error) {
	p = p.Copy()
	for i := range p.Instructions {
		if in := &p.Instructions[i]; in.IsLoadFromMap() && in.Reference() != "" {
			m := maps[in.Reference()]
			if m == nil {
				return nil, fmt.Errorf("there is no map %s", in.Reference())
			}
			if err := in.AssociateMap(m); err != nil {
				return nil, err
			}
		}
	}
	var insns bytes.Buffer
	insns.Grow(int(p.Instructions.Size()))
	if err := p.Instructions.Marshal(&insns, binary.LittleEndian); err != nil {
		return nil, err
	}
	code, license := insns.Bytes(), append([]byte(p.License), 0)
	attr := progLoad{
		kind: uint32(p.Type), attach: uint32(p.AttachType), attachID: uint32(target), insnCount: uint32(len(code) / 8),
		insns: address(code), license: address(license), name: objectName(p.Name),
	}
	fd, _, errno := unix.Syscall(unix.SYS_BPF, unix.BPF_PROG_LOAD, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr))
	goruntime.KeepAlive(code)
	goruntime.KeepAlive(license)
	goruntime.KeepAlive(maps)
	if errno != 0 {
		return nil, errno
	}
	return ebpf.NewProgramFromFD(int(fd))
}

func address(b []byte) uint64 { return uint64(uintptr(unsafe.Pointer(&b[0]))) }

// objectName returns name in the form that the kernel takes for a program.
func objectName(name string) (short [16]byte) {
	for i := range min(len(name), len(short)-1) {
		short[i] = name[i]
		if c := name[i]; c != '_' && c != '.' && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') {
			short[i] = '_'
		}
	}
	return short
}
