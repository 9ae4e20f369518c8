package runtime

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	goruntime "runtime"
	"slices"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/compiler"
)

// descendants is the order in which an iterator goes over cgroups: each before those
// below it, from the root of cgroup v2 on (BPF_CGROUP_ITER_DESCENDANTS_PRE in
// include/uapi/linux/bpf.h).
const descendants = 2

// iterCreate is the argument of BPF_LINK_CREATE for an iterator.
type iterCreate struct {
	prog, target, kind, flags uint32
	info                      uint64
	infoSize, _               uint32
}

// attachIterator makes the link of an iterator. The library cannot ask for an order of cgroups.
func attachIterator(prog *ebpf.Program, fn *compiler.Function) (link.Link, error) {
	if fn.Name != "cgroup" {
		return link.AttachIter(link.IterOptions{Program: prog})
	}
	order := [4]uint32{descendants}
	attr := iterCreate{prog: uint32(prog.FD()), kind: uint32(ebpf.AttachTraceIter), info: uint64(uintptr(unsafe.Pointer(&order))), infoSize: uint32(unsafe.Sizeof(order))}
	fd, _, errno := unix.Syscall(unix.SYS_BPF, unix.BPF_LINK_CREATE, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr))
	goruntime.KeepAlive(&order)
	if errno != 0 {
		return nil, errno
	}
	return link.NewFromFD(int(fd))
}

// rowReader reads the rows of iterators, one after the other.
type rowReader struct {
	done int // iterators that have been opened
	file io.ReadCloser
	rows *bufio.Reader
}

// roomForRows is more than the kernel returns at once, in bytes.
const roomForRows = 1 << 16

func (r *rowReader) idle() bool { return r.rows == nil || r.rows.Buffered() == 0 }

func (r *rowReader) close() error {
	if r.file == nil {
		return nil
	}
	err := r.file.Close()
	r.file = nil
	return err
}

// nextRow reads the next row of the iterators. After Stop it returns those that have
// been read already.
func (s *Session) nextRow() error {
	r := &s.rows
	for {
		if s.closing.Load() || s.stopped.Load() && r.idle() {
			return io.EOF
		}
		if s.woken.Swap(false) {
			return ErrWoken
		}
		if r.file == nil {
			if err := s.openRows(); err != nil {
				return err
			}
		}
		var length [compiler.RowStart - compiler.RowLength]byte
		_, err := io.ReadFull(r.rows, length[:])
		if errors.Is(err, io.EOF) {
			if err := r.close(); err != nil {
				return err
			}
			continue
		}
		if err == nil {
			n := binary.NativeEndian.Uint64(length[:])
			s.record = slices.Grow(s.record[:0], int(n))[:n]
			_, err = io.ReadFull(r.rows, s.record)
		}
		if err != nil {
			return fmt.Errorf("read iterator %s: %w", s.iterators()[r.done-1].Places[0].Probe.Func.Name, err)
		}
		return nil
	}
}

// Again waits, empties the tables, and makes Read go over the iterators again. Before, Read
// must have returned io.EOF; if the session is stopped or closed meanwhile, Again returns that, too.
func (s *Session) Again(wait time.Duration) error {
	s.reading.Lock()
	defer s.reading.Unlock()
	var due atomic.Bool
	timer := time.AfterFunc(wait, func() {
		due.Store(true)
		_ = s.interrupt() // an eventfd takes more than anybody writes
	})
	defer timer.Stop()
	for {
		if s.over() {
			return io.EOF
		}
		if due.Load() {
			break
		}
		if err := s.ring.wait(); err != nil {
			return err
		}
	}
	s.rows.done = 0
	return s.emptyTables()
}

// iterators returns the attachments of iterators.
func (s *Session) iterators() []*attached {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.attached)
}

// openRows opens the next iterator. After the last one it returns io.EOF.
func (s *Session) openRows() error {
	r := &s.rows
	all := s.iterators()
	if r.done >= len(all) {
		return io.EOF
	}
	at := all[r.done]
	r.done++
	file, err := at.link.(*link.Iter).Open() // a link of another kind has another kind of program
	if err != nil {
		return fmt.Errorf("open iterator %s: %w", at.Places[0].Probe.Func.Name, err)
	}
	r.file, r.rows = file, bufio.NewReaderSize(patientReader{file}, roomForRows)
	return nil
}

// patientReader reads on where an iterator has found a million objects without a row.
type patientReader struct{ from io.Reader }

func (p patientReader) Read(b []byte) (int, error) {
	for {
		n, err := p.from.Read(b)
		if n > 0 || !errors.Is(err, unix.EAGAIN) {
			return n, err
		}
	}
}
