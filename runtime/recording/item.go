package recording

import (
	"time"
	"unsafe"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/runtime"
	"github.com/ksnoop/ksnoop/runtime/cgroup"
	"github.com/ksnoop/ksnoop/runtime/known"
	"github.com/ksnoop/ksnoop/runtime/userstack"
)

// Origin says where and of what a recording was made.
type Origin struct {
	Version string // of ksnoop
	runtime.System
	Arch  string   // as Go names it
	Specs []string // as the user gave them
	// Part counts the files of a recording that is rotated, from 0 on.
	Part  int
	Clock Clock // at the beginning
}

// Clock is a pair of readings: a time of CLOCK_MONOTONIC, and what had to be added to it
// then to get the time of day.
type Clock struct {
	Mono, Offset time.Duration
}

// kind is the type of an entry of a block.
type kind uint8

const (
	originEntry    kind = iota + 1 // the first entry of a file; it also has the unit
	recordEntry                    // a record as the program wrote it
	symbolsEntry                   // lines of /proc/kallsyms for addresses in the records that follow
	clockEntry                     // a clock pair, which is valid from here on
	lossEntry                      // what was lost so far
	tableEntry                     // what was counted of a spec with aggregates, so far
	endEntry                       // the final counts
	continuedEntry                 // the recording continues in another file
	frameEntry                     // how a frame of a process was named
	containerEntry                 // the container of a cgroup
	againEntry                     // the objects of iterators follow again
)

// Item is an entry of a recording: one of the fields is set.
type Item struct {
	Record []byte // as the program wrote it; valid until the next item
	Clock  *Clock
	Loss   *Loss
	Table  *runtime.Table
	End    *runtime.SessionCounts // the last item of a whole recording
	Next   bool                   // the recording continues in another file
	Again  bool                   // the objects of iterators follow again
	Frame  *Frame                 // of a process, in records that follow
	// Container is that of a cgroup in records that follow.
	Container *Container
}

// Loss has the counts of the events that have lost something since the last Loss, and
// what was missed by the programs of these events, and by programs that functions share, if
// they have missed calls since.
type Loss struct {
	Time   time.Duration // CLOCK_MONOTONIC
	Counts []runtime.Counts
	Missed []runtime.Missed
}

// Container is the container of a cgroup.
type Container struct {
	Cgroup uint64 // its id
	cgroup.Container
}

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

func (c *codec) container(k *Container) {
	c.uint(&k.Cgroup)
	c.name(&k.Runtime, &k.ID, &k.Name)
}

// Frame is a frame of a process, and how it was named.
type Frame struct {
	userstack.Key
	userstack.Frame
}

func (c *codec) frame(f *Frame) {
	number(c, &f.PID)
	c.flags(&f.Caller)
	raw := f.Raw[:]
	if c.bytes(&raw); copy(f.Raw[:], raw) != len(f.Raw) {
		c.fail()
	}
	c.name(&f.Symbol, &f.File, &f.BuildID)
	number(c, &f.In, &f.Offset, &f.Address)
}

func (c *codec) origin(o *Origin) {
	c.text(&o.Version, &o.Kernel, &o.Arch, &o.Host, &o.Boot)
	c.texts(&o.Specs)
	number(c, &o.Part)
	c.clock(&o.Clock)
}

// clock is a clock pair. The offset may be negative.
func (c *codec) clock(k *Clock) {
	number(c, &k.Mono)
	offset := uint64(k.Offset)
	c.uint(&offset)
	k.Offset = time.Duration(offset)
}

func (c *codec) loss(l *Loss, unit *compiler.Unit) {
	number(c, &l.Time)
	each(c, &l.Counts, func(n *runtime.Counts) {
		at := -1
		if !c.reading {
			at = n.Number
		}
		c.index(&at, len(unit.Events))
		c.counts(n)
		if c.reading {
			if at < 0 {
				c.fail()
				return
			}
			n.EventType = unit.Events[at]
		}
	})
	if c.reading && len(c.buf) == 0 || !c.reading && len(l.Missed) == 0 {
		return // nothing was missed
	}
	c.missed(&l.Missed, unit)
}

func (c *codec) counts(n *runtime.Counts) {
	number(c, &n.Lost, &n.NoRoom, &n.Unreadable, &n.Unpaired, &n.Filtered, &n.Matched, &n.Limited, &n.Replaced, &n.Open, &n.Delivered, &n.Unread)
}

// end is the counts of all events, and what each program missed.
func (c *codec) end(s *runtime.SessionCounts, unit *compiler.Unit) {
	number(c, &s.Unfollowed)
	if c.reading {
		s.Events = make([]runtime.Counts, len(unit.Events))
	}
	for i, ev := range unit.Events {
		if c.reading {
			s.Events[i].EventType = ev
		}
		c.counts(&s.Events[i])
	}
	c.missed(&s.Missed, unit)
}

// missed reads or writes the missed calls of each program.
func (c *codec) missed(all *[]runtime.Missed, unit *compiler.Unit) {
	d := &description{codec: *c}
	d.gather(unit)
	each(&d.codec, all, func(m *runtime.Missed) {
		d.kind(&m.Kind)
		number(&d.codec, &m.N)
		d.flags(&m.Uncounted)
		each(&d.codec, &m.Probes, d.ofProbe)
		if len(m.Probes) == 0 {
			d.fail()
		}
	})
	*c = d.codec
}

// table is a table of a unit. which is the number of its layout when writing.
func (c *codec) table(t *runtime.Table, which int, unit *compiler.Unit) {
	n := which
	c.index(&n, len(unit.Tables))
	if n < 0 || c.err != nil {
		c.fail()
		return
	}
	l := unit.Tables[n]
	if c.reading {
		p := unit.Events[l.Events[0]].Probe
		t.Key, t.Aggregates, t.ByFunction = p.Key, p.Aggregates, l.Function >= 0
		if len(t.Aggregates) == 0 {
			c.fail()
		}
	}
	c.text(&t.Label)
	number(c, &t.Since, &t.Time)
	number(c, &t.Full, &t.Faulted)
	keys := map[string][]*compiler.Value{} // of the functions of a glob, whose values can have other types
	if c.reading && t.ByFunction {
		for _, n := range l.Events {
			p := unit.Events[n].Probe
			keys[p.Func.Name] = p.Key
		}
	}
	each(c, &t.Rows, func(r *runtime.Row) { c.row(r, t, keys) })
}

// row is a row of a table. keys are those of the functions when reading.
func (c *codec) row(r *runtime.Row, t *runtime.Table, keys map[string][]*compiler.Value) {
	c.text(&r.Func)
	number(c, &r.Calls)
	key, known := keys[r.Func]
	if !known {
		key = t.Key
	}
	if c.reading && (r.Calls == 0 || len(key) != len(t.Key)) {
		c.fail()
	}
	if c.reading {
		c.take(unsafe.Sizeof(runtime.Value{})*uintptr(len(t.Key)) + unsafe.Sizeof(runtime.Cell{})*uintptr(len(t.Aggregates)))
		if c.err != nil {
			return
		}
		r.Key, r.Cells = make([]runtime.Value, len(t.Key)), make([]runtime.Cell, len(t.Aggregates))
	}
	for i := range r.Key {
		if c.reading {
			r.Key[i].Value = key[i]
		}
		c.keyPart(&r.Key[i])
	}
	for i := range r.Cells {
		c.int(&r.Cells[i].Number)
		each(c, &r.Cells[i].Buckets, func(b *runtime.Bucket) {
			c.int(&b.From)
			c.int(&b.To)
			number(c, &b.Count)
		})
	}
}

func (c *codec) keyPart(v *runtime.Value) {
	c.bytes(&v.Data)
	number(c, &v.Addr)
	number(c, &v.Full)
	number(c, &v.Fault)
	c.flags(&v.Cut)
	if c.reading {
		v.Data = append([]byte(nil), v.Data...) // the table outlives the block
	}
}

// int is a number of 128 bits: the high half, then the low one.
func (c *codec) int(n *runtime.Int) {
	high, low := n.Halves()
	h := uint64(high)
	c.uint(&h)
	c.uint(&low)
	if c.reading {
		*n = runtime.JoinInt(int64(h), low)
	}
}
