package runtime

import (
	"fmt"
	"strings"

	"github.com/cilium/ebpf"
)

// noMemory says what to do if a collection takes more memory than there is.
func noMemory(c *ebpf.CollectionSpec, err error) error {
	return fmt.Errorf("load the programs: no memory for %s: lower --pages, or raise the limit of the memory cgroup (memory.max)", refusedMap(c, err))
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
