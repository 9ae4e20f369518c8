package runtime

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/runtime/clock"
)

// attached is an attachment in place, with only those of its places that could be
// attached to.
type attached struct {
	compiler.Attachment
	link  link.Link
	group string // prefix of its event's group in tracefs, if it may have an event
}

// ErrStopped is returned by [Session.Attach] if [Session.Stop] or [Session.Close] was called
// before everything was in place.
var ErrStopped = errors.New("stopped while attaching")

// Attach attaches the programs and returns the number of probes attached. A probe
// that cannot be attached to every one of its places is left out as a whole, with the
// chain that it is a level of, and the error joins an [*AttachError] for each.
// With [Session].Recompile it is traced by kprobe instead, if the kernel takes that.
// If the session is stopped or closed meanwhile, no more is attached, and the error is
// [ErrStopped]. If processes cannot be followed, nothing is attached. What is attached
// already is not attached again: that is an error.
func (s *Session) Attach() (int, error) {
	if s.places() > 0 { // each call would be two events
		return 0, errors.New("attach a session: it is attached already: load the unit once more")
	}
	removeStale()
	s.attachedAt = clock.Now()
	for {
		n, err := s.attachAll()
		again, failed := s.fallBack(err)
		if failed != nil {
			return 0, failed
		}
		if !again {
			return n, err
		}
	}
}

func (s *Session) attachAll() (int, error) {
	if s.held {
		if err := s.counters.store(compiler.ControlStopped, 1); err != nil {
			return 0, err
		}
	}
	if err := s.attachCompanions(); err != nil {
		return 0, err
	}
	if tree := s.unit.Tree; tree != nil && tree.Root != 0 {
		if err := s.followFamily(tree.Root); err != nil {
			return 0, err
		}
	}
	// Asked before anything is attached: a function that is traced may be one that asks.
	a := attacher{Session: s, failed: map[*compiler.Probe]bool{}, hooks: sync.OnceValue(s.kernel.readHooks), off: switchedOff()}
	for _, e := range s.refused {
		for _, p := range e.Probes {
			a.failed[p] = true
		}
	}
	done, total := 0, 0
	for _, at := range s.unit.Attachments {
		total += len(at.Places)
	}
	for _, at := range s.unit.Attachments {
		for _, one := range byTarget(at) {
			s.report(done, total)
			if !a.addUnlessOver(one) {
				return 0, ErrStopped
			}
			done += len(one.Places)
		}
	}
	s.report(done, total)
	if s.over() {
		return 0, ErrStopped
	}
	s.rememberModules()
	return len(s.unit.Probes()) - len(a.failed), errors.Join(a.errs...)
}

// attacher is the state of Attach.
type attacher struct {
	*Session
	failed map[*compiler.Probe]bool
	errs   []error
	hooks  func() *hookList // see Kernel.readHooks
	off    []*tracingSwitch
}

// addUnlessOver is add, unless the session is stopped or closed, which it reports. What it
// attaches is there before Close looks for what to detach.
func (a *attacher) addUnlessOver(at compiler.Attachment) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over() {
		return false
	}
	a.add(at)
	return true
}

// add attaches at to as many of its places as possible, with the session's lock held. It takes the probes that fail
// here out of the attachments that are in place already: those are of the return sides,
// which must be attached first.
func (a *attacher) add(at compiler.Attachment) {
	a.fail(at, a.kernel.reloaded(at.Places)...)
	for _, off := range a.off {
		if off.concerns(at) {
			a.fail(at, allBad(at.Places, off.refusal)...)
		}
	}
	at.Places = a.good(at.Places)
	if len(at.Places) >= manyPlaces {
		a.fail(at, a.withoutHook(at)...)
		at.Places = a.good(at.Places)
	}
	if len(at.Places) == 0 {
		return
	}
	err := a.put(at, len(a.attached))
	if err == nil {
		a.fail(at, a.kernel.reloaded(at.Places)...)
		return
	}
	if !at.Kind.Multi() {
		a.fail(at, badPlace{at.Places[0], err})
		return
	}
	if bad := a.withoutHook(at); ofPlace(err) && len(bad) > 0 {
		a.fail(at, bad...)
		a.add(at)
		return
	}
	a.fail(at, a.search(at, err)...)
	if at.Places = a.good(at.Places); len(at.Places) == 0 {
		return
	}
	if err := a.put(at, len(a.attached)); err != nil {
		a.fail(at, allBad(at.Places, err)...)
	}
}

// manyPlaces is the least number of places of a link for which ftrace's hooks are read
// before the link is tried: reading them takes 5 million instructions, and a link that is
// refused 1 to 50 million.
const manyPlaces = 100

// withoutHook returns the places of a link at which ftrace has no hook, as far as that
// is known.
func (a *attacher) withoutHook(at compiler.Attachment) (bad []badPlace) {
	if !at.Kind.Multi() || at.Places[0].Addr == 0 { // all places have an address, or none
		return nil
	}
	hooks := a.hooks()
	for i := range at.Places {
		if p := &at.Places[i]; hooks != nil && !hooks.has(p.Addr) {
			bad = append(bad, badPlace{*p, unix.ENOENT})
		}
	}
	return bad
}

// fail leaves out the probes of bad places and records their errors.
func (a *attacher) fail(at compiler.Attachment, bad ...badPlace) {
	for _, b := range bad {
		if !a.failed[b.Probe] {
			a.leaveOut(b.Probe)
			a.errs = append(a.errs, &AttachError{b.Probe, at.Kind, b.err})
		}
	}
	for i := a.stale(); i >= 0; i = a.stale() {
		a.replace(i)
	}
}

// leaveOut leaves out a probe, and all levels of its chain.
func (a *attacher) leaveOut(p *compiler.Probe) {
	a.failed[p] = true
	if p.Chain == nil {
		return
	}
	for _, level := range p.Chain.Of {
		a.failed[level] = true
	}
}

// stale returns the index of an attachment in place that has a probe which is
// left out, or -1 if there is none.
func (a *attacher) stale() int {
	return slices.IndexFunc(a.attached, func(at *attached) bool {
		return len(a.good(at.Places)) < len(at.Places)
	})
}

// replace attaches attachment i again without the probes that are left out: the
// places of a link cannot be changed.
func (a *attacher) replace(i int) {
	at := a.attached[i]
	a.attached = slices.Delete(a.attached, i, i+1)
	if err := at.link.Close(); err != nil {
		a.errs = append(a.errs, fmt.Errorf("detach %s: %w", at.Program, err))
	}
	at.Places = a.good(at.Places)
	if len(at.Places) == 0 {
		return
	}
	if err := a.put(at.Attachment, i); err != nil {
		for _, p := range at.Places {
			a.leaveOut(p.Probe)
			a.errs = append(a.errs, &AttachError{p.Probe, at.Kind, err})
		}
	}
}

// good returns the places of the probes that are not left out.
func (a *attacher) good(places []compiler.Place) []compiler.Place {
	return slices.DeleteFunc(slices.Clone(places), func(p compiler.Place) bool { return a.failed[p.Probe] })
}

// put attaches at and stores it as attachment i of those in place.
func (a *attacher) put(at compiler.Attachment, i int) error {
	done, err := a.attach(at)
	if err == nil {
		a.attached = slices.Insert(a.attached, i, done)
	}
	return err
}

// search returns the places that make attaching at fail with err. A try that succeeds
// takes as long as attaching and detaching everything, so search is for what cannot be known
// otherwise. The links that it tries run a program that does nothing.
func (a *attacher) search(at compiler.Attachment, err error) []badPlace {
	kind := ebpf.AttachTraceKprobeMulti
	if at.Kind == compiler.KprobeSession {
		kind = ebpf.AttachTraceKprobeSession
	}
	prog, loadErr := inert(kind)
	if loadErr != nil {
		return allBad(at.Places, err)
	}
	defer prog.Close()
	return badPlaces(at.Places, err, func(places []compiler.Place) error {
		if a.stopped.Load() {
			return ErrStopped
		}
		at.Places = places
		l, err := attachMulti(prog, at)
		if err != nil {
			return err
		}
		return l.Close()
	})
}

// maxTries limits the search for bad places: finding one of a thousand takes 10 to 20
// tries. A try that fails takes a millisecond, or with names a millisecond for
// each hundred thousand symbols; one that succeeds takes an RCU grace period, too.
const maxTries = 200

var errTooManyBad = errors.New("too many functions of this link cannot be hooked, and the search for them was given up: name fewer")

// badPlace is a place that cannot be attached to.
type badPlace struct {
	compiler.Place
	err error
}

// badPlaces returns the places that make a link of several fail, which the kernel
// does not tell. err is the error of the link with all of them.
func badPlaces(places []compiler.Place, err error, try func([]compiler.Place) error) []badPlace {
	b := bisection{try: try}
	b.find(places, err)
	return b.bad
}

func allBad(places []compiler.Place, err error) (bad []badPlace) {
	for _, p := range places {
		bad = append(bad, badPlace{p, err})
	}
	return bad
}

type bisection struct {
	try   func([]compiler.Place) error
	tries int
	bad   []badPlace
}

// find adds the bad places among places, which together fail with err.
func (b *bisection) find(places []compiler.Place, err error) {
	switch {
	case len(places) == 1 || !ofPlace(err):
		b.bad = append(b.bad, allBad(places, err)...)
		return
	case b.tries >= maxTries:
		b.bad = append(b.bad, allBad(places, errTooManyBad)...)
		return
	}
	left, right := places[:len(places)/2], places[len(places)/2:]
	b.tries++
	leftErr := b.try(left)
	if leftErr == nil {
		b.find(right, err)
		return
	}
	b.find(left, leftErr)
	b.tries++
	if err := b.try(right); err != nil {
		b.find(right, err)
	}
}

// ofPlace reports whether an error is about a function to attach to, and not
// about the program, the user or the machine.
func ofPlace(err error) bool {
	all := []error{os.ErrNotExist, unix.EINVAL, unix.EBUSY, unix.EADDRNOTAVAIL, unix.ERANGE, unix.EILSEQ}
	return slices.ContainsFunc(all, func(e error) bool { return errors.Is(err, e) })
}

// AttachError reports a probe that could not be attached.
type AttachError struct {
	Probe *compiler.Probe
	Kind  compiler.Kind
	Err   error
}

func (e *AttachError) Error() string {
	place := e.Probe.Func.Name
	if e.Probe.Offset > 0 {
		place += fmt.Sprintf("+%d", e.Probe.Offset)
	}
	return fmt.Sprintf("attach %s to %s: %v", e.Kind, place, e.explained())
}

func (e *AttachError) Unwrap() error { return e.Err }

// enotsupp is the error of a trampoline for a signature that it cannot pass on
// (ENOTSUPP in include/linux/errno.h, which user space has no name for).
const enotsupp = unix.Errno(524)

// errTrampolineFull explains E2BIG (BPF_MAX_TRAMP_LINKS in include/linux/bpf.h).
var errTrampolineFull = errors.New("other programs have taken all the room for fentry and fexit there, which is for 38")

// Reason returns why the probe could not be attached.
func (e *AttachError) Reason() string { return e.explained().Error() }

// explained returns an explanation of the kernel's error number, which here means
// something else than its text says.
func (e *AttachError) explained() error {
	var errno unix.Errno
	if !errors.As(e.Err, &errno) {
		// The library wraps some numbers in errors of its own.
		switch {
		case errors.Is(e.Err, os.ErrNotExist):
			errno = unix.ESRCH
		case errors.Is(e.Err, ebpf.ErrNotSupported) && !e.Kind.Multi():
			errno = enotsupp
		default:
			return e.Err
		}
	}
	if e.Kind == compiler.Breakpoint {
		return breakpointRefusal(errno)
	}
	switch errno {
	case unix.E2BIG:
		return errTrampolineFull
	case unix.EMFILE:
		return errFiles
	case unix.EBUSY, unix.EINVAL, unix.ENOENT, unix.ESRCH, unix.EADDRNOTAVAIL, enotsupp:
		return fmt.Errorf("the kernel allows no probe there (error %d): it is marked notrace, or its code is not one plain function", int(errno))
	case unix.EPERM, unix.EACCES:
		return fmt.Errorf("the kernel does not permit it (error %d): kprobes need CAP_PERFMON with kernel.perf_event_paranoid at most 2, or CAP_SYS_ADMIN", int(errno))
	}
	return e.Err
}
