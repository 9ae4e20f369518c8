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
// programs are attached to, so it loads only the others, and those that the
// kernel refuses, for the verifier's log.
func (k *Kernel) load(spec *ebpf.CollectionSpec) (*ebpf.Collection, error) {
	targets := map[string]btf.TypeID{}
	others := *spec
	others.Programs = map[string]*ebpf.ProgramSpec{}
	for name, p := range spec.Programs {
		if id := k.targetID(p); id != 0 {
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
		prog, err := loadTracing(spec.Programs[name], id, coll.Maps)
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

// targetID is the number of the type that a program is attached to; 0 if it has
// none in vmlinux.
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

// progLoad is what union bpf_attr is for BPF_PROG_LOAD (include/uapi/linux/bpf.h),
// up to what came with trampolines in 5.5.
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

// loadTracing loads a program that is attached to a type of vmlinux. The error is
// the kernel's.
func loadTracing(p *ebpf.ProgramSpec, target btf.TypeID, maps map[string]*ebpf.Map) (*ebpf.Program, error) {
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

// objectName is a name as the kernel takes it for a program.
func objectName(name string) (short [16]byte) {
	for i := range min(len(name), len(short)-1) {
		short[i] = name[i]
		if c := name[i]; c != '_' && c != '.' && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') {
			short[i] = '_'
		}
	}
	return short
}
