package runtime

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/resolve"
	"github.com/ksnoop/ksnoop/kallsyms"
)

// byTarget splits an attachment into one with the places by name and one with
// those by address, which one link cannot mix.
func byTarget(at compiler.Attachment) []compiler.Attachment {
	byName, byAddr := at, at
	byName.Places, byAddr.Places = nil, nil
	for _, p := range at.Places {
		if p.Addr == 0 {
			byName.Places = append(byName.Places, p)
		} else {
			byAddr.Places = append(byAddr.Places, p)
		}
	}
	return []compiler.Attachment{byName, byAddr}
}

// attach makes the link of an attachment.
func (s *Session) attach(at compiler.Attachment) (done *attached, err error) {
	prog := s.coll.Programs[at.Program]
	done = &attached{Attachment: at}
	switch {
	case at.Kind.Multi():
		done.link, err = attachMulti(prog, at)
	case at.Kind == compiler.Kprobe:
		done.link, err = s.attachProbe(link.Kprobe, prog, at, &link.KprobeOptions{})
	case at.Kind == compiler.Kretprobe:
		err = s.attachReturn(prog, done)
	case at.Kind == compiler.Iter:
		done.link, err = attachIterator(prog, at.Places[0].Probe.Func)
	case at.Kind == compiler.Breakpoint:
		done.link, err = s.attachBreakpoints(at.Program, at.Places[0].Probe)
	default:
		done.link, err = link.AttachTracing(link.TracingOptions{Program: prog})
	}
	return done, err
}

func attachMulti(prog *ebpf.Program, at compiler.Attachment) (link.Link, error) {
	var opts link.KprobeMultiOptions
	for _, p := range at.Places {
		if p.Addr != 0 {
			opts.Addresses = append(opts.Addresses, uintptr(p.Addr))
		} else {
			opts.Symbols = append(opts.Symbols, p.Symbol)
		}
		opts.Cookies = append(opts.Cookies, p.Cookie)
	}
	if at.Kind == compiler.KretprobeMulti {
		return link.KretprobeMulti(prog, opts)
	}
	opts.Session = at.Kind == compiler.KprobeSession
	return link.KprobeMulti(prog, opts)
}

type attachFunc func(symbol string, prog *ebpf.Program, opts *link.KprobeOptions) (link.Link, error)

// attachProbe attaches prog by a perf event.
func (s *Session) attachProbe(attach attachFunc, prog *ebpf.Program, at compiler.Attachment, opts *link.KprobeOptions) (link.Link, error) {
	place := at.Places[0]
	symbol, offset, err := s.kernel.kprobePlace(place)
	if err != nil {
		return nil, err
	}
	options := uint64(0)
	if at.Kind == compiler.Kretprobe {
		options = perfReturn
	}
	if symbol == "" && opts.RetprobeMaxActive > 0 {
		return nil, unix.EOPNOTSUPP // tracefs takes no place in front of the kernel's text
	}
	var l link.Link
	if symbol != "" {
		opts.Offset = offset
		l, err = attach(symbol, prog, opts)
	}
	// The library makes its perf events on the first CPU, which can be offline.
	if symbol == "" || errors.Is(err, unix.ENODEV) && opts.RetprobeMaxActive == 0 {
		l, err = attachAt(prog, symbol, offset, options)
	}
	if err == nil {
		return l, nil
	}
	// The library tries again with the prefix of system calls, and returns the
	// error for a function of that name.
	if errno := unix.Errno(0); errors.As(openPerfProbe(symbol, offset, options), &errno) {
		err = errno
	}
	if place.Offset > 0 {
		err = refusedOffset(place, symbol, offset, err)
	}
	return nil, err
}

// attachReturn attaches a kretprobe with the return instances that done asks for. That is
// possible only through tracefs; without it, the kernel's default is used.
func (s *Session) attachReturn(prog *ebpf.Program, done *attached) (err error) {
	if done.ReturnInstances > 0 {
		s.groups++
		done.group = fmt.Sprintf("%s_%d_%d", groupPrefix, os.Getpid(), s.groups)
		done.link, err = s.attachProbe(link.Kretprobe, prog, done.Attachment, &link.KprobeOptions{
			RetprobeMaxActive: done.ReturnInstances, TraceFSPrefix: done.group,
		})
		if err == nil {
			return nil
		}
		done.group = ""
	}
	why := err
	done.link, err = s.attachProbe(link.Kretprobe, prog, done.Attachment, &link.KprobeOptions{})
	if err == nil && why != nil {
		s.limited = append(s.limited, done.Places[0].Symbol)
		s.limitedBy = why
		if errno := unix.Errno(0); errors.As(why, &errno) {
			s.limitedBy = errno // without the name of the tracefs event, which tells the user nothing
		}
	}
	return err
}

// Notes returns sentences for the user about what was attached differently than
// it was asked for.
func (s *Session) Notes() []string {
	notes := append(s.instead.notes(), s.notes...)
	if len(s.limited) == 0 {
		return notes
	}
	return append(notes, fmt.Sprintf("the kretprobes on %s follow only as many calls at a time as the kernel's default, which can be one for each CPU: "+
		"to ask for more takes tracefs, %s", strings.Join(s.limited, ", "), tracefsCure(s.limitedBy)))
}

// textSymbol is the symbol at the beginning of the kernel's text. No other symbol
// has this name.
const textSymbol = "_stext"

// readText returns the address of textSymbol.
func (k *Kernel) readText() (uint64, error) {
	if addrs, err := lookUp([]string{textSymbol}); err == nil && addrs[0] != 0 {
		return addrs[0], nil
	}
	symbols, err := k.readSymbols(kallsyms.Wanted{Keep: func(name string) bool { return name == textSymbol }, Prefixes: []string{textSymbol}})
	if err != nil {
		return 0, err
	}
	if err := symbols.NeedAddresses(); err != nil {
		return 0, err
	}
	for _, s := range symbols.Lookup(textSymbol) {
		return s.Addr, nil
	}
	return 0, fmt.Errorf("find the beginning of the kernel's text: there is no symbol %s", textSymbol)
}

// attachAt attaches prog to what perfProbe makes, also where the library cannot: it knows
// kprobes by a symbol and an offset behind it, and there is no symbol in front of the
// modules of arm64.
func attachAt(prog *ebpf.Program, symbol string, offset, options uint64) (link.Link, error) {
	event, err := perfProbe(symbol, offset, options)
	if err != nil {
		return nil, err
	}
	attr := linkCreate{prog: uint32(prog.FD()), target: uint32(event), kind: uint32(ebpf.AttachPerfEvent)}
	fd, _, errno := unix.Syscall(unix.SYS_BPF, unix.BPF_LINK_CREATE, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr))
	if errno != 0 {
		return attachEvent(prog, event)
	}
	l, err := link.NewFromFD(int(fd)) // it holds the event
	if err == nil {
		err = unix.IoctlSetInt(event, unix.PERF_EVENT_IOC_ENABLE, 0)
	}
	if err = errors.Join(err, unix.Close(event)); err != nil {
		if l != nil {
			l.Close()
		}
		return nil, fmt.Errorf("link a perf event: %w", err)
	}
	return l, nil
}

// eventLink is a perf event with a program, on kernels without links for that
// (before 5.15). Of its methods only Close may be called.
type eventLink struct {
	link.Link
	event *os.File
}

func (l *eventLink) Close() error { return l.event.Close() }

func attachEvent(prog *ebpf.Program, event int) (link.Link, error) {
	err := unix.IoctlSetInt(event, unix.PERF_EVENT_IOC_SET_BPF, prog.FD())
	if err == nil {
		err = unix.IoctlSetInt(event, unix.PERF_EVENT_IOC_ENABLE, 0)
	}
	if err != nil {
		unix.Close(event)
		return nil, fmt.Errorf("attach a program to a perf event: %w", err)
	}
	return &eventLink{event: os.NewFile(uintptr(event), "kprobe")}, nil
}

// refusedKinds are functions that are traced by kprobe because the kernel has
// refused the kind that was chosen for them, by the kind and the reason.
type refusedKinds struct {
	refusals  []string
	functions map[string][]string
}

// add adds a probe that is a kprobe now.
func (r *refusedKinds) add(refusal string, p *compiler.Probe) {
	if r.functions == nil {
		r.functions = map[string][]string{}
	}
	if r.functions[refusal] == nil {
		r.refusals = append(r.refusals, refusal)
	}
	if name := p.Func.Name; !slices.Contains(r.functions[refusal], name) {
		r.functions[refusal] = append(r.functions[refusal], name)
	}
}

// mostNamed is the largest number of functions that a note names.
const mostNamed = 5

// notes returns a sentence for each reason.
func (r *refusedKinds) notes() (notes []string) {
	for _, refusal := range r.refusals {
		names := r.functions[refusal]
		some := strings.Join(names[:min(len(names), mostNamed)], ", ")
		if more := len(names) - mostNamed; more > 0 {
			some += fmt.Sprintf(" and %d more", more)
		}
		notes = append(notes, fmt.Sprintf("traced by kprobe: %s, as the kernel has refused %s", some, refusal))
	}
	return notes
}

// fallBack changes the probes that the kernel has refused to attach, if it takes
// kprobes on their functions, and loads all of them anew. It reports whether there
// were any, so that everything is to be attached again.
func (s *Session) fallBack(refusals error) (again bool, err error) {
	if s.Recompile == nil {
		return false, nil
	}
	for _, e := range split(refusals) {
		var refused *AttachError
		if !errors.As(e, &refused) || !s.kernel.takesKprobe(refused) {
			continue
		}
		refusal := fmt.Sprintf("%s: %s", refused.Kind, refused.Reason())
		if resolve.ByKprobe(refused.Probe, "the kernel has refused "+refusal) == nil {
			s.instead.add(refusal, refused.Probe)
			again = true
		}
	}
	if !again {
		return false, nil
	}
	unit, err := s.Recompile()
	if err != nil {
		return false, err
	}
	return true, s.reload(unit)
}

// takesKprobe reports whether the kernel would take a kprobe in place of what it has
// refused.
func (k *Kernel) takesKprobe(e *AttachError) bool {
	switch e.Kind {
	case compiler.Kprobe, compiler.Kretprobe, compiler.TpBTF:
		return false
	}
	if errors.Is(e.Err, unix.EPERM) || errors.Is(e.Err, unix.EACCES) || errors.Is(e.Err, unix.ENOMEM) {
		return false
	}
	places := []compiler.Place{{Probe: e.Probe, Symbol: e.Probe.Func.Symbol}}
	for i, addr := range e.Probe.Func.Addrs {
		places = append(places[:i], compiler.Place{Probe: e.Probe, Addr: addr})
	}
	off := func(s *tracingSwitch) bool {
		return errors.Is(e.Err, s.refusal) && s.concerns(compiler.Attachment{Kind: compiler.Kprobe, Places: places})
	}
	if slices.ContainsFunc(tracingSwitches[:], off) || k.reloaded(places) != nil {
		return false
	}
	return !slices.ContainsFunc(places, func(place compiler.Place) bool {
		symbol, offset, err := k.kprobePlace(place)
		return err != nil || openKprobe(symbol, offset) != nil
	})
}

// reload replaces everything in the kernel by a unit of the same probes. Nothing of
// the session has been read yet.
func (s *Session) reload(unit *compiler.Unit) error {
	if err := s.Close(); err != nil {
		return err
	}
	next, err := Load(unit, s.kernel)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unit, s.coll, s.ring, s.counters, s.watched, s.objects = next.unit, next.coll, next.ring, next.counters, next.watched, next.objects
	s.delivered, s.unread, s.notes, s.refused = next.delivered, next.unread, next.notes, next.refused
	s.closed, s.frozen, s.limited = false, false, nil
	s.closing.Store(false)
	if s.cgroup != nil {
		return s.TraceIn(s.cgroup)
	}
	return nil
}
