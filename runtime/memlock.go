package runtime

import (
	"fmt"
	"math"
	"math/bits"
	"os"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/compiler"
)

// countsLocked says whether maps and programs count against the user's limit of
// locked memory; from 5.11 on they count for the cgroup.
func (v version) countsLocked() bool { return !v.atLeast(5, 11) }

// lockable raises the limit of locked memory where maps count against it, and
// is how much they may take.
func lockable(v version) uint64 {
	if !v.countsLocked() {
		return math.MaxUint64
	}
	all := unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY}
	if unix.Setrlimit(unix.RLIMIT_MEMLOCK, &all) == nil {
		return math.MaxUint64
	}
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_MEMLOCK, &limit) != nil {
		return math.MaxUint64
	}
	limit.Cur = limit.Max
	_ = unix.Setrlimit(unix.RLIMIT_MEMLOCK, &limit)
	return limit.Max
}

// lockableHere is the same for the running kernel.
func lockableHere() uint64 {
	v, _, err := release()
	if err != nil {
		return math.MaxUint64
	}
	return lockable(v)
}

// ringSizes are the sizes to try for the ring buffer of a unit, where maps may
// take so much memory: it may have half of it or less, if its records fit.
func ringSizes(u *compiler.Unit, limit uint64) []uint32 {
	ring := u.Collection.Maps[compiler.EventsMap]
	if ring == nil || uint64(ring.MaxEntries) <= limit/2 {
		return []uint32{0}
	}
	least := uint32(os.Getpagesize())
	for _, ev := range u.Events {
		least = max(least, uint32(ev.Layout.Size)+8)
	}
	var sizes []uint32
	for size := uint32(1) << bits.Len64(limit/2) / 2; size >= least; size /= 2 {
		sizes = append(sizes, size)
	}
	if sizes == nil {
		return []uint32{0}
	}
	return sizes
}

// withRing is a collection with a ring buffer of another size; 0 is its own.
func withRing(c *ebpf.CollectionSpec, size uint32) *ebpf.CollectionSpec {
	if size == 0 {
		return c
	}
	c = c.Copy()
	c.Maps[compiler.EventsMap].MaxEntries = size
	return c
}

// LockedMemoryError says that maps take more than the limit of locked memory,
// in bytes. What was detached before may still count: it is freed after a grace
// period.
type LockedMemoryError struct{ Limit uint64 }

func (e *LockedMemoryError) Error() string {
	return fmt.Sprintf("load the programs: their maps take more than the limit of locked memory, %d KiB, and %s", e.Limit>>10, memlockCure)
}

func memlockNote(asked, got uint32, limit uint64) string {
	return fmt.Sprintf("the ring buffer has %d KiB instead of %d: the limit of locked memory is %d KiB, and %s", got>>10, asked>>10, limit>>10, memlockCure)
}

const memlockCure = "before Linux 5.11 it counts maps: raise it (ulimit -l unlimited), or give ksnoop CAP_SYS_RESOURCE"
