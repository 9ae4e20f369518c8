package resolve

import (
	"fmt"
	"slices"

	"github.com/ksnoop/ksnoop/compiler"
)

// manyFunctions is the largest number of functions that are attached and detached
// one by one: a trampoline takes 0.1 s on 6.1 to 6.18, and a link as long. More
// functions share one link.
const manyFunctions = 10

// trampolinePrograms is the largest number of programs on a trampoline
// (BPF_MAX_TRAMP_LINKS in include/linux/bpf.h).
const trampolinePrograms = 38

// followedReturns is the largest number of kprobe.session and kretprobe.multi
// links on one function where the function graph follows returns. It keeps 31
// words for each call, of which a kprobe.session takes three (fprobe_entry in
// kernel/trace/fprobe.c, 6.14). With more of them, calls are skipped
// altogether.
const followedReturns = 8

// programCounts counts the programs that this command attaches to a function.
type programCounts struct {
	functions int // functions that have programs
	programs  int // upper bound of the programs on the same function
	returns   int // those of them at return
	// caller is set if one of them shows the return address of the function.
	// Where the function graph follows returns, it has put its own address there.
	caller bool
}

// attachChoice has everything that the choice of an attach kind depends on.
type attachChoice struct {
	*compiler.Probe
	compiler.Features
	programCounts
	refuse string            // why a trampoline is not possible; "" if it is
	kernel compiler.Features // what the kernel has; Features lacks what does not suit the probe
}

// KindError reports a function to which a kind cannot be attached.
type KindError struct {
	Kind compiler.Kind
	Func *compiler.Function
	Why  string
}

func (e *KindError) Error() string {
	return fmt.Sprintf("attach %s to %s: %s", e.Kind, e.Func.Name, e.Why)
}

// Reason returns why the kind cannot be attached.
func (e *KindError) Reason() string { return e.Why }

// chooseAttach returns the cheapest kind that loses no calls and that the
// function's signature allows, or the kind that force asks for.
func chooseAttach(p *compiler.Probe, f compiler.Features, force compiler.Kind, counts programCounts) (compiler.Attach, error) {
	if p.Watch != nil {
		return compiler.Attach{Entry: compiler.Breakpoint, Reason: "a hardware breakpoint on each CPU shows every write"}, nil
	}
	if p.Trace.Values {
		return compiler.Attach{Entry: compiler.RawTP, Reason: "it runs once, without a call"}, nil
	}
	c := attachChoice{p, f, counts, refusal(p.Func, f), f}
	if c.refuse == "" && counts.programs > trampolinePrograms {
		c.refuse = fmt.Sprintf("a trampoline takes %d programs, and there are %d for this function", trampolinePrograms, counts.programs)
	}
	if p.Func.Tracepoint && p.Func.Module != "" && f.NoModules != "" {
		return compiler.Attach{}, &KindError{compiler.TpBTF, p.Func, f.NoModules}
	}
	if p.Func.Tracepoint && endless[p.Func.Name] {
		return compiler.Attach{}, &KindError{compiler.TpBTF, p.Func, endlessReason}
	}
	if p.Registers {
		c.refuse, c.KprobeMulti, c.SessionIsReturn = registersReason, false, 0
	}
	if c.caller && p.ReturnSide() {
		c.KprobeMulti, c.SessionIsReturn = false, 0
	}
	if p.Func.Untyped {
		c.refuse = "BTF does not describe the function"
	}
	if p.Func.Tracepoint {
		return compiler.Attach{Entry: compiler.TpBTF, Reason: "it is a tracepoint"}, nil
	}
	if p.Func.Iterator {
		return compiler.Attach{Entry: compiler.Iter, Reason: "it is an iterator"}, nil
	}
	if force != "" {
		return c.force(force)
	}
	why := c.whyProbe()
	if why == "" {
		return compiler.Attach{Entry: compiler.Fentry, Return: compiler.Fexit, Reason: "the cheapest kind, and the signature allows it"}, nil
	}
	return c.probe(why)
}

// registersReason is the reason why only a kprobe will do. The multi kinds get
// only the registers of arguments (from Linux 6.14 on).
const registersReason = "registers, the stack and places inside of functions are for kprobes"

// whyProbe returns the reason not to use the cheapest kind, or "".
func (c *attachChoice) whyProbe() string {
	switch {
	case c.refuse != "":
		return c.refuse
	case c.Preemptible:
		return "this kernel preempts tasks inside fentry programs, and hits would be lost"
	case c.functions > manyFunctions && c.KprobeMulti:
		return "one attachment for many functions"
	}
	return ""
}

// probe chooses among the kinds that are not trampolines.
func (c *attachChoice) probe(why string) (compiler.Attach, error) {
	a := compiler.Attach{Entry: compiler.Kprobe, Return: compiler.Kretprobe, Reason: why, ReturnInstances: c.returnInstances()}
	if c.KprobeMulti {
		a.Entry = compiler.KprobeMulti
	}
	both := entrySide(c.Probe) && c.ReturnSide()
	switch {
	case c.tooManyReturns() && both:
		a.Entry = compiler.Kprobe
	case c.tooManyReturns():
	case both && c.SessionIsReturn != 0 && (c.ReturnsUnlimited || c.functions > manyFunctions):
		a.Entry, a.Return = compiler.KprobeSession, compiler.KprobeSession
	case c.KprobeMulti && (c.ReturnsUnlimited || c.functions > manyFunctions):
		a.Return = compiler.KretprobeMulti
	case both: // both sides get the same frame address
		a.Entry = compiler.Kprobe
	}
	if c.NoKprobe == "" || a.Entry != compiler.Kprobe && (!c.ReturnSide() || a.Return != compiler.Kretprobe) {
		return a, nil
	}
	return c.withoutKprobe(a)
}

// returnInstances returns the number of concurrent calls that a kretprobe asks
// for: the number in the line, or else that of [compiler.Features].
func (c *attachChoice) returnInstances() int {
	if line := c.Trace.Line; line != nil && line.MaxActive > 0 {
		return line.MaxActive
	}
	return c.ReturnInstances
}

// withoutKprobe chooses a kind for users who may not create kprobes. Calls may
// be missed, and are counted.
func (c *attachChoice) withoutKprobe(a compiler.Attach) (compiler.Attach, error) {
	why := c.whyNoTrampoline()
	switch {
	case why == "":
		return compiler.Attach{Entry: compiler.Fentry, Return: compiler.Fexit, Reason: "kprobes cannot be made: " + c.NoKprobe}, nil
	case c.KprobeMulti && c.tooManyReturns():
		why += ", and " + c.returnsReason()
	case c.KprobeMulti:
		a.Entry, a.Return = compiler.KprobeMulti, compiler.KretprobeMulti
		if c.SessionIsReturn != 0 && c.ReturnSide() && entrySide(c.Probe) {
			a.Entry, a.Return = compiler.KprobeSession, compiler.KprobeSession
		}
		return a, nil
	}
	return a, &KindError{compiler.Kprobe, c.Func, fmt.Sprintf("%s, and %s", c.NoKprobe, why)}
}

// tooManyReturns reports whether the multi kinds could not follow the returns.
func (c *attachChoice) tooManyReturns() bool {
	return c.ReturnsUnlimited && c.ReturnSide() && c.returns > followedReturns
}

func (c *attachChoice) returnsReason() string {
	return fmt.Sprintf("the kernel follows the returns of a function for %d links, and there are %d", followedReturns, c.returns)
}

// whyNoTrampoline returns the reason why trampolines cannot be used, even if
// some calls may be missed, or "" if they can.
func (c *attachChoice) whyNoTrampoline() string {
	if c.refuse != "" {
		return c.refuse
	}
	return c.loses()
}

// loses returns the reason why trampolines would pair entries with returns of
// other calls, or "" if nothing is paired. Where tasks are preempted inside
// programs, an entry or a return may be skipped without the other.
func (c *attachChoice) loses() string {
	joins := c.Timed || c.Chain != nil || c.Paired && !entryInRegisters(c.Probe)
	if c.Preemptible && joins {
		return "this kernel preempts tasks inside fentry programs, and what is kept from entry to return could be that of another call"
	}
	return ""
}

// entryInRegisters reports whether all entry values that are needed are
// argument words, with no memory to read.
func entryInRegisters(p *compiler.Probe) bool {
	for _, v := range p.Entry {
		if !lasts(v) || v.Pointee != nil {
			return false
		}
	}
	if slices.ContainsFunc(p.Operands, func(v *compiler.Value) bool { return !lasts(v) }) {
		return false
	}
	for _, conds := range [][]compiler.Cond{p.EntryConds, p.ReturnConds} {
		for l := range compiler.Leaves(compiler.AllOf(conds)) {
			if l.Value.Side == compiler.AtEntry && (!lasts(l.Value) || l.Pred.Pattern != nil) {
				return false
			}
		}
	}
	return true
}

// lasts reports whether a fexit program can still get the value as it was at
// entry.
func lasts(v *compiler.Value) bool {
	of := v.Base.Of
	return v.InWords() || v.Base.Number != nil || len(v.Path) == 0 && (v.Base.Builtin == compiler.PID || v.Base.Builtin == compiler.TID) ||
		of != nil && len(v.Path) == 0 && lasts(of.X) && lasts(of.Y)
}

// callerReason is the reason why the return probes of the multi kinds cannot show
// where a function returns to.
const callerReason = "the address that the function returns to is not known to its return probes"

// entrySide reports whether a program must run at entry. See
// [compiler.Probe.ReturnSide] for the return.
func entrySide(p *compiler.Probe) bool {
	return p.OnEntry || p.Timed || p.Chain != nil || p.Paired
}

// countSides returns the number of programs that the probe needs.
func countSides(p *compiler.Probe) int {
	n := 0
	if entrySide(p) {
		n++
	}
	if p.ReturnSide() {
		n++
	}
	return n
}

// forced maps the attach kinds that can be asked for to the kinds of their
// return side.
var forced = map[compiler.Kind]compiler.Kind{
	compiler.Fentry: compiler.Fexit, compiler.Kprobe: compiler.Kretprobe, compiler.KprobeMulti: compiler.KretprobeMulti, compiler.KprobeSession: compiler.KprobeSession,
}

// ForcedKinds lists the attach kinds that can be asked for.
func ForcedKinds() []compiler.Kind {
	return []compiler.Kind{compiler.Fentry, compiler.Kprobe, compiler.KprobeMulti, compiler.KprobeSession}
}

// force returns the kind that is asked for, or an error with the reason why it
// is not possible.
func (c *attachChoice) force(kind compiler.Kind) (compiler.Attach, error) {
	a := compiler.Attach{Entry: kind, Return: forced[kind], Reason: "asked for"}
	why := ""
	if c.Registers && kind != compiler.Kprobe {
		return a, &KindError{kind, c.Func, c.refuse}
	}
	switch kind {
	case compiler.Fentry:
		why = c.whyNoTrampoline()
	case compiler.Kprobe:
		why, a.ReturnInstances = c.NoKprobe, c.returnInstances()
	case compiler.KprobeMulti:
		switch {
		case !c.kernel.KprobeMulti:
			why = "this kernel has no kprobe.multi links"
		case !c.KprobeMulti:
			why = callerReason
		case c.tooManyReturns():
			why = c.returnsReason()
		case c.Chain != nil && !c.ReturnsUnlimited:
			why = "this kernel skips returns where several calls are active, and a chain would contain calls that have ended"
		}
	case compiler.KprobeSession:
		switch {
		case c.kernel.SessionIsReturn == 0:
			why = "this kernel has no kprobe.session links"
		case c.SessionIsReturn == 0:
			why = callerReason
		case c.tooManyReturns():
			why = c.returnsReason()
		}
	}
	if why != "" {
		return a, &KindError{kind, c.Func, why}
	}
	return a, nil
}

// ByKprobe turns a probe whose attach kind the kernel has refused into a kprobe, with this
// reason. It returns an error if kprobes cannot be created, and then leaves the probe
// unchanged.
func ByKprobe(p *compiler.Probe, reason string) error {
	c := attachChoice{Probe: p, Features: p.Features}
	if c.NoKprobe != "" {
		return &KindError{compiler.Kprobe, p.Func, c.NoKprobe}
	}
	p.Attach = compiler.Attach{
		Entry: compiler.Kprobe, Return: compiler.Kretprobe, Reason: reason, ReturnInstances: c.returnInstances(),
	}
	if p.Chain == nil && !p.Stash && (p.Timed || p.Paired) { // a kretprobe has no arguments
		p.Stash = true
		if err := addOutcomes(p); err != nil {
			return err
		}
	}
	settlePrograms(p)
	return nil
}
