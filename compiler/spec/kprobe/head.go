package kprobe

import (
	"errors"
	"strconv"
	"strings"

	"github.com/ksnoop/ksnoop/compiler/spec"
)

// mostActive is the kernel's limit (KRETPROBE_MAXACTIVE_MAX).
const mostActive = 4096

// head parses the first word: the kind of probe and the name of the event.
func (p *parser) head() error {
	line := p.trace.Line
	switch kind := p.text[p.pos]; kind {
	case 'p', 'r', 'f', 't':
		line.Kind = spec.LineKind(kind)
		line.Return = line.Kind == spec.Kretprobe
		p.trace.Tracepoint = line.Kind == spec.Tracepoint
		p.pos++
	default:
		return p.badKind()
	}
	if err := p.maxActive(); err != nil {
		return err
	}
	switch {
	case p.accept(":"):
		return p.eventName()
	case p.pos < p.end:
		return p.expected("':' and the event's name after '" + string(rune(line.Kind)) + "'")
	default:
		return nil
	}
}

// badKind returns the error for a line that does not begin with the letter of a
// kind of probe.
func (p *parser) badKind() error {
	switch at := p.at(p.end - p.pos); {
	case p.has("-:"):
		return p.errorf(at, "there is nothing to delete on a command line").
			WithHint("-:EVENT removes an earlier line of a file")
	case p.has("e:"), p.rest() == "e":
		return p.errorf(at, "probes on events of other probes are not supported").
			WithHint("trace the tracepoint or function itself: t:name sched_switch")
	default:
		return p.errorf(at, "%s is not a kind of probe", spec.Quote(p.rest())).
			WithHint("a line begins with p, r, f or t, and ':' and a name for the event: p:name")
	}
}

// maxActive parses the number after r, as in r8.
func (p *parser) maxActive() error {
	number := p.run(spec.IsDigit)
	if number.Name == "" {
		return nil
	}
	if number.Name == "0" && (p.has("x") || p.has("X")) {
		rest := p.run(spec.IsWord)
		number.Name, number.At.End = number.Name+rest.Name, rest.At.End
	}
	if p.trace.Line.Kind != spec.Kretprobe {
		return p.errorf(number.At, "only r has a number of calls at once: r%s", number.Name)
	}
	n, err := spec.ParseUint(number.Name)
	switch {
	case err == nil && n > mostActive, errors.Is(err, strconv.ErrRange):
		return p.errorf(number.At, "%s calls at once are more than the limit (%d)", number.Name, mostActive)
	case err != nil, n == 0: // the kernel refuses 0, too
		return p.errorf(number.At, "%s is not a number of calls at once: from 1 to %d, as in r8", number.Name, mostActive)
	}
	p.trace.Line.MaxActive = int(n)
	return nil
}

// eventName parses [GROUP/][EVENT].
func (p *parser) eventName() error {
	group, event, err := p.groupEvent()
	p.trace.Line.Group, p.trace.Line.Event = group, event
	return err
}

// groupEvent parses the rest of the word as [GROUP/][EVENT].
func (p *parser) groupEvent() (group, event spec.Ident, err error) {
	name := p.run(func(byte) bool { return true })
	event = name
	if i := strings.IndexAny(name.Name, "/."); i >= 0 {
		group = spec.Ident{Name: name.Name[:i], At: spec.Span{Start: name.At.Start, End: name.At.Start + i}}
		event = spec.Ident{Name: name.Name[i+1:], At: spec.Span{Start: group.At.End + 1, End: name.At.End}}
		if err := p.checkEvent(group, "a group", strings.ReplaceAll(group.Name, "-", "_")); err != nil {
			return group, event, err
		}
		if event.Name == "" {
			return group, event, nil
		}
	}
	return group, event, p.checkEvent(event, "an event", event.Name)
}

// checkEvent refuses a name that the kernel does not accept for an event or a group.
// Plain is the name with the characters replaced that are allowed although a C
// identifier cannot have them.
func (p *parser) checkEvent(id spec.Ident, what, plain string) error {
	_, tracepoint, grouped := strings.Cut(id.Name, ":")
	switch {
	case id.Name == "":
		return p.errorf(id.At, "the name of %s is missing", what)
	case grouped && p.trace.Tracepoint && isIdentifier(tracepoint):
		return p.errorf(id.At, "%s is not a name for %s", spec.Quote(id.Name), what).WithHint("%s", spec.TracepointHint(tracepoint))
	case !isIdentifier(plain):
		return p.errorf(id.At, "%s is not a name for %s", spec.Quote(id.Name), what).
			WithHint("a name has letters, digits and '_', and does not begin with a digit")
	case len(id.Name) > spec.LongestEvent:
		return p.errorf(id.At, "a name of %d characters is longer than that of %s in the kernel (%d)",
			len(id.Name), what, spec.LongestEvent)
	}
	return nil
}
