package runtime

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	goruntime "runtime"
	"slices"
	"sort"
	"strings"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/compiler"
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

// VerifierError reports that the kernel's verifier refused a program. ksnoop made
// the program, so it is a bug of ksnoop. %+v prints all that a report of the
// bug needs: see [VerifierError.Report].
type VerifierError struct {
	Program string              // its name in the unit's collection
	Listing string              // the program, with the source of each step
	Err     *ebpf.VerifierError // with the verifier's log
	Probes  []*compiler.Probe   // probes that are not traced without the program
}

// newVerifierError returns the error for a program of a collection; err is package
// ebpf's.
func newVerifierError(c *ebpf.CollectionSpec, name string, err error) *VerifierError {
	e := &VerifierError{Program: name}
	errors.As(err, &e.Err)
	if p := c.Programs[name]; p != nil {
		e.Listing = fmt.Sprint(p.Instructions)
	}
	return e
}

func (e *VerifierError) Error() string {
	return fmt.Sprintf("load %s: the kernel's verifier refused the program, which is a bug of ksnoop: %v", e.Program, e.Err)
}

func (e *VerifierError) Unwrap() error { return e.Err }

// Report returns the error, the program and the verifier's whole log.
func (e *VerifierError) Report() string {
	return fmt.Sprintf("%v\n\n%s\n%+v\n", e, e.Listing, e.Err)
}

// Format prints the report for %+v.
func (e *VerifierError) Format(f fmt.State, verb rune) {
	if verb == 'v' && f.Flag('+') {
		io.WriteString(f, e.Report())
		return
	}
	io.WriteString(f, e.Error())
}

// LoadError reports that the programs could not be loaded, for a reason other than
// the verifier.
type LoadError struct{ Err error }

func (e *LoadError) Error() string { return "load the programs: " + e.Err.Error() }

func (e *LoadError) Unwrap() error { return e.Err }

// Reason returns why they could not be loaded.
func (e *LoadError) Reason() string {
	return strings.TrimPrefix(e.Err.Error(), denied)
}

// denied begins the text of an error about privileges that the process lacks.
const denied = "the kernel does not permit it: "

// deniedError is the text of an error that unwraps to EPERM.
type deniedError string

func (e deniedError) Error() string { return string(e) }

func (e deniedError) Unwrap() error { return unix.EPERM }

// LockedMemoryError is the Err of a [LoadError] if maps take more than Limit, which is
// how many bytes of memory may be locked. Maps of a session that has been closed may
// still count: they are freed after a grace period.
type LockedMemoryError struct{ Limit uint64 }

func (e *LockedMemoryError) Error() string {
	return fmt.Sprintf("their maps take more than the limit of locked memory, %d KiB, and %s", e.Limit>>10, memlockCure)
}

// loadError returns an error that explains why a collection could not be loaded.
// limit is how many bytes maps may take, and p are the privileges of the process.
func loadError(c *ebpf.CollectionSpec, err error, limit uint64, p Privileges) error {
	var refused *ebpf.VerifierError
	switch {
	case errors.Is(err, unix.EMFILE):
		return &LoadError{errFiles}
	case errors.Is(err, unix.ENOMEM):
		what, less := refusedMap(c, err)
		return &LoadError{errnoError{fmt.Errorf("no memory for %s: %sraise the limit of the memory cgroup (memory.max)", what, less), unix.ENOMEM}}
	case errors.As(err, &refused) && refusedByLockdown(refused.Log):
		return &LoadError{errLockdown}
	case errors.As(err, &refused) && len(refused.Log) > 0:
		return newVerifierError(c, refusedProgram(c, err), err)
	case errors.Is(err, unix.EPERM):
		if why := p.Refusal(); why != "" {
			return &LoadError{deniedError(denied + why)}
		}
		if limit < math.MaxUint64 {
			return &LoadError{&LockedMemoryError{limit}}
		}
		return &LoadError{deniedError("the kernel does not permit it, though ksnoop has CAP_BPF and CAP_PERFMON: its lockdown or a security module must allow it")}
	}
	return &LoadError{err}
}

// errFiles explains EMFILE: a program and a link are files.
var errFiles = errnoError{errors.New("too many open files: raise the limit (ulimit -n), or name fewer functions"), unix.EMFILE}

// errnoError explains an error number of the kernel, which errors.Is finds in it.
type errnoError struct {
	error
	errno unix.Errno
}

func (e errnoError) Is(target error) bool { return target == e.errno }

// refusedProgram returns the name of the program that an error of package ebpf is
// about, which only its text tells.
func refusedProgram(c *ebpf.CollectionSpec, err error) string {
	for name := range c.Programs {
		if strings.HasPrefix(err.Error(), "program "+name+": ") {
			return name
		}
	}
	return "the programs"
}

// Refused returns the verifier's refusals, in the order of the unit's probes. These
// probes are not attached; the others are.
func (s *Session) Refused() []*VerifierError { return s.refused }

// loadAccepted loads what the verifier accepts of a unit that it refused as a whole
// with err. It returns err if nothing would be left to trace: a chain needs all of
// its levels.
func (s *Session) loadAccepted(c *ebpf.CollectionSpec, err error) error {
	if probes := s.unit.Probes(); len(probes) < 2 || probes[0].Chain != nil || !refusedByVerifier(err) {
		return err
	}
	coll, refusals, eachErr := s.kernel.loadEach(c)
	if eachErr != nil {
		return eachErr
	}
	s.refused = s.refusedProbes(refusals)
	needed := len(s.refused) < len(refusals) // a companion belongs to no probe, and cannot be left out
	if needed || len(slices.DeleteFunc(s.unit.Probes(), s.Without)) == 0 {
		coll.Close()
		return err
	}
	s.coll = coll
	return nil
}

// refusedByVerifier reports whether the kernel objects to a program, and not to the
// user, nor for want of memory or files: then there is a log, too.
func refusedByVerifier(err error) bool {
	var refused *ebpf.VerifierError
	return errors.As(err, &refused) && len(refused.Log) > 0 && !refusedByLockdown(refused.Log) &&
		!errors.Is(err, unix.EMFILE) && !errors.Is(err, unix.ENOMEM)
}

// refusedProbes returns an error for each refused program that belongs to a probe.
func (s *Session) refusedProbes(refusals map[string]error) (all []*VerifierError) {
	of := map[string]*VerifierError{}
	for _, at := range s.unit.Attachments {
		for _, place := range at.Places {
			program := at.ProgramAt(place)
			err := refusals[program]
			if err == nil {
				continue
			}
			if of[program] == nil {
				of[program] = newVerifierError(s.unit.Collection, program, err)
				all = append(all, of[program])
			}
			if e := of[program]; !slices.Contains(e.Probes, place.Probe) {
				e.Probes = append(e.Probes, place.Probe)
			}
		}
	}
	probes := s.unit.Probes()
	index := func(e *VerifierError) int { return slices.Index(probes, e.Probes[0]) }
	sort.SliceStable(all, func(i, j int) bool { return index(all[i]) < index(all[j]) })
	return all
}
