package runtime

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// counterMemory is [compiler.CountersMap], or [compiler.ObjectsMap], mapped into this
// process, shared with the programs. Any goroutine may use it.
type counterMemory struct {
	mu    sync.RWMutex
	bytes []byte // nil once unmapped
}

func mapCounters(m *ebpf.Map) (*counterMemory, error) {
	page := unix.Getpagesize()
	size := (int(m.ValueSize()) + page - 1) / page * page
	b, err := unix.Mmap(m.FD(), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map the counters into memory: %w", err)
	}
	return &counterMemory{bytes: b}, nil
}

var errUnmapped = fmt.Errorf("read the counters: %w", os.ErrClosed)

// use calls f with a function that loads a word, unless the memory is unmapped.
func (c *counterMemory) use(f func(load func(off int) uint64)) error {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.bytes == nil {
		return errUnmapped
	}
	f(func(off int) uint64 { return atomic.LoadUint64(c.word(off)) })
	return nil
}

func (c *counterMemory) store(off int, v uint64) error {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.bytes == nil {
		return errUnmapped
	}
	atomic.StoreUint64(c.word(off), v)
	return nil
}

// word returns the address of the word at off, which is a multiple of 8.
func (c *counterMemory) word(off int) *uint64 {
	return (*uint64)(unsafe.Pointer(&c.bytes[off : off+8][0]))
}

func (c *counterMemory) unmap() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.bytes == nil {
		return nil
	}
	b := c.bytes
	c.bytes = nil
	return unix.Munmap(b)
}
