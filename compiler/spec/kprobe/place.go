package kprobe

import (
	"math"
	"strings"

	"github.com/ksnoop/ksnoop/compiler/spec"
)

// longestSymbol is the kernel's limit: KSYM_NAME_LEN without the final NUL.
const longestSymbol = 511

// place parses the second word: the place of the probe.
func (p *parser) place() error {
	if err := p.returnSuffix(); err != nil {
		return err
	}
	t := p.trace
	switch whole := p.rest(); {
	case whole == "":
		return p.errorf(p.at(0), "a function is missing before '%%return'")
	case strings.Contains(whole, "/") && t.Tracepoint:
		return p.grouped(p.at(strings.IndexByte(whole, '/')), "/")
	case strings.Contains(whole, "/"):
		return p.errorf(p.at(len(whole)), "probes in programs are not supported").
			WithHint("a place is a function of the kernel, for example vfs_read")
	case spec.IsDigit(whole[0]) && !strings.Contains(whole, ":"):
		return p.address()
	}
	if err := p.symbol(); err != nil {
		return err
	}
	if p.accept("+") {
		return p.offset()
	}
	if p.has("-") {
		return p.errorf(p.at(p.end-p.pos), "a place before '%s'", t.Func.Name).
			WithHint("count from the function that the instruction is in: vfs_read+16")
	}
	if p.pos < p.end {
		return p.badPlace()
	}
	return nil
}

// returnSuffix removes %return from the end of the word.
func (p *parser) returnSuffix() error {
	i := strings.IndexByte(p.rest(), '%')
	if i < 0 {
		return nil
	}
	at := spec.Span{Start: p.pos + i, End: p.end}
	switch {
	case p.word(at) != "%return":
		return p.errorf(at, "%s after the place", spec.Quote(p.word(at))).WithMeant("%%return")
	case p.trace.Tracepoint:
		return p.errorf(at, "a tracepoint returns nothing")
	}
	p.end = at.Start
	p.trace.Line.Return = true
	return nil
}

// address parses a place that is a number.
func (p *parser) address() error {
	number := p.run(spec.IsWord)
	n, err := spec.ParseUint(number.Name)
	kind := p.trace.Line.Kind
	switch {
	case kind == spec.Fprobe, kind == spec.Tracepoint:
		return p.errorf(number.At, "%c has a name, not an address", kind).WithHint("write p:NAME %s", number.Name)
	case err != nil:
		return p.badNumber(number, err)
	case p.has("+"), p.has("-"):
		return p.errorf(p.at(p.end-p.pos), "an offset from an address").WithHint("write the sum")
	case p.pos < p.end:
		return p.badPlace()
	case n == 0:
		return p.errorf(number.At, "no function is at address 0")
	}
	p.trace.Line.Address = n
	p.trace.Func.At = number.At
	return nil
}

// symbol parses a function or tracepoint, and the module before it.
func (p *parser) symbol() error {
	t := p.trace
	in := isDotted
	if t.Line.Kind == spec.Fprobe {
		in = isGlob
	}
	id := p.run(in)
	if p.has(":") {
		if err := p.checkModule(id); err != nil {
			return err
		}
		p.pos++
		t.Module, id = id, p.run(in)
	}
	t.Func = id
	switch {
	case id.Name == "":
		return p.noSymbol()
	case spec.IsDigit(id.Name[0]):
		return p.errorf(id.At, "%s is not a name of a function", spec.Quote(id.Name)).
			WithHint("a name does not begin with a digit")
	case len(id.Name) > longestSymbol:
		return p.errorf(id.At, "a name of %d characters is longer than any in the kernel (%d)", len(id.Name), longestSymbol)
	case t.Tracepoint && !isIdentifier(id.Name):
		return p.errorf(id.At, "%s is not a name of a tracepoint", spec.Quote(id.Name)).WithHint("a tracepoint is named without its group")
	}
	return p.checkGlob(id.Name, id.At.Start)
}

func (p *parser) noSymbol() error {
	if p.pos == p.end {
		return p.errorf(p.at(0), "a function is missing after ':'")
	}
	return p.expected("a function")
}

// checkModule refuses a name before a colon that is not the name of a module.
func (p *parser) checkModule(id spec.Ident) error {
	for i := range len(id.Name) {
		if !spec.IsWord(id.Name[i]) {
			return p.errorf(id.At, "%s is not the name of a module", spec.Quote(id.Name))
		}
	}
	switch {
	case id.Name == "":
		return p.errorf(p.at(1), "a module is missing before ':'")
	case p.trace.Tracepoint:
		return p.grouped(id.At, ":")
	}
	return nil
}

// grouped returns the error for a tracepoint with its group, which a separator ends.
func (p *parser) grouped(at spec.Span, separator string) error {
	return p.errorf(at, "a tracepoint is named without its group").WithHint("leave out '%s'", p.word(at)+separator)
}

// checkGlob refuses a malformed pattern. Start is its offset.
func (p *parser) checkGlob(pattern string, start int) error {
	_, err := spec.ParseGlob(pattern)
	if err, ok := err.(*spec.Error); ok {
		at := spec.Span{Start: start + err.At.Start, End: start + err.At.End}
		return p.errorf(at, "%s", err.Msg).WithHint("%s", err.Hint)
	}
	return nil
}

// offset parses the number after the plus sign of a place.
func (p *parser) offset() error {
	line := p.trace.Line
	number := p.run(spec.IsWord)
	n, err := spec.ParseUint(number.Name)
	at := spec.Span{Start: number.At.Start - 1, End: number.At.End}
	switch {
	case number.Name == "":
		return p.errorf(p.at(0), "a number is missing after '+'")
	case err != nil:
		return p.badNumber(number, err)
	case n > math.MaxUint32:
		return p.errorf(number.At, "the offset %s is longer than any function", number.Name)
	case p.pos < p.end:
		return p.badPlace()
	case n > 0 && line.Return:
		return p.errorf(at, "the return of a function has no offset").WithHint("leave out '+%s'", number.Name)
	case p.trace.Tracepoint:
		return p.errorf(at, "a tracepoint has no offset").WithHint("leave out '+%s'", number.Name)
	case n > 0 && line.Kind != spec.Kprobe:
		return p.errorf(at, "%c is only where a function begins", line.Kind).
			WithHint("write p:NAME %s+%s", p.trace.Symbol(), number.Name)
	}
	line.Offset = n
	return nil
}

// badPlace returns the error for an unexpected token after a place.
func (p *parser) badPlace() error {
	at, what := p.token()
	switch {
	case p.has(":"):
		return p.errorf(at, "':' after the function").WithHint("a place is a function, perhaps with its module: ext4:ext4_sync_file")
	case p.has("("):
		return p.errorf(at, "'(' after the place").WithHint("arguments come after the place: p vfs_read count=$arg3")
	case (p.has("*") || p.has("?") || p.has("[")) && p.trace.Tracepoint:
		return p.errorf(at, "a probe is at one place").WithHint("a spec takes patterns: tp:sched_*")
	case p.has("*"), p.has("?"), p.has("["):
		return p.errorf(at, "a probe is at one place").WithHint("f takes patterns: f:NAME vfs_*")
	default:
		return p.errorf(at, "%s is not a part of a place", what)
	}
}
