package render

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/runtime"
)

// TestLosses covers the sentence of each kind of loss.
func TestLosses(t *testing.T) {
	require.Empty(t, lossesOf("f", compiler.Counters{}))
	require.Equal(t, []string{
		"lost 1 event of f: the ring buffer was full; --pages makes it larger",
		"missed 2 calls of f: too many calls were active at once",
		"did not show 3 calls of f: a value in a condition could not be read",
		"dropped 4 calls of f: the entry or the return was missed",
	}, lossesOf("f", compiler.Counters{Lost: 1, NoRoom: 2, Unreadable: 3, Unpaired: 4}))

	// An entry and a return that are two events have separate losses.
	a := runtime.SessionCounts{}
	p := &compiler.Probe{Func: &compiler.Function{Name: "f"}}
	for i, kind := range []compiler.EventKind{compiler.EntryEvent, compiler.ReturnEvent, compiler.CallEvent} {
		a.Events = append(a.Events, runtime.Counts{EventType: &compiler.EventType{Probe: p, Kind: kind}, Counters: compiler.Counters{Lost: uint64(i + 1)}})
	}
	require.Equal(t, []string{
		"lost 1 event of f (entry): the ring buffer was full; --pages makes it larger",
		"lost 2 events of f (return): the ring buffer was full; --pages makes it larger",
		"lost 3 events of f: the ring buffer was full; --pages makes it larger",
	}, Losses(a, false))

	rows := runtime.Counts{Counters: compiler.Counters{Unreadable: 2}, EventType: &compiler.EventType{Kind: compiler.RowEvent, Probe: &compiler.Probe{
		Func: &compiler.Function{Name: "task", Iterator: true},
	}}}
	require.Equal(t, []string{"did not show 2 objects of iter:task: a value in a condition could not be read"},
		Losses(runtime.SessionCounts{Events: []runtime.Counts{rows}}, false))

	writes := runtime.Counts{Counters: compiler.Counters{Lost: 2, Unreadable: 1}, EventType: &compiler.EventType{Kind: compiler.WriteEvent, Probe: &compiler.Probe{
		Func: &compiler.Function{Name: "(int)@jiffies"},
	}}}
	require.Equal(t, []string{
		"lost 2 events of (int)@jiffies: the ring buffer was full; --pages makes it larger",
		"did not show 1 write of (int)@jiffies: that memory, or a value in a condition, could not be read",
	}, Losses(runtime.SessionCounts{Events: []runtime.Counts{writes}}, false))

	// Kprobes miss fewer calls only where tasks are preempted inside fentry programs.
	const skipped = "missed 2 calls of f: the kernel skipped them, as "
	for kind, want := range map[compiler.Kind][2]string{
		compiler.Fentry: {"a program was running on that CPU already", "the program was running on that CPU already (--attach kprobe may miss fewer)"},
		compiler.Fexit:  {"a program was running on that CPU already", "the program was running on that CPU already (--attach kprobe may miss fewer)"},
		compiler.Kprobe: {"a program was running on that CPU already", "a program was running on that CPU already"},
	} {
		for i, preemptible := range []bool{false, true} {
			q := &compiler.Probe{Func: p.Func, Features: compiler.Features{Preemptible: preemptible}}
			m := runtime.Missed{Kind: kind, Probes: []*compiler.Probe{q}, N: 2}
			require.Equal(t, []string{skipped + want[i]}, Losses(runtime.SessionCounts{Missed: []runtime.Missed{m}}, false))
		}
	}

	// A value that could never be read may be at another address.
	path := &compiler.Value{Name: "path", Text: compiler.KernelText}
	p.EntryConds = []compiler.Cond{&compiler.Leaf{Value: path, Pred: &compiler.Predicate{}}}
	unread := runtime.Counts{EventType: &compiler.EventType{Probe: p, Kind: compiler.EntryEvent}, Counters: compiler.Counters{Unreadable: 3}}
	unreadable := []string{"did not show 3 calls of f (entry): a value in a condition could not be read"}
	require.Equal(t, append(unreadable,
		"no string that path points to could be read in kernel memory: if it points to user memory, write path:ustring"),
		Losses(runtime.SessionCounts{Events: []runtime.Counts{unread}}, false))
	unread.Delivered = 1
	require.Equal(t, unreadable, Losses(runtime.SessionCounts{Events: []runtime.Counts{unread}}, false))
	unread.Delivered, unread.Matched = 0, 1 // calls that are counted in a table have no records
	require.Equal(t, unreadable, Losses(runtime.SessionCounts{Events: []runtime.Counts{unread}}, false))
}
