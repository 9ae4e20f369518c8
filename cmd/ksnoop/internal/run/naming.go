package run

import (
	"errors"
	"slices"
	"time"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/runtime"
	"github.com/ksnoop/ksnoop/runtime/cgroup"
	"github.com/ksnoop/ksnoop/runtime/recording"
	"github.com/ksnoop/ksnoop/runtime/userstack"
)

// naming writes how things are named that may be gone when a recording is read: frames
// of processes and the containers of cgroups, before the first record with them.
type naming struct {
	stacks  *userstack.Stacks // nil if no record has frames of processes
	cgroups *cgroup.Table     // nil if no record has a cgroup
	// What is in the file.
	frames     userstack.Named
	containers recording.Containers
}

// open looks for what the records of a unit have.
func (n *naming) open(unit *compiler.Unit) {
	has := func(b compiler.Builtin) bool {
		return slices.ContainsFunc(unit.Events, func(ev *compiler.EventType) bool {
			return slices.ContainsFunc(slices.Concat(ev.Items, ev.Probe.Key), func(v *compiler.Value) bool { return v.Base.Builtin == b })
		})
	}
	if has(compiler.UserStack) {
		n.stacks = userstack.Running()
	}
	if has(compiler.CgroupID) {
		n.cgroups = cgroup.NewTable()
	}
}

// begin forgets what was in another file.
func (n *naming) begin() { n.frames, n.containers = userstack.Named{}, recording.Containers{} }

// needed reports whether records have frames or cgroups at all.
func (n *naming) needed() bool { return n.stacks != nil || n.cgroups != nil }

// event writes the names of the values of an event.
func (n *naming) event(ev *runtime.Event, out *recording.Writer) error {
	return n.whole(func() error { return n.values(ev, out) })
}

// whole calls a function that writes names, and again if it was too much for the memory of
// names: the first ones were forgotten then, here and in a reader.
func (n *naming) whole(write func() error) error {
	cleared := func() int { return n.frames.Cleared() + n.containers.Cleared() }
	before := cleared()
	if err := write(); err != nil || cleared() == before {
		return err
	}
	return write()
}

func (n *naming) values(ev *runtime.Event, out *recording.Writer) (err error) {
	for i := range ev.Values {
		if v := &ev.Values[i]; v.Base.Builtin == compiler.UserStack && v.Fault == compiler.NoFault {
			pid, at := ev.Origin(i)
			err = errors.Join(err, n.stack(pid, v.Data, at, out))
		}
	}
	return errors.Join(err, n.cgroupsOf(ev.Values, out))
}

func (n *naming) stack(pid uint32, data []byte, when time.Duration, out *recording.Writer) (err error) {
	n.stacks.Each(pid, data, when, func(k userstack.Key, f userstack.Frame) {
		if n.frames.Add(k, f) {
			err = errors.Join(err, out.Frame(k, f))
		}
	})
	return err
}

// cgroupsOf writes the containers of the cgroups among values.
func (n *naming) cgroupsOf(values []runtime.Value, out *recording.Writer) error {
	for i := range values {
		v := &values[i]
		if v.Base.Builtin != compiler.CgroupID || v.Fault != compiler.NoFault {
			continue
		}
		id := v.Uint64()
		if _, known := n.containers.Of(id); known {
			continue
		}
		if c, ok := n.cgroups.Of(id); ok {
			k := recording.Container{Cgroup: id, Container: c}
			n.containers.Add(k)
			if err := out.Container(k); err != nil {
				return err
			}
		}
	}
	return nil
}

// tables writes the names in the keys of tables.
func (n *naming) tables(all []*runtime.Table, out *recording.Writer) error {
	if n.cgroups == nil {
		return nil
	}
	return n.whole(func() error {
		for _, t := range all {
			for _, row := range t.Rows {
				if err := n.cgroupsOf(row.Key, out); err != nil {
					return err
				}
			}
		}
		return nil
	})
}
