package runtime

import (
	"fmt"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/rlimit"
	"golang.org/x/sys/unix"
)

// raiseLockedMemory lets maps be as large as they are: before 5.11 they count
// against RLIMIT_MEMLOCK.
func raiseLockedMemory() error {
	if v, _, err := release(); err == nil && v.atLeast(5, 11) {
		return nil
	}
	return rlimit.RemoveMemlock()
}

// noMemory says what to do if a collection takes more memory than there is.
func noMemory(c *ebpf.CollectionSpec, err error) error {
	return fmt.Errorf("load the programs: no memory for %s: lower --pages, or raise the limit of the memory cgroup (memory.max)", refusedMap(c, err))
}

// noLockedMemory says the same where maps are locked memory, before 5.11.
func noLockedMemory(c *ebpf.CollectionSpec, err error) error {
	var limit unix.Rlimit
	_ = unix.Getrlimit(unix.RLIMIT_MEMLOCK, &limit)
	return fmt.Errorf("load the programs: no memory for %s: RLIMIT_MEMLOCK is %d bytes: lower --pages, raise it (ulimit -l), or add CAP_SYS_RESOURCE", refusedMap(c, err), limit.Cur)
}

// refusedMap is the map that an error of cilium's is about, whose text alone
// says which.
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
