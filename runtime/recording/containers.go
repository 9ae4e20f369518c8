package recording

import (
	"github.com/ksnoop/ksnoop/runtime/cgroup"
	"github.com/ksnoop/ksnoop/runtime/known"
)

// Containers are the containers of cgroups in a recording. The zero value has none.
type Containers struct {
	names known.Names[uint64, cgroup.Container]
}

// Of returns the container that a cgroup is in.
func (c *Containers) Of(id uint64) (cgroup.Container, bool) { return c.names.Of(id) }

// Cleared returns how often all containers were forgotten, as there were too many.
func (c *Containers) Cleared() int { return c.names.Cleared }

// Add remembers a container.
func (c *Containers) Add(k Container) {
	c.names.Add(k.Cgroup, k.Container, len(k.Runtime)+len(k.ID)+len(k.Name))
}
