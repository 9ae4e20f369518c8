package runtime

import (
	"bytes"
	"encoding/binary"
	"os"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/compiler"
)

// fakeRing returns a ring in memory of this process, with the data mapped twice as
// the kernel does. Nothing wakes its reader.
func fakeRing(t *testing.T, size int) *ring {
	page := os.Getpagesize()
	fd, err := unix.MemfdCreate("ring", unix.MFD_CLOEXEC)
	require.NoError(t, err)
	defer unix.Close(fd)
	require.NoError(t, unix.Ftruncate(fd, int64(page+size)))
	prod, err := unix.Mmap(-1, 0, page+2*size, unix.PROT_NONE, unix.MAP_ANON|unix.MAP_PRIVATE)
	require.NoError(t, err)
	at := uintptr(unsafe.Pointer(&prod[0]))
	for _, part := range [][3]int{{0, page + size, 0}, {page + size, size, page}} {
		_, _, errno := unix.Syscall6(unix.SYS_MMAP, at+uintptr(part[0]), uintptr(part[1]), unix.PROT_READ|unix.PROT_WRITE,
			unix.MAP_SHARED|unix.MAP_FIXED, uintptr(fd), uintptr(part[2]))
		require.Zero(t, errno)
	}
	r := &ring{fd: -1, size: uint64(size), cons: make([]byte, page), prod: prod, data: prod[page:], event: -1}
	r.event, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	require.NoError(t, err)
	t.Cleanup(func() { unix.Close(r.event) })
	return r
}

// put appends a record with flags, and returns where its header is.
func (r *ring) put(flags uint32, text string) *uint32 {
	at := r.produced()
	header := (*uint32)(unsafe.Pointer(&r.data[at&(r.size-1)]))
	copy(r.data[at&(r.size-1)+recordHeader:], text)
	atomic.StoreUint32(header, uint32(len(text))|flags)
	atomic.StoreUint64(position(r.prod), at+recordHeader+uint64(len(text)+7)&^7)
	return header
}

// all reads what is complete.
func (r *ring) all() (texts []string) {
	var record []byte
	for found := true; found; {
		if record, found = r.next(record); found {
			texts = append(texts, string(record))
		}
	}
	return texts
}

func TestRing(t *testing.T) {
	r := fakeRing(t, os.Getpagesize())
	require.Empty(t, r.all())
	r.put(0, "one")
	r.put(recordDiscard, "given up")
	r.put(0, "two")
	require.Equal(t, []string{"one", "two"}, r.all())
	r.put(recordDiscard, "given up")
	require.Zero(t, r.skip(), "what was discarded is nothing to wait for")
	require.Equal(t, r.produced(), binary.NativeEndian.Uint64(r.cons))
	var want []string
	for i := range 500 { // several times around
		text := string(bytes.Repeat([]byte{byte('a' + i%26)}, 100+i))
		r.put(0, text)
		want = append(want, text)
		if i%3 == 0 {
			require.Equal(t, want, r.all())
			want = nil
		}
	}
	header := r.put(recordBusy, "late")
	done := make(chan []string)
	go func() { done <- r.all() }()
	time.Sleep(time.Millisecond)
	atomic.StoreUint32(header, 4)
	require.Equal(t, append(want, "late"), <-done, "an incomplete record is waited for")
}

// TestRingWakesNobodyWhilePausing verifies that while the reader pauses, the consumer's
// position is never that of the next record, so that no program wakes the reader. The
// position catches up before the reader lets itself be woken.
func TestRingWakesNobodyWhilePausing(t *testing.T) {
	r := fakeRing(t, os.Getpagesize())
	r.pause = longestPause
	for range 1000 {
		before := r.produced()
		r.put(0, "record")
		require.Equal(t, []string{"record"}, r.all())
		require.Equal(t, before, binary.NativeEndian.Uint64(r.cons))
	}
	r.put(0, string(make([]byte, os.Getpagesize()/2)))
	r.all()
	require.Equal(t, r.produced(), binary.NativeEndian.Uint64(r.cons), "a large record is not held back")
	r.put(0, "the last")
	r.all()
	r.since = time.Now().Add(-time.Hour)
	require.NoError(t, r.interrupt())
	require.NoError(t, r.wait())
	require.Zero(t, r.pause)
	require.Equal(t, r.produced(), binary.NativeEndian.Uint64(r.cons))
}

// TestPace verifies how the reader waits after each step: a number of records that are read
// some time after there was nothing to read.
func TestPace(t *testing.T) {
	const size = 1 << 20
	type step struct {
		after time.Duration
		n     int
		bytes uint64
		pause time.Duration
		soon  bool
	}
	ms, us := time.Millisecond, time.Microsecond
	for name, steps := range map[string][]step{
		"rare":             {{time.Hour, 1, 100, 0, false}, {time.Second, 1, 100, 0, false}, {20 * ms, 1, 100, 0, false}},
		"one now and then": {{time.Hour, 1, 100, 0, false}, {5 * ms, 1, 100, 0, true}, {5 * ms, 1, 100, 0, true}, {time.Second, 1, 100, 0, false}},
		"busy, then silent": {{200 * us, 1, 100, 0, true}, {200 * us, 1, 100, 0, true}, {200 * us, 1, 100, 0, true}, {200 * us, 1, 100, ms, true},
			{ms, 5, 500, 2 * ms, true}, {2 * ms, 10, 1000, 4 * ms, true}, {4 * ms, 20, 2000, 4 * ms, true}, {4 * ms, 0, 0, 0, false}},
		"busy, then rare": {{200 * us, 4, 100, ms, true}, {ms, 1, 100, 2 * ms, true}, {2 * ms, 1, 100, 0, true}, {time.Second, 1, 100, 0, false}},
		"an interrupt":    {{200 * us, 4, 100, ms, true}, {100 * us, 0, 0, ms, true}, {ms, 5, 100, 2 * ms, true}},
		"a flood":         {{200 * us, 9, size / 3, 0, true}, {100 * us, 4, 100, ms, true}, {ms, 999, size / 2, ms / 2, true}, {ms / 2, 999, size / 2, 0, true}},
		"much":            {{200 * us, 4, 100, ms, true}, {ms, 999, size / 10, ms, true}, {ms, 999, size / 10, ms, true}, {ms, 99, 100, 2 * ms, true}},
	} {
		t.Run(name, func(t *testing.T) {
			var p pace
			now, at := time.Now(), uint64(0)
			p.since = now
			for i, s := range steps {
				now, at = now.Add(s.after), at+s.bytes
				p.count += s.n
				p.emptied(now, at, size)
				require.Equal(t, s.pause, p.pause, "step %d", i)
				require.Equal(t, s.soon, p.soon, "step %d", i)
			}
		})
	}
}

// TestRingMissesNoWakeUp verifies that the last record before a silence is read at once,
// whatever came before it: a producer that wakes the reader as the kernel does, only if all
// before its record has been read, never leaves it asleep.
func TestRingMissesNoWakeUp(t *testing.T) {
	r := fakeRing(t, os.Getpagesize())
	var err error
	r.fd, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	require.NoError(t, err)
	defer unix.Close(r.fd)
	const bursts = 60
	read := make(chan int, 1)
	go func() {
		n, record, ok := 0, []byte(nil), false
		for {
			if record, ok = r.next(record); ok {
				n++
				if string(record) == "last of a burst" {
					read <- n
				}
				if string(record) == "end" {
					close(read)
					return
				}
				continue
			}
			if err := r.wait(); err != nil {
				t.Error(err)
				return
			}
			var wakes [8]byte
			_, _ = unix.Read(r.fd, wakes[:])
		}
	}()
	produce := func(text string) {
		for r.produced()-atomic.LoadUint64(position(r.cons))+64 > r.size {
			time.Sleep(10 * time.Microsecond) // a program would lose it
		}
		at := r.produced()
		r.put(0, text)
		if atomic.LoadUint64(position(r.cons)) == at {
			_, _ = unix.Write(r.fd, []byte{1, 0, 0, 0, 0, 0, 0, 0})
		}
	}
	sum := 0
	for i := range bursts {
		n := 1 << (i % 8)
		for range n - 1 {
			produce("one of many")
			if i%3 > 0 {
				time.Sleep(time.Duration(i%3) * 100 * time.Microsecond)
			}
		}
		produce("last of a burst")
		sum += n
		select {
		case got := <-read:
			require.Equal(t, sum, got)
		case <-time.After(time.Minute):
			require.FailNow(t, "the reader sleeps", "burst %d, pause %v", i, r.pause)
		}
	}
	produce("end")
	_, open := <-read
	require.False(t, open)
}

// TestWakeInFlood verifies that Wake does not wait until no more records come: in a flood
// that would be never.
func TestWakeInFlood(t *testing.T) {
	r := fakeRing(t, os.Getpagesize())
	s := &Session{unit: &compiler.Unit{}, ring: r}
	read := func() string {
		err := s.nextRecord()
		r.put(0, "more")
		if err != nil {
			return err.Error()
		}
		return string(s.record)
	}
	r.put(0, "one")
	require.Equal(t, "one", read())
	r.put(0, "two")
	require.NoError(t, s.Wake())
	require.Equal(t, []string{"more", "two", "woken", "more", "more"}, []string{read(), read(), read(), read(), read()})
	r.all()
	require.NoError(t, s.Wake())
	require.Equal(t, []string{"woken", "more"}, []string{read(), read()}, "nothing is left")
	require.NoError(t, s.Wake())
	require.NoError(t, s.Wake())
	require.Equal(t, []string{"more", "woken", "more"}, []string{read(), read(), read()}, "once for both")
	r.all()
	require.NoError(t, s.Wake())
	r.put(recordDiscard, "given up")
	require.Equal(t, "woken", read(), "what was discarded is nothing to read")
}
