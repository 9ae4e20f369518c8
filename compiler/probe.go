package compiler

import (
	"slices"

	"github.com/ksnoop/ksnoop/compiler/spec"
)

// Probe is a spec bound to a kernel: the function, the values to record, and
// every decision on how to trace them.
type Probe struct {
	Trace *spec.Trace
	// Asked is the trace as the user gave it. In Trace, the name of a function
	// replaces a glob, and addresses and $arg* are expanded.
	Asked  *spec.Trace
	Func   *Function
	Attach Attach
	Entry  []*Value // recorded as they are at entry, in the order of the spec
	Return []*Value // recorded at return
	// EntryConds and ReturnConds must hold for an event. They are grouped by
	// the side at which they can be evaluated.
	EntryConds, ReturnConds []Cond
	// EntryOrder and ReturnOrder have the conditions that the program of each side
	// evaluates, in this order. If one program alone decides about a call, it
	// evaluates those of both sides.
	EntryOrder, ReturnOrder []Cond
	// EntryLoads and ReturnLoads tell what the program of each side reads by plain loads.
	EntryLoads, ReturnLoads Loads
	// Outcomes are the parts of return conditions that are evaluated at entry.
	Outcomes []*Outcome
	// Operands are the values of the entry that values at return are computed
	// from. They are kept from entry until return.
	Operands []*Value
	// Diffs are the values that are read again at return and compared with what
	// they were at entry.
	Diffs []*Value
	// Paired is set if one event at return has both sides, because a condition decides
	// about both, or a value needs both.
	Paired bool
	// Timed is set if the time at entry is needed at return.
	Timed bool
	// Stash is set if something must be kept from entry until return. A paired
	// fexit program keeps nothing if its own arguments have everything it
	// needs.
	Stash bool
	// OnEntry and OnReturn report whether the side writes an event of its own.
	OnEntry, OnReturn bool
	// Offset is the distance of the probe from the beginning of the function in
	// bytes.
	Offset uint64
	// Registers is set if only kprobes can provide the values to record.
	Registers bool
	// Caller is set if the return address is recorded.
	Caller bool
	// Modules are those of variables whose addresses are in values or conditions.
	Modules []string
	// OfGlob is set if the function was found by a glob.
	OfGlob bool
	// Chain is the place of the probe in a chain of calls, or nil if it is not
	// in one.
	Chain    *Chain
	Span     *Span    // the span that the probe begins or ends, or nil
	Watch    *Watch   // the memory whose writes the probe shows, or nil
	Follow   *Follow  // what it does with objects that are followed, or nil
	Find     *Find    // the member to watch of the objects that it finds, or nil
	Arch     *Arch    // of the target
	Features Features // of the target
	Stacks   *Stacks  // of the target
	Comm     int      // offset of the thread's name in struct task_struct; 0 if it cannot be loaded
	// Measure selects the statistics of calls that replace records.
	Measure Measure
	// Measured is the value that is measured: the number for [Values], the item
	// to compare for [Changes].
	Measured *Value
	// First is the number to store of the first call; nil stores only its time.
	First *Value
	// Key has the values by which [Tables] count calls, and Aggregates what they
	// count.
	Key        []*Value
	Aggregates []*Aggregate
}

// Plan is a set of specs bound to a kernel.
type Plan struct {
	Probes []*Probe
	// LeftOut counts the functions of globs that are not traced, by reason.
	LeftOut map[string]int
	// Unfollowed has the functions that take the type of objects to follow, but are
	// not traced, each with the reason.
	Unfollowed []string
	// Notes are sentences for the user on what may be surprising.
	Notes []string
}

// Kind is an attach kind.
type Kind string

// The attach kinds.
const (
	Fentry         Kind = "fentry"
	Fexit          Kind = "fexit"
	Kprobe         Kind = "kprobe"
	Kretprobe      Kind = "kretprobe"
	KprobeMulti    Kind = "kprobe.multi"
	KretprobeMulti Kind = "kretprobe.multi"
	KprobeSession  Kind = "kprobe.session" // both sides in one program
	TpBTF          Kind = "tp_btf"
	// RawTP programs are not attached: each runs when it is asked to, and the first
	// word of its context is the CPU whose variables it reads.
	RawTP      Kind = "raw_tp"
	Iter       Kind = "iter"       // runs for each object of an iterator when that is read
	Breakpoint Kind = "breakpoint" // on memory, see [Watch]
)

// Trampoline reports whether the context of programs of this kind has the
// arguments themselves. The others get the registers.
func (k Kind) Trampoline() bool { return k == Fentry || k == Fexit || k == TpBTF || k == Iter }

// Multi reports whether one attachment of this kind may have many places.
func (k Kind) Multi() bool { return k == KprobeMulti || k == KretprobeMulti || k == KprobeSession }

// Attach describes how a function is traced, and why.
type Attach struct {
	Entry, Return Kind
	Reason        string
	// ReturnInstances is the number of concurrent calls that a kretprobe asks
	// for, see [Features].ReturnInstances.
	ReturnInstances int
	// Joined is set if probes with different programs share a link, whose
	// program jumps to theirs. A link for each would take some 10 ms to attach,
	// and 0.1 s to detach.
	Joined bool
}

// ReturnSide reports whether a program must run at return.
func (p *Probe) ReturnSide() bool {
	return p.OnReturn || p.Chain != nil && !p.Chain.NoReturn
}

// Chain is the place of a probe in a chain of calls. An event is written for a
// call of the last level that is inside calls of all the others, on the same
// stack, and for those outer calls.
type Chain struct {
	Level int      // counted from 0, the outermost
	Of    []*Probe // the probes of all levels
	// NoReturn is set if calls of this level have no return, so that it must be
	// the last one.
	NoReturn bool
}

// Last reports whether the chain is complete when the probe's function is
// entered.
func (c *Chain) Last() bool { return c.Level == len(c.Of)-1 }

// Items returns the values that the probe records, in the order of its events.
func (p *Probe) Items() []*Value {
	return slices.Concat(p.Entry, p.Return)
}

// Leaves iterates over the leaves of all conditions of the probe.
func (p *Probe) Leaves() func(yield func(*Leaf) bool) {
	return Leaves(AllOf(slices.Concat(p.EntryConds, p.ReturnConds)))
}

// StringConds returns the names of the pointers whose strings the conditions of
// a probe read from kernel memory although the spec does not demand it. If none
// of them can be read, the strings may be in the memory of the process.
func (p *Probe) StringConds() (names []string) {
	for l := range p.Leaves() {
		if v := l.Value; v.Text == KernelText && v.Format == "" && !slices.Contains(names, v.Name) {
			names = append(names, v.Name)
		}
	}
	return names
}
