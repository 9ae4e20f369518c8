package run

import (
	"bytes"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/fixture"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/term"
	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/runtime"
	"github.com/ksnoop/ksnoop/runtime/render"
)

// counted is a session with a table in which each reading finds another call.
type counted struct {
	aggregates     []*compiler.Aggregate
	calls, cleared uint64
	woken          chan bool
}

func (c *counted) Tables() ([]*runtime.Table, error) {
	c.calls++
	now := c.calls - c.cleared
	row := runtime.Row{Calls: now, Cells: []runtime.Cell{{Number: runtime.NewUint(now)}}}
	return []*runtime.Table{{Label: "f", Aggregates: c.aggregates, Time: time.Duration(now) * time.Second, Rows: []runtime.Row{row}}}, nil
}

func (c *counted) ClearTables() ([]*runtime.Table, error) {
	defer func() { c.cleared = c.calls }()
	return c.Tables()
}

func (c *counted) Wake() error {
	c.woken <- true
	return nil
}

// TestTables verifies that tables are shown at each interval and at the end, and with
// --clear have what was counted since the last one.
func TestTables(t *testing.T) {
	for clear, want := range map[bool]string{
		false: "f in 1s:\n  count()\n        1\n\nf in 2s:\n  count()\n        2\n\nf in 3s:\n  count()\n        3\n\n",
		true:  "f in 1s:\n  count()\n        1\n\nf in 1s:\n  count()\n        1\n\nf in 1s:\n  count()\n        1\n\n",
	} {
		source := &counted{aggregates: []*compiler.Aggregate{{Kind: compiler.Count, Name: "count()"}}, woken: make(chan bool)}
		all := startTables(source, &TableOptions{Every: time.Millisecond, Clear: clear}, false)
		out, err := render.New(&compiler.Unit{}, render.Options{Look: render.Look{NoHeader: true}})
		require.NoError(t, err)
		for range 2 {
			for !all.due.Load() {
				<-source.woken
			}
			require.NoError(t, all.show(out))
		}
		go func() {
			for range source.woken {
			}
		}()
		all.stop()
		close(source.woken)
		require.NoError(t, all.end(out))
		all.due.Store(false)
		require.NoError(t, all.show(out), "nothing is due")
		var text bytes.Buffer
		require.NoError(t, out.Flush(&text))
		require.Equal(t, want, text.String())
	}
}

// redrawn are tables on a terminal.
type redrawn struct {
	*tables
	shown  *fixture.Emulator
	resize func(width, height int)
	show   func(draw func(render.Printer) error) string // what the terminal shows after it
}

func newRedrawn(t *testing.T) *redrawn {
	t.Setenv("TERM", "xterm")
	emulator, tty := fixture.OpenTerminal(t)
	r := &redrawn{shown: fixture.NewEmulator(40, 10)}
	r.resize = func(width, height int) {
		r.shown.Resize(width, height)
		fixture.Resize(t, tty, width, height)
	}
	r.resize(40, 10)
	source := &counted{aggregates: []*compiler.Aggregate{{Kind: compiler.Count, Name: "count()"}}}
	r.tables = &tables{source: source}
	unit := &compiler.Unit{Events: []*compiler.EventType{{Probe: &compiler.Probe{Measure: compiler.Tables}}}}
	r.redraw(term.NewPlain(tty), time.Second, render.Options{}, unit)
	require.NotNil(t, r.screen)
	r.show = func(draw func(render.Printer) error) string {
		t.Helper()
		require.NoError(t, draw(nil), "nothing is printed but on the screen")
		r.shown.Show(t, fixture.Written(t, emulator, tty))
		return r.shown.Text(t)
	}
	return r
}

// TestRedraw verifies that a terminal shows the last table alone, as wide as it is then.
func TestRedraw(t *testing.T) {
	r := newRedrawn(t)
	require.Empty(t, r.show(r.tables.show), "not due")
	for _, want := range []string{"f in 1s:\n  count()\n        1\n", "f in 2s:\n  count()\n        2\n"} {
		r.due.Store(true)
		require.Equal(t, want, r.show(r.tables.show))
	}
	r.resize(9, 5)
	r.due.Store(true)
	require.Equal(t, "f in 3s:\n  count()\n        3\n", r.show(r.tables.show))
	r.resize(40, 10)
	require.Equal(t, "f in 4s:\n  count()\n        4\n", r.show(r.end))
}

// TestRedrawIntervals verifies that what the end of the trace has cut off does not take
// the place of the last whole interval.
func TestRedrawIntervals(t *testing.T) {
	r := newRedrawn(t)
	r.clear = true
	for range 2 {
		r.due.Store(true)
		require.Equal(t, "f in 1s:\n  count()\n        1\n", r.show(r.tables.show))
	}
	require.Equal(t, "f in 1s:\n  count()\n        1\n\nf in 1s:\n  count()\n        1\n", r.show(r.end))
}

func TestTableOptions(t *testing.T) {
	count := []*runtime.Table{{Aggregates: []*compiler.Aggregate{{Kind: compiler.Count, Name: "count()"}}}}
	least := []*runtime.Table{{Aggregates: []*compiler.Aggregate{{Kind: compiler.Min, Name: "min(x)"}}}}
	const none = " is for tables, and no spec has an aggregate: tables are of specs such as 'vfs_read($comm, count())'"
	for _, tc := range []struct {
		options TableOptions
		tables  []*runtime.Table
		want    string
	}{
		{TableOptions{}, nil, ""},
		{TableOptions{Every: time.Second, Clear: true, Keys: 5, Arrange: render.Arrangement{Top: 3, Sort: "count( )"}}, count, ""},
		{TableOptions{Every: time.Second}, least, ""},
		{TableOptions{Every: time.Second}, nil, "--every" + none},
		{TableOptions{Clear: true}, nil, "--clear" + none},
		{TableOptions{Keys: 1}, nil, "--keys" + none},
		{TableOptions{Arrange: render.Arrangement{Top: 1}}, nil, "--top" + none},
		{TableOptions{Arrange: render.Arrangement{Sort: "x"}}, nil, "--sort" + none},
		{TableOptions{Arrange: render.Arrangement{Sort: "cuont()"}}, count, "--sort is \"cuont()\": did you mean 'count()'?"},
		{TableOptions{Clear: true}, count, "--clear counts each interval anew: give its length, as in --every 1s"},
		{TableOptions{Clear: true, Every: time.Second}, least, ""},
	} {
		err := tc.options.checkTables(tc.tables, false)
		if tc.want == "" {
			require.NoError(t, err)
		} else {
			require.EqualError(t, err, tc.want)
		}
	}
	every := TableOptions{Every: time.Second}
	require.NoError(t, every.checkTables(nil, true))
	require.NoError(t, every.checkTables(count, true))
	require.NoError(t, every.checkTables(least, true))
}

// iterated are the objects of an iterator: three, and one more at each pass.
type iterated struct {
	counted
	pass, row, most int
	waits           []time.Duration
}

func (i *iterated) Read(*runtime.Event) error {
	if i.row == 3+i.pass || i.Stopped() {
		return io.EOF
	}
	i.row++
	return nil
}

func (i *iterated) Idle() bool    { return true }
func (i *iterated) Stopped() bool { return i.pass == i.most }
func (i *iterated) Again(wait time.Duration) error {
	i.waits = append(i.waits, wait)
	i.pass++
	i.row = 0
	return nil
}

// TestPasses verifies that each pass over iterators shows all rows, and its tables once.
func TestPasses(t *testing.T) {
	source := &iterated{most: 3}
	all := startTables(source, &TableOptions{Every: time.Hour}, true)
	unit := &compiler.Unit{}
	out, err := render.New(unit, render.Options{Format: "compact", Look: render.Look{NoHeader: true}})
	require.NoError(t, err)
	p := &passes{iteration: source, every: time.Hour, tables: all, began: time.Now(), again: func() error {
		out.Again()
		return nil
	}}
	limit := &limited{p, 100}
	var rows []int
	for n := 0; ; {
		err := limit.Read(new(runtime.Event))
		if err == io.EOF {
			break
		}
		if err == runtime.ErrWoken {
			require.True(t, all.due.Swap(false))
			rows, n = append(rows, n), 0
			continue
		}
		require.NoError(t, err)
		n++
	}
	require.Equal(t, []int{3, 4, 5}, rows)
	require.Equal(t, uint64(100-3-4-5), limit.left, "only rows count")
	require.Len(t, source.waits, 3)
	for _, wait := range source.waits {
		require.Greater(t, wait, 59*time.Minute)
	}
	var text bytes.Buffer
	require.NoError(t, out.Flush(&text))
	require.Equal(t, "\n\n\n", text.String())
	all.stop()
}
