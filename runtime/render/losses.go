package render

import (
	"fmt"
	"strings"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/runtime"
)

// Losses returns a sentence for each kind of loss, and if verbose also for what is
// not counted.
func Losses(a runtime.SessionCounts, verbose bool) (all []string) {
	say := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	for _, n := range a.Events {
		all = append(all, lossesOfEvent(n)...)
		if n.Probe.Follow != nil || n.Kind == compiler.BeginEvent {
			continue
		}
		pointers := n.Probe.StringConds()
		if n.Unreadable > 0 && n.Delivered+n.Lost+n.Unread+n.Matched == 0 && len(pointers) > 0 {
			say("no string that %s points to could be read in kernel memory: if it points to user memory, write %s:ustring", pointers[0], pointers[0])
		}
	}
	if a.Unfollowed > 0 {
		say("did not follow %d processes, nor their descendants: more than %d were in the tree at once, or the kernel skipped them", a.Unfollowed, compiler.TreeRoom)
	}
	for _, m := range runtime.MissedOnce(a.Missed) {
		of := missedOf(m.Probes)
		if m.Uncounted && verbose {
			say("this kernel does not count all calls of %s that it skips for %s", of, m.Kind)
		}
		switch {
		case m.N == 0:
		case m.Kind == compiler.Breakpoint:
			say("missed %d writes to %s: a BPF program or bpf(2) has written, and the kernel runs no program meanwhile", m.N, of)
		default:
			say("missed %d calls of %s: the kernel skipped them%s", m.N, of, skipReason(m))
		}
	}
	return all
}

// lossesOfEvent returns a sentence for each kind of loss of one kind of event.
func lossesOfEvent(n runtime.Counts) []string {
	switch name := FunctionName(n.Probe.Func); {
	case n.Probe.Follow != nil:
		return lossesOfFollowed(SideName(n.EventType), n.Counters)
	case n.Kind == compiler.BeginEvent:
		return openOf(name, n.Counters)
	case n.Probe.Func.Iterator:
		return lossesOfRows(name, n.Counters)
	case n.Kind == compiler.WriteEvent:
		return lossesOfWrites(name, n.Counters)
	}
	return lossesOf(SideName(n.EventType), n.Counters)
}

// SideName returns the name of a function, with the side of its calls if an event
// shows only one.
func SideName(ev *compiler.EventType) string {
	name := FunctionName(ev.Probe.Func)
	if ev.Kind == compiler.EntryEvent || ev.Kind == compiler.ReturnEvent {
		name += " (" + ev.Kind.String() + ")"
	}
	return name
}

// missedOf names functions for which only the sum of misses is known.
func missedOf(probes []*compiler.Probe) string {
	name := FunctionName(probes[0].Func)
	if n := len(probes); n > 1 {
		return fmt.Sprintf("%s and %d others", name, n-1)
	}
	return name
}

// skipReason returns why the kernel skips calls of a program. Where tasks are not
// preempted inside fentry programs, only calls in interrupts are skipped, and kprobes skip
// more of those.
func skipReason(m runtime.Missed) string {
	switch m.Kind {
	case compiler.Fentry, compiler.Fexit:
		if m.Probes[0].Features.Preemptible {
			return ", as the program was running on that CPU already (--attach kprobe may miss fewer)"
		}
	case compiler.Kretprobe, compiler.KretprobeMulti, compiler.KprobeSession:
		return ", as too many were active at once, or a program was running on that CPU already"
	}
	return ", as a program was running on that CPU already"
}

// lostSentence is the sentence about events that the ring buffer had no room for.
const lostSentence = "lost %d events of %s: the ring buffer was full; --pages makes it larger"

// lossesOf returns a sentence for each kind of loss of a function.
func lossesOf(name string, n compiler.Counters) []string {
	return sentences(name, []fate{
		{n.Lost, lostSentence},
		{n.Limited, "left out %d events of %s: there were more in a second than --rate allows"},
		{n.NoRoom, "missed %d calls of %s: too many calls were active at once"},
		{n.Unreadable, "did not show %d calls of %s: a value in a condition could not be read"},
		{n.Unpaired, "dropped %d calls of %s: the entry or the return was missed"},
	})
}

// lossesOfFollowed returns a sentence for each kind of loss of a function that gets
// objects that are followed.
func lossesOfFollowed(name string, n compiler.Counters) []string {
	return sentences(name, []fate{
		{n.Lost, lostSentence},
		{n.NoRoom, "did not follow %d objects of %s: " + fmt.Sprint(compiler.MostObjects) + " others were followed, or one began at the same moment"},
		{n.Unreadable, "did not show %d calls of %s: a value in a condition could not be read"},
	})
}

// lossesOfRows returns a sentence for each kind of loss of an iterator.
func lossesOfRows(name string, n compiler.Counters) []string {
	return sentences(name, []fate{{n.Unreadable, "did not show %d objects of %s: a value in a condition could not be read"}})
}

// lossesOfWrites returns a sentence for each kind of loss of watched memory.
func lossesOfWrites(name string, n compiler.Counters) []string {
	return sentences(name, []fate{
		{n.Lost, lostSentence},
		{n.Limited, "left out %d events of %s: there were more in a second than --rate allows"},
		{n.Unreadable, "did not show %d writes of %s: that memory, or a value in a condition, could not be read"},
	})
}

// openOf returns a sentence for each fate of the beginnings of a span that have made
// no event.
func openOf(name string, n compiler.Counters) []string {
	return sentences(name, []fate{
		{n.NoRoom, "missed %d beginnings of spans at %s: too many were open at once"},
		{n.Unreadable, "did not show %d calls of %s: a value in a condition could not be read"},
		{n.Replaced, "%d spans that began at %s have no end: another one began with the same key"},
		{n.Open, "%d spans that began at %s had not ended when the trace ended"},
	})
}

// fate is a number of calls, and the sentence on what has become of them.
type fate struct {
	n    uint64
	text string
}

// sentences returns the sentences about the calls of a function, except for those
// about none.
func sentences(name string, fates []fate) (lines []string) {
	for _, f := range fates {
		text := f.text
		if f.n == 1 {
			text = singular.Replace(text)
		}
		if f.n > 0 {
			lines = append(lines, fmt.Sprintf(text, f.n, name))
		}
	}
	return lines
}

var singular = strings.NewReplacer("events of", "event of", "calls of", "call of", "objects of", "object of", "writes of", "write of", "beginnings of spans", "beginning of a span",
	"spans that", "span that", "have no end", "has no end")
