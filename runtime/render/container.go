package render

import (
	"slices"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/runtime"
	"github.com/ksnoop/ksnoop/runtime/cgroup"
)

// Containers finds the container that a cgroup belongs to.
type Containers interface {
	Of(id uint64) (c cgroup.Container, ok bool)
}

// names finds the names that a printer shows for values.
type names struct {
	symbols    *Symbols   // of kernel addresses
	containers Containers // or nil if they are not to be looked for
}

// container returns the container that a cgroup is in, or one without a name if it is in
// none.
func (n *names) container(id uint64) cgroup.Container {
	if n.containers == nil {
		return cgroup.Container{}
	}
	c, _ := n.containers.Of(id)
	return c
}

// joinContainers returns a table with one row for all cgroups of a container, and one for
// those that are in none, if a part of its key is $container.
func joinContainers(t *runtime.Table, n *names) *runtime.Table {
	if !slices.ContainsFunc(t.Key, func(v *compiler.Value) bool { return v.Format == compiler.ContainerFormat }) {
		return t
	}
	return t.Joined(func(v *runtime.Value) []byte {
		if v.Format != compiler.ContainerFormat {
			return v.Data
		}
		c := n.container(v.Uint64())
		return []byte(c.Runtime + " " + c.ID + " " + c.Name)
	})
}

// containerOf prints the container of the cgroup that the values have, if they have one and
// it is in a container.
func (p *jsonPrinter) containerOf(values []runtime.Value) {
	for i := range values {
		v := &values[i]
		if v.Base.Builtin != compiler.CgroupID || v.Fault != compiler.NoFault {
			continue
		}
		c := p.container(v.Uint64())
		if c.Runtime == "" {
			return
		}
		p.text = quoteJSON(append(p.text, `,"container":{"runtime":`...), c.Runtime)
		if c.ID != "" {
			p.text = quoteJSON(append(p.text, `,"id":`...), c.ID)
		}
		if c.Name != "" {
			p.text = quoteJSON(append(p.text, `,"name":`...), c.Name)
		}
		p.text = append(p.text, '}')
		return
	}
}
