package runtime

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// A ring is the reading end of a ring buffer (kernel/bpf/ringbuf.c). The program
// that completes a record wakes the reader if the consumer's position is that of
// the record: if the reader has seen all before it.
type ring struct {
	fd         int
	cons, prod []byte // the consumer's page; the producer's, followed by the data
	data       []byte // mapped twice in a row, so that no record wraps around
	size       uint64
	read       uint64 // position of the next record; the consumer's may be lower
	pace

	mu    sync.Mutex // guards event
	event int        // an eventfd that interrupts waiting, or -1 if closed
}

// The header of a record is a word with its length and two flags, and a word that
// is the kernel's own.
const (
	recordHeader  = 8
	recordBusy    = 1 << 31
	recordDiscard = 1 << 30
)

func openRing(m *ebpf.Map) (*ring, error) {
	page, size := os.Getpagesize(), int(m.MaxEntries())
	r := &ring{fd: m.FD(), size: uint64(size), event: -1}
	err := func() (err error) {
		if r.event, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
			return err
		}
		if r.cons, err = unix.Mmap(r.fd, 0, page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
			return err
		}
		r.prod, err = unix.Mmap(r.fd, int64(page), page+2*size, unix.PROT_READ, unix.MAP_SHARED)
		return err
	}()
	if err != nil {
		if err == unix.EMFILE {
			err = errFiles
		}
		return nil, fmt.Errorf("open the ring buffer: %w", errors.Join(err, r.close()))
	}
	r.data = r.prod[page:]
	r.read = atomic.LoadUint64(position(r.cons))
	return r, nil
}

// close frees the memory. Nobody may read any more.
func (r *ring) close() (err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.event >= 0 {
		err = unix.Close(r.event)
	}
	r.event = -1
	for _, memory := range []*[]byte{&r.cons, &r.prod} {
		if *memory != nil {
			err = errors.Join(err, unix.Munmap(*memory))
		}
		*memory = nil
	}
	return err
}

// position returns the word at the beginning of a page.
func position(page []byte) *uint64 { return (*uint64)(unsafe.Pointer(&page[0])) }

// produced returns the position behind the last record.
func (r *ring) produced() uint64 { return atomic.LoadUint64(position(r.prod)) }

// skip passes over discarded records, and returns the header of the next record,
// or 0 if there is none.
func (r *ring) skip() uint32 {
	for r.produced() != r.read {
		header := atomic.LoadUint32((*uint32)(unsafe.Pointer(&r.data[r.read&(r.size-1)])))
		if header&recordBusy != 0 || header&recordDiscard == 0 {
			return header
		}
		r.pass(header &^ recordDiscard)
	}
	return 0
}

// next returns a copy of the next record in the memory of into, or false if there
// is none that is complete.
func (r *ring) next(into []byte) ([]byte, bool) {
	header := r.skip()
	for header&recordBusy != 0 { // until its program ends, or is put back on a CPU
		unix.RawSyscallNoError(unix.SYS_SCHED_YIELD, 0, 0, 0)
		header = r.skip()
	}
	if header == 0 {
		return into, false
	}
	at := r.read&(r.size-1) + recordHeader
	into = append(into[:0], r.data[at:][:header]...)
	r.pass(header)
	r.count++
	return into, true
}

// pass advances the consumer's position over a record of n bytes. While the reader
// pauses between looks, the position stays one record behind, so that no program
// wakes the reader; but the room of a large record is given back at once.
func (r *ring) pass(n uint32) {
	before := r.read
	r.read += recordHeader + uint64(n+7)&^7
	if r.pause == 0 || r.read-before > r.size/8 {
		before = r.read
	}
	atomic.StoreUint64(position(r.cons), before)
}

// wait returns when there may be a record, or after interrupt. All records must
// have been read.
func (r *ring) wait() error {
	r.emptied(time.Now(), r.read, r.size)
	if r.pause > 0 {
		_, err := r.poll(r.pause, false)
		return err
	}
	atomic.StoreUint64(position(r.cons), r.read) // from here on the next record wakes the reader
	if r.produced() != r.read {
		return nil
	}
	if r.soon {
		if ready, err := r.poll(linger, true); ready || err != nil {
			return err
		}
	}
	fds := r.waitFor()
	_, err := unix.Poll(fds[:], -1)
	return r.awake(&fds, err)
}

// waitFor returns what ends waiting: interrupt, and a record.
func (r *ring) waitFor() [2]unix.PollFd {
	return [2]unix.PollFd{{Fd: int32(r.event), Events: unix.POLLIN}, {Fd: int32(r.fd), Events: unix.POLLIN}}
}

// poll waits for at most d, for records only if wanted, and reports whether it was
// woken. The Go runtime does not learn that this thread waits: its monitor would
// wake up every 20 microseconds to find other work for the processor, which costs
// many times what is done with an event. So d must be short.
func (r *ring) poll(d time.Duration, records bool) (woken bool, err error) {
	fds, n := r.waitFor(), 1
	if records {
		n = 2
	}
	limit := unix.NsecToTimespec(d.Nanoseconds())
	ready, _, errno := unix.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&fds)), uintptr(n), uintptr(unsafe.Pointer(&limit)), 0, 0, 0)
	if errno != 0 {
		return true, r.awake(&fds, errno)
	}
	return ready > 0, r.awake(&fds, nil)
}

// awake takes note of an interrupt that has ended waiting.
func (r *ring) awake(fds *[2]unix.PollFd, err error) error {
	if err != nil && !errors.Is(err, syscall.EINTR) {
		return fmt.Errorf("wait for the ring buffer: %w", err)
	}
	if err == nil && fds[0].Revents != 0 {
		var count [8]byte
		_, _ = unix.Read(r.event, count[:]) // nothing to read is as good
	}
	return nil
}

// interrupt makes wait return: now, or when it is called next. Any goroutine may
// call it.
func (r *ring) interrupt() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.event < 0 {
		return os.ErrClosed
	}
	_, err := unix.Write(r.event, []byte{1, 0, 0, 0, 0, 0, 0, 0})
	return err
}

// A pace decides how a reader waits. To be woken costs the traced call and the
// reader far more than the event, so a reader that has much to read pauses instead,
// and then reads all that there is; events that come more than a millisecond apart
// are shown at once.
type pace struct {
	count int           // records read after since
	since time.Time     // when there was nothing to read the last time
	at    uint64        // position in the ring buffer at that time
	pause time.Duration // until the next look; 0 means that the next record wakes the reader
	soon  bool          // whether the next record is expected within linger
}

const (
	longestPause  = 4 * time.Millisecond
	firstPause    = time.Millisecond
	shortestPause = firstPause / 2
	// busyCount records, on average no more than busyGap apart, make a reader
	// pause.
	busyCount = 4
	busyGap   = time.Millisecond
	// linger is how long a reader expects a record if the one before came within
	// soonGap.
	soonGap = 10 * time.Millisecond
	linger  = 2 * soonGap
)

// emptied decides how to wait when there is nothing to read at a position of a ring
// buffer of size bytes.
func (p *pace) emptied(now time.Time, at, size uint64) {
	elapsed, n, bytes := now.Sub(p.since), time.Duration(p.count), at-p.at
	busy := n > 0 && elapsed <= n*busyGap
	switch {
	case elapsed < p.pause/2: // something else ended the pause
		return
	case p.pause > 0 && !busy:
		p.pause = 0
	case p.pause > 0 && bytes > size/4: // at four times this rate, records would be lost
		if p.pause /= 2; p.pause < shortestPause {
			p.pause = 0
		}
	case p.pause > 0 && bytes < size/16:
		p.pause = min(2*p.pause, longestPause)
	case p.pause > 0:
	case busy && n >= busyCount && bytes < size/4:
		p.pause = firstPause
	case busy && n < busyCount: // too few to tell
		p.soon = true
		return
	}
	p.soon = n > 0 && elapsed < soonGap
	p.since, p.count, p.at = now, 0, at
}
