package compiler

import "fmt"

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
	Session        Kind = "kprobe.session" // both sides in one program
	TpBTF          Kind = "tp_btf"
)

// trampoline says whether programs of this kind have the arguments themselves
// as their context; the others have the registers.
func (k Kind) trampoline() bool { return k == Fentry || k == Fexit || k == TpBTF }

// Multi says whether one attachment of this kind may have many places.
func (k Kind) Multi() bool { return k == KprobeMulti || k == KretprobeMulti || k == Session }

// Attach is how a function is traced, and why.
type Attach struct {
	Entry, Return Kind
	Reason        string
	// ReturnInstances is what a kretprobe asks for, see
	// [Features].ReturnInstances.
	ReturnInstances int
}

// manyFunctions is from how many functions on a trampoline each takes too long
// to attach and to detach (reference figures: 0.1 s each on 6.1 to 6.18).
const manyFunctions = 10

// trampolinePrograms is how many programs a trampoline takes (BPF_MAX_TRAMP_LINKS
// in include/linux/bpf.h).
const trampolinePrograms = 38

// followedReturns is how many sessions and kretprobe.multi links can have a place
// on one function where returns are followed by the function graph: it keeps 31
// words for each call, of which a session takes three (fprobe_entry in
// kernel/trace/fprobe.c, 6.14). Calls with more are skipped altogether.
const followedReturns = 8

// crowd is how much there is to attach besides.
type crowd struct {
	functions int // in all
	programs  int // on the same function, at most
	returns   int // of these, at return
	// caller: one of them shows where the function returns to. Where returns
	// are followed by the function graph, that is an address of its own.
	caller bool
	// blind: return probes of the multi kinds cannot tell calls apart.
	blind bool
}

// attachChoice is everything that the choice of an attach kind depends on.
type attachChoice struct {
	*Probe
	Features
	crowd
	refuse string // why not a trampoline; "": the signature allows it
}

// chooseAttach takes the cheapest kind that loses no calls and that the
// function's signature allows; or the one that is asked for.
func chooseAttach(p *Probe, f Features, force Kind, crowd crowd) (Attach, error) {
	c := attachChoice{p, f, crowd, refusal(p.Func, f)}
	if c.refuse == "" && crowd.programs > trampolinePrograms {
		c.refuse = fmt.Sprintf("a trampoline takes %d programs, and there are %d for this function", trampolinePrograms, crowd.programs)
	}
	if p.Func.Tracepoint && p.Func.Module != "" && f.NoModules != "" {
		return Attach{}, fmt.Errorf("attach tp_btf to %s: %s", p.Func.Name, f.NoModules)
	}
	if p.Registers {
		c.refuse, c.KprobeMulti, c.SessionIsReturn = registersReason, false, 0
	}
	if (c.caller || c.blind) && p.returnSide() {
		c.KprobeMulti, c.SessionIsReturn = false, 0
	}
	if p.Func.Untyped {
		c.refuse = "BTF does not describe the function"
	}
	if p.Func.Tracepoint {
		return Attach{Entry: TpBTF, Reason: "it is a tracepoint"}, nil
	}
	if force != "" {
		return c.force(force)
	}
	why := c.whyProbe()
	if why == "" {
		return Attach{Entry: Fentry, Return: Fexit, Reason: "the cheapest kind, and the signature allows it"}, nil
	}
	return c.probe(why)
}

// registersReason is why only a kprobe will do. What the multi kinds have as
// registers is those of arguments alone (Linux 6.14).
const registersReason = "registers, the stack and places inside of functions are for kprobes"

// whyProbe is the reason not to take the cheapest kind; "" if there is none.
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

// probe chooses among the kinds that are no trampolines.
func (c *attachChoice) probe(why string) (Attach, error) {
	a := Attach{Entry: Kprobe, Return: Kretprobe, Reason: why, ReturnInstances: c.returnInstances()}
	if c.KprobeMulti {
		a.Entry = KprobeMulti
	}
	both := c.entrySide() && c.returnSide()
	switch {
	case c.tooManyReturns() && both:
		a.Entry = Kprobe
	case c.tooManyReturns():
	case both && c.SessionIsReturn != 0 && (c.ReturnsUnlimited || c.functions > manyFunctions):
		a.Entry, a.Return = Session, Session
	case c.KprobeMulti && (c.ReturnsUnlimited || c.functions > manyFunctions):
		a.Return = KretprobeMulti
	case both: // one frame address for both sides
		a.Entry = Kprobe
	}
	if c.NoKprobe == "" || a.Entry != Kprobe && (!c.returnSide() || a.Return != Kretprobe) {
		return a, nil
	}
	return c.withoutKprobe(a)
}

// returnInstances is what a kretprobe asks for: what the line says, or as much
// as there is.
func (c *attachChoice) returnInstances() int {
	if probe := c.Trace.Probe; probe != nil && probe.MaxActive > 0 {
		return probe.MaxActive
	}
	return c.ReturnInstances
}

// withoutKprobe is for users who may not make kprobes: calls may be missed, and
// are counted.
func (c *attachChoice) withoutKprobe(a Attach) (Attach, error) {
	why := c.whyNoTrampoline()
	switch {
	case why == "":
		return Attach{Entry: Fentry, Return: Fexit, Reason: "kprobes cannot be made: " + c.NoKprobe}, nil
	case c.KprobeMulti && c.tooManyReturns():
		why += ", and " + c.returnsReason()
	case c.KprobeMulti:
		a.Entry, a.Return = KprobeMulti, KretprobeMulti
		if c.SessionIsReturn != 0 && c.returnSide() && c.entrySide() {
			a.Entry, a.Return = Session, Session
		}
		return a, nil
	}
	return a, fmt.Errorf("attach kprobe to %s: %s, and %s", c.Func.Name, c.NoKprobe, why)
}

// tooManyReturns says whether multi kinds could not follow the returns.
func (c *attachChoice) tooManyReturns() bool {
	return c.ReturnsUnlimited && c.returnSide() && c.returns > followedReturns
}

func (c *attachChoice) returnsReason() string {
	return fmt.Sprintf("the kernel follows the returns of a function for %d links, and there are %d", followedReturns, c.returns)
}

// whyNoTrampoline is why trampolines cannot be taken, even if some calls may be
// missed; "": they can.
func (c *attachChoice) whyNoTrampoline() string {
	if c.refuse != "" {
		return c.refuse
	}
	return c.loses()
}

// loses is why trampolines would join entries with returns of other calls: where
// tasks are preempted inside programs, an entry or a return is skipped without
// the other. "" if nothing is to be joined.
func (c *attachChoice) loses() string {
	joins := c.Timed || c.Chain != nil || c.Paired && !c.entryInRegisters()
	if c.Preemptible && joins {
		return "this kernel preempts tasks inside fentry programs, and what is kept from entry to return could be that of another call"
	}
	return ""
}

// entrySide says whether anything is to be done at entry.
func (p *Probe) entrySide() bool {
	return p.OnEntry || p.Timed || p.Chain != nil || p.Paired
}

// sides is how many programs the probe takes.
func (p *Probe) sides() int {
	n := 0
	if p.entrySide() {
		n++
	}
	if p.returnSide() {
		n++
	}
	return n
}

// returnSide says whether anything is to be done at return.
func (p *Probe) returnSide() bool {
	return p.OnReturn || p.Chain != nil && !p.Chain.NoReturn
}

// forced are the attach kinds that can be asked for, with their return side.
var forced = map[Kind]Kind{
	Fentry: Fexit, Kprobe: Kretprobe, KprobeMulti: KretprobeMulti, Session: Session,
}

// ForcedKinds lists the attach kinds that can be asked for.
func ForcedKinds() []Kind { return []Kind{Fentry, Kprobe, KprobeMulti, Session} }

// force takes the kind that is asked for, or says why it is not possible.
func (c *attachChoice) force(kind Kind) (Attach, error) {
	a := Attach{Entry: kind, Return: forced[kind], Reason: "asked for"}
	why := ""
	if c.Registers && kind != Kprobe {
		return a, fmt.Errorf("attach %s to %s: %s", kind, c.Func.Name, c.refuse)
	}
	if c.blind && kind.Multi() && c.returnSide() {
		return a, fmt.Errorf("attach %s to %s: on this architecture its return probes lack the stack pointer, which tells calls apart", kind, c.Func.Name)
	}
	switch kind {
	case Fentry:
		why = c.whyNoTrampoline()
	case Kprobe:
		why, a.ReturnInstances = c.NoKprobe, c.returnInstances()
	case KprobeMulti:
		switch {
		case !c.KprobeMulti:
			why = "this kernel has no kprobe.multi links"
		case c.tooManyReturns():
			why = c.returnsReason()
		case c.Chain != nil && !c.ReturnsUnlimited:
			why = "this kernel skips returns where several calls are under way, and a stack would have calls in it that have ended"
		}
	case Session:
		switch {
		case c.SessionIsReturn == 0:
			why = "this kernel has no kprobe.session links"
		case c.tooManyReturns():
			why = c.returnsReason()
		}
	}
	if why != "" {
		return a, fmt.Errorf("attach %s to %s: %s", kind, c.Func.Name, why)
	}
	return a, nil
}
