package runtime

import (
	"fmt"
	"math"
	"math/bits"
	"os"
	"strings"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/compiler"
)

// countsLocked reports whether maps and programs count against the user's limit of
// locked memory. From 5.11 on they count for the cgroup.
func (v version) countsLocked() bool { return !v.atLeast(5, 11) }

// lockable raises the limit of locked memory where maps count against it, and
// returns how many bytes they may take.
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

// lockableHere calls lockable for the running kernel.
func lockableHere() uint64 {
	v, _, err := release()
	if err != nil {
		return math.MaxUint64
	}
	return lockable(v)
}

// ringSizes returns the sizes in bytes to try for the ring buffer of a unit, if
// maps may take limit bytes: half of that or less, if a record fits.
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

// withRing returns c with a ring buffer of size bytes, or c itself if size is 0.
func withRing(c *ebpf.CollectionSpec, size uint32) *ebpf.CollectionSpec {
	if size == 0 {
		return c
	}
	c = c.Copy()
	c.Maps[compiler.EventsMap].MaxEntries = size
	return c
}

func memlockNote(asked, got uint32, limit uint64) string {
	return fmt.Sprintf("the ring buffer has %d KiB instead of %d: the limit of locked memory is %d KiB, and %s", got>>10, asked>>10, limit>>10, memlockCure)
}

const memlockCure = "before Linux 5.11 it counts maps: raise it (ulimit -l unlimited), or give ksnoop CAP_SYS_RESOURCE"

// noMemory returns an error with the cure if a collection takes too much memory.
func noMemory(c *ebpf.CollectionSpec, err error) error {
	return &LoadError{fmt.Errorf("no memory for %s: lower --pages, or raise the limit of the memory cgroup (memory.max)", refusedMap(c, err))}
}

// refusedMap returns the name of the map that an error of package ebpf is about,
// which only its text tells.
func refusedMap(c *ebpf.CollectionSpec, err error) string {
	for name, m := range c.Maps {
		switch {
		case !strings.Contains(err.Error(), "map "+name+": "):
		case m.Type == ebpf.RingBuf:
			return fmt.Sprintf("the ring buffer of %d KiB", m.MaxEntries>>10)
		default:
			return fmt.Sprintf("the map %q", name)
		}
	}
	return "the programs and maps"
}
