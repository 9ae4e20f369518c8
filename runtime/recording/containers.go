package recording

import "github.com/ksnoop/ksnoop/runtime/cgroup"

// Containers are the containers of cgroups in a recording. The zero value has none.
type Containers struct {
	known map[uint64]cgroup.Container
	size  int // of the texts of all that were added, in bytes
}

// mostContainers is the number of cgroups whose containers are remembered, and mostTexts
// the size of their texts in bytes. After that, all are forgotten. The writer
// of a recording and its reader do so at the same cgroup.
const (
	mostContainers = 1 << 16
	mostTexts      = 64 << 20
)

// Of returns the container that a cgroup is in.
func (c *Containers) Of(id uint64) (cgroup.Container, bool) {
	k, ok := c.known[id]
	return k, ok
}

// Add remembers a container.
func (c *Containers) Add(k Container) {
	size := len(k.Runtime) + len(k.ID) + len(k.Name)
	if c.size += size; len(c.known) >= mostContainers || c.size > mostTexts {
		clear(c.known)
		c.size = size
	}
	if c.known == nil {
		c.known = map[uint64]cgroup.Container{}
	}
	c.known[k.Cgroup] = k.Container
}
