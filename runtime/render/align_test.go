package render

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler"
)

// TestCompactAligns verifies that in lines of one line for each event, the numbers end and
// the texts begin below their headings, whatever their lengths and whichever clock.
func TestCompactAligns(t *testing.T) {
	for _, clock := range Clocks {
		p := newCompact(Options{Values: dumpDefaults, Look: Look{Time: clock, wall: func() time.Duration { return 0 }}})
		p.begin(&compiler.Unit{})
		for _, of := range []struct {
			time time.Duration
			cpu  int
			pid  uint32
			comm string
		}{
			{1, 0, 1, "a"},
			{1234, 12, 345, "漢字 あ"},
			{999_999_999_999_999, 8191, 4_194_304, "fifteen bytes.."},
		} {
			ev := newEvent(compiler.EntryEvent)
			ev.Time, ev.CPU, ev.PID, ev.Comm = of.time, of.cpu, of.pid, []byte(of.comm)
			require.NoError(t, p.Event(ev))
		}
		lines := strings.Split(strings.TrimSuffix(string(p.text), "\n"), "\n")
		require.Len(t, lines, 4)
		columnOf := func(line, text string) int {
			at := strings.Index(line, text)
			require.GreaterOrEqual(t, at, 0, "%q in %q", text, line)
			return columnsOf(line[:at])
		}
		begins, ends := columnOf(lines[0], "FUNCTION"), columnOf(lines[0], " COMM")
		cpus := columnOf(lines[0], "      PID")
		for i, line := range lines[1:] {
			require.Equal(t, begins, columnOf(line, "-> f()"), "%s:\n%s", clock, p.text)
			require.Equal(t, ends, columnOf(line, [...]string{" a ", " 漢", " fifteen"}[i]), "%s:\n%s", clock, p.text)
			before := strings.Fields(line[:cpus])
			require.Equal(t, [...]string{"0", "12", "8191"}[i], before[len(before)-1], "%s:\n%s", clock, p.text)
			require.Len(t, before, 2, "%s:\n%s", clock, p.text)
		}
	}
}
