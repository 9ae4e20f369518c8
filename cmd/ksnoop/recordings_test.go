package main

import (
	"bytes"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/target"
	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/resolve"
	"github.com/ksnoop/ksnoop/kallsyms"
	"github.com/ksnoop/ksnoop/runtime"
	"github.com/ksnoop/ksnoop/runtime/cgroup"
	"github.com/ksnoop/ksnoop/runtime/recording"
	"github.com/ksnoop/ksnoop/runtime/render"
	"github.com/ksnoop/ksnoop/runtime/userstack"
	"github.com/stretchr/testify/require"
)

// traceRun is everything that a trace passes to its output, in this order.
type traceRun struct {
	name   string
	unit   *compiler.Unit
	steps  []recording.Item
	counts runtime.SessionCounts
}

// recordedSymbols have what makes names difficult: aliases, ends of sections, and
// modules next to each other.
const recordedSymbols = `ffffffff81000000 T _stext
ffffffff81000000 T vfs_read
ffffffff81000000 t __vfs_read
ffffffff81000100 T vfs_open
ffffffff81000180 t vfs_open
ffffffff81000200 t local.cold
ffffffff81000300 T _etext
ffffffff82000000 D init_task
ffffffff82000400 d table
ffffffff82000800 B __bss_stop
ffffffffc0000000 t mod_init	[mod]
ffffffffc0000040 t mod_exit	[mod]
ffffffffc0001000 t other	[two]
`

func symbolTable(t testing.TB) *kallsyms.Table {
	table, err := kallsyms.Read(strings.NewReader(recordedSymbols), nil)
	require.NoError(t, err)
	return table
}

// traceRuns returns runs with records of all kinds of events, tables and losses.
func traceRuns(t testing.TB) (runs []*traceRun) {
	rnd := rand.New(rand.NewPCG(1, 2))
	add := func(name string, unit *compiler.Unit) {
		run := &traceRun{name: name, unit: unit}
		runs = append(runs, run)
		clock := func(offset time.Duration) {
			at := time.Duration(len(run.steps)+1) * 10 * time.Millisecond
			run.steps = append(run.steps, recording.Item{Clock: &recording.Clock{Mono: at, Offset: offset}})
		}
		for i := range 300 {
			n := rnd.IntN(len(unit.Events))
			if ev := unit.Events[n]; ev.Probe.Measure != compiler.NoMeasure || ev.Kind == compiler.BeginEvent {
				continue
			}
			rec := randomRecord(unit, n, rnd, time.Duration(i+1)*10*time.Millisecond)
			run.steps = append(append(run.steps, framesIn(t, unit, rec, rnd)...), containersIn(unit, rec)...)
			run.steps = append(run.steps, recording.Item{Record: rec})
			switch i % 100 {
			case 33:
				lost := runtime.Counts{EventType: unit.Events[n], Counters: compiler.Counters{Lost: 5, NoRoom: 1}, Delivered: 7}
				loss := &recording.Loss{Time: time.Duration(i) * 10 * time.Millisecond, Counts: []runtime.Counts{lost}, Missed: missedBy(unit, rnd)}
				run.steps = append(run.steps, recording.Item{Loss: loss})
			case 50:
				run.steps = append(run.steps, recording.Item{Again: true})
			case 66:
				clock(1_700_000_000e9 + time.Duration(i)*time.Hour)
			}
		}
		for range 2 {
			for _, l := range unit.Tables {
				run.steps = append(run.steps, recording.Item{Table: randomTable(unit, l, rnd)})
			}
		}
		for _, ev := range unit.Events {
			run.counts.Events = append(run.counts.Events, runtime.Counts{
				EventType: ev, Counters: compiler.Counters{Lost: 1 + rnd.Uint64N(3), Matched: rnd.Uint64N(1000), Filtered: 9, Unreadable: 1, Replaced: 2, Open: 3}, Unread: rnd.Uint64N(2),
			})
		}
		run.counts.Missed = missedBy(unit, rnd)
	}
	add("values", recordUnit(t))
	add("chain", unitOf(t, resolve.Wishes{Chain: true}, "vfs_open(file, return)", "vfs_read(count, *file, return)"))
	add("diff", unitOf(t, resolve.Wishes{}, "vfs_read(count, diff(file->flags), diff(*file), return)"))
	add("span", unitOf(t, resolve.Wishes{}, "vfs_open(path, file->flags) => vfs_read($duration, count, file) on file"))
	add("tables", unitOf(t, resolve.Wishes{}, "vfs_read($comm, count:symbol, $kstack, count(), avg(count), hist($duration), lhist(count, 0, 100, 10), max(count))", "vfs_open(count())",
		"vfs_[or]*(count(), max($duration))", "tp:t*(count())", "vfs_open(path) => vfs_read(count()) on file"))
	add("containers", unitOf(t, resolve.Wishes{}, "vfs_read($container, $cgroup, count(), sum(count), hist(count), lhist(count, 0, 100, 10), max(count))"))
	add("strings", unitOf(t, resolve.Wishes{}, "vfs_open(path, path:ustring, file) if path ~ \"/etc*\""))
	comm, err := target.CommCondition("comm", "cat*")
	require.NoError(t, err)
	add("with --comm", unitIf(t, comm, resolve.Wishes{}, "p:mine vfs_read count=%dx:u64", "r:back vfs_read n=$retval:s64", "vfs_open(file)"))
	add("glob", unitOf(t, resolve.Wishes{}, "vfs_[or]*($arg1, return, count(), sum(return))")) // of other types in each function
	return runs
}

// traceRunOf returns the run with a name.
func traceRunOf(t testing.TB, name string) *traceRun {
	all := traceRuns(t)
	return all[slices.IndexFunc(all, func(r *traceRun) bool { return r.name == name })]
}

// missedBy returns what the programs of a unit have missed, if that is anything.
func missedBy(unit *compiler.Unit, rnd *rand.Rand) (all []runtime.Missed) {
	if rnd.IntN(3) == 0 {
		return nil
	}
	for _, a := range unit.Attachments {
		m := runtime.Missed{Kind: a.Kind, N: rnd.Uint64N(5), Uncounted: rnd.IntN(2) == 0}
		for _, p := range a.Places {
			m.Probes = append(m.Probes, p.Probe)
		}
		all = append(all, m)
	}
	return all
}

// randomRecord returns a record of an event, with addresses, texts and small numbers
// more often than chance would have it.
func randomRecord(unit *compiler.Unit, event int, rnd *rand.Rand, at time.Duration) []byte {
	l := unit.Events[event].Layout
	var rec []byte
	for len(rec) < l.Least()+8*rnd.IntN(20) {
		word := rnd.Uint64()
		switch rnd.IntN(6) {
		case 0:
			word = 0xffffffff81000000 + uint64(rnd.IntN(0x400))
		case 1:
			word = []uint64{0xffffffff82000010, 0xffffffff82000410, 0xffffffff82000900, 0xffffffffc0000044, 0xffffffffc0001010, 0xffffffff80ffffff, 1<<64 - 2}[rnd.IntN(7)]
		case 2:
			word = uint64(rnd.IntN(300))
		case 3:
			word = binary.LittleEndian.Uint64([]byte("a text\x00\x1b"))
		case 4:
			word = 0
		}
		rec = binary.LittleEndian.AppendUint64(rec, word)
	}
	rec = fitRecord(unit, rec, event)
	for i := range unit.Events[event].Items { // most values could be read
		rec[l.Faults+i] = byte(max(0, rnd.IntN(12)-9))
	}
	binary.LittleEndian.PutUint64(rec[compiler.HeaderTime:], uint64(at))
	copy(rec[compiler.HeaderComm:], "cat\x00\x1b[2J")
	return rec
}

// framesIn puts possible frames into the stacks of processes in a record, and returns names
// of some of them.
func framesIn(t testing.TB, unit *compiler.Unit, rec []byte, rnd *rand.Rand) (all []recording.Item) {
	ev := unit.Events[binary.LittleEndian.Uint32(rec)]
	for i, v := range ev.Items {
		if v.Base.Builtin != compiler.UserStack {
			continue
		}
		s := ev.Layout.Slot(i, len(rec))
		binary.LittleEndian.PutUint64(rec[s.Off:], 4*userstack.FrameSize)
		for n := range 4 {
			binary.LittleEndian.PutUint32(rec[s.Data+n*userstack.FrameSize:], uint32(1+rnd.IntN(2)))
		}
		var decoded runtime.Event
		require.NoError(t, decoded.Decode(unit, rec))
		userstack.New("").Each(decoded.PID, decoded.Values[i].Data, decoded.Time, func(k userstack.Key, _ userstack.Frame) {
			if rnd.IntN(3) > 0 {
				f := userstack.Frame{Symbol: "main", In: rnd.Uint64N(99), File: "/bin/a\x1b", Offset: 7}
				all = append(all, recording.Item{Frame: &recording.Frame{Key: k, Frame: f}})
			}
		})
	}
	return all
}

// containersIn changes the cgroups in a record to some of a few, and returns their
// containers.
func containersIn(unit *compiler.Unit, rec []byte) (all []recording.Item) {
	ev := unit.Events[binary.LittleEndian.Uint32(rec)]
	for i, v := range ev.Items {
		if v.Base.Builtin != compiler.CgroupID {
			continue
		}
		at := ev.Layout.Slot(i, len(rec)).Off
		id := binary.LittleEndian.Uint64(rec[at:]) % 4
		binary.LittleEndian.PutUint64(rec[at:], id)
		if id > 0 {
			c := cgroup.Container{Runtime: "docker", ID: strings.Repeat("ab", 32), Name: "a container\x1b"}
			all = append(all, recording.Item{Container: &recording.Container{Cgroup: id, Container: c}})
		}
	}
	return all
}

func randomTable(unit *compiler.Unit, l *compiler.TableLayout, rnd *rand.Rand) *runtime.Table {
	probe := unit.Events[l.Events[0]].Probe
	label := l.Asked.Target()
	if l.Asked.Ending != nil {
		label += " => " + l.Asked.Ending.Target()
	}
	table := &runtime.Table{
		Label: label, ByFunction: l.Function >= 0, Key: probe.Key, Aggregates: probe.Aggregates, Since: time.Second, Time: 3 * time.Second,
		Full: 4, Faulted: 5,
	}
	for range 20 {
		row, key := runtime.Row{Calls: 1 + rnd.Uint64N(10)}, probe.Key
		if table.ByFunction {
			p := unit.Events[l.Events[rnd.IntN(len(l.Events))]].Probe
			row.Func, key = p.Func.Name, p.Key
		}
		for _, v := range key {
			data := binary.LittleEndian.AppendUint64(nil, 0xffffffff81000000+rnd.Uint64N(0x400))
			switch {
			case v.Base.Builtin == compiler.Comm:
				data = []byte("a name\x00\x00\x00\x00\x00\x00\x00\x00\x00")
			case v.Scalar != nil:
				data = data[:v.Scalar.Size]
			}
			row.Key = append(row.Key, runtime.Value{Value: v, Data: data, Full: len(data)})
		}
		for _, a := range probe.Aggregates {
			cell := runtime.Cell{Number: runtime.NewInt(rnd.Int64() - 1<<62)}
			if a.Kind >= compiler.Hist {
				low, high := a.Edges(3)
				cell = runtime.Cell{Buckets: []runtime.Bucket{{From: runtime.NewUint(low), To: runtime.NewUint(high), Count: rnd.Uint64N(9)}}}
			}
			row.Cells = append(row.Cells, cell)
		}
		table.Rows = append(table.Rows, row)
	}
	return table
}

// recordedVersion is the version of the ksnoop that recorded, which need not be this one.
const recordedVersion = "1"

var recordedSystem = runtime.System{Kernel: "6.12.0-test", Host: "h", Boot: "b"}

// began is the clock pair at the beginning.
var began = recording.Clock{Mono: time.Second, Offset: 1_700_000_000e9}

// traced returns what trace prints of a run.
func (r *traceRun) traced(t testing.TB, o render.Options) string {
	offset := began.Offset
	o.Version, o.System, o.Wall = recordedVersion, &recordedSystem, func() time.Duration { return offset }
	table := func() (kallsyms.Finder, error) { return symbolTable(t).Finder() }
	o.Symbols = render.NewSymbols(table, func(err error) { t.Error(err) })
	o.Stacks = userstack.New("")
	o.Stacks.Named = &userstack.Named{}
	containers := &recording.Containers{}
	o.Containers = containers
	o.Pointers = render.NewPointerNamesOf("amd64", table)
	o.Pointers.Wait()
	out, err := render.New(r.unit, o)
	require.NoError(t, err)
	var text strings.Builder
	var ev runtime.Event
	for _, step := range r.steps {
		switch {
		case step.Record != nil:
			require.NoError(t, ev.Decode(r.unit, step.Record))
			require.NoError(t, out.Event(&ev))
		case step.Frame != nil:
			o.Stacks.Named.Add(step.Frame.Key, step.Frame.Frame)
		case step.Container != nil:
			containers.Add(*step.Container)
		case step.Clock != nil:
			require.NoError(t, out.Flush(&text))
			offset = step.Clock.Offset
		case step.Table != nil:
			require.NoError(t, out.Table(step.Table))
		case step.Loss != nil:
			for _, l := range render.NewLosses(r.unit, step.Loss.Counts, step.Loss.Missed, step.Loss.Time) {
				out.Loss(l)
			}
		case step.Again:
			out.Again()
		}
	}
	out.End(render.NewSummary(r.unit, r.counts))
	require.NoError(t, out.Flush(&text))
	return text.String()
}

// recorded returns the path of a recording of a run, in which addresses have no names.
func (r *traceRun) recorded(t testing.TB) string {
	var file bytes.Buffer
	r.record(t, &file, nil)
	path := filepath.Join(t.TempDir(), "recording")
	require.NoError(t, os.WriteFile(path, file.Bytes(), 0o644))
	return path
}

// record writes a recording of a run, with blocks of a few records each.
func (r *traceRun) record(t testing.TB, to io.Writer, symbols kallsyms.Finder) {
	from := recording.Origin{Version: recordedVersion, System: recordedSystem, Arch: "amd64", Specs: []string{"vfs_read"}, Clock: began}
	w, err := recording.NewWriter(to, r.unit, from, symbols)
	require.NoError(t, err)
	var tables []*runtime.Table
	for i, step := range r.steps {
		switch {
		case step.Record != nil:
			err = w.Record(step.Record)
		case step.Frame != nil:
			err = w.Frame(step.Frame.Key, step.Frame.Frame)
		case step.Container != nil:
			err = w.Container(*step.Container)
		case step.Clock != nil:
			err = w.Clock(*step.Clock)
		case step.Table != nil:
			if tables = append(tables, step.Table); len(tables) == len(r.unit.Tables) {
				err = w.Tables(tables)
				tables = nil
			}
		case step.Loss != nil:
			err = w.Loss(*step.Loss)
		case step.Again:
			err = w.Again()
		}
		require.NoError(t, err)
		if i%50 == 0 {
			require.NoError(t, w.Flush())
		}
	}
	require.NoError(t, w.End(r.counts))
}
