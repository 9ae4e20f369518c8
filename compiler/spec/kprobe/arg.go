package kprobe

import (
	"slices"
	"strings"

	"github.com/ksnoop/ksnoop/compiler/spec"
)

// longestName is the kernel's limit for the name of an argument.
const longestName = 32

// reserved lists the names of the fields that every event of the kernel has.
var reserved = []string{
	"common_type", "common_flags", "common_preempt_count", "common_pid", "common_tgid",
	"__probe_ip", "__probe_func", "__probe_ret_ip",
}

// args parses the arguments, one in each word.
func (p *parser) args(words []spec.Span) error {
	t := p.trace
	for _, w := range words {
		p.open(w)
		if len(t.Items) == mostArgs {
			return p.errorf(w, "an event has at most %d arguments", mostArgs)
		}
		item, err := p.arg()
		if err != nil {
			return err
		}
		t.Items = append(t.Items, item)
	}
	if t.Line.Kind == spec.Fprobe && mentionsReturn(t.Items) {
		t.Line.Return = true
	}
	if p.allArgs() {
		return nil // the arguments of the function are not known here
	}
	return t.CheckNames()
}

// mentionsReturn reports whether one of the items uses $retval.
func mentionsReturn(items []*spec.Item) bool {
	found := false
	for _, item := range items {
		spec.Walk(item.Value, func(x spec.Expr) {
			if b, ok := x.(*spec.Builtin); ok && b.Name.Name == "retval" {
				found = true
			}
		})
	}
	return found
}

// allArgs reports whether $arg* is among the items.
func (p *parser) allArgs() bool {
	return slices.ContainsFunc(p.trace.Items, func(i *spec.Item) bool {
		_, is := i.Value.(*spec.AllArgs)
		return is
	})
}

// arg parses [NAME=]VALUE[:TYPE].
func (p *parser) arg() (item *spec.Item, err error) {
	item = &spec.Item{}
	if item.Name, err = p.argName(); err != nil {
		return nil, err
	}
	if item.Value, err = p.value(); err != nil {
		return nil, err
	}
	if p.accept(":") {
		if item.Type, err = p.fetchType(); err != nil {
			return nil, err
		}
	}
	if p.pos < p.end {
		return nil, p.badAfterArg(item)
	}
	if old, ok := item.Value.(*spec.Old); ok && item.Type != nil && strings.HasSuffix(item.Type.Name, "string") {
		item.Value = &spec.Arg{Name: old.Name} // there were no strings in 2009
	}
	return item, p.checkArg(item)
}

// argName parses NAME=, which is optional.
func (p *parser) argName() (id spec.Ident, err error) {
	name, _, ok := strings.Cut(p.rest(), "=")
	if !ok || strings.Contains(name, `\"`) {
		return id, nil
	}
	id = spec.Ident{Name: name, At: p.at(len(name))}
	p.pos += len(name) + 1
	switch {
	case name == "":
		return id, p.errorf(id.At, "a name is missing before '='")
	case !isIdentifier(name):
		return id, p.errorf(id.At, "%s is not a name for an argument", spec.Quote(name)).
			WithHint("a name has letters, digits and '_', and does not begin with a digit")
	case len(name) > longestName:
		return id, p.errorf(id.At, "a name of %d characters is longer than that of any argument in the kernel (%d)", len(name), longestName)
	case slices.Contains(reserved, name):
		return id, p.errorf(id.At, "all events have a field '%s' already", name)
	case p.pos == p.end:
		return id, p.errorf(p.at(0), "a value is missing after '='").WithHint("there are no blanks in an argument")
	}
	return id, nil
}

// badAfterArg returns the error for unexpected text after a whole argument.
func (p *parser) badAfterArg(item *spec.Item) error {
	at, what := p.token()
	_, all := item.Value.(*spec.AllArgs)
	switch {
	case all:
		return p.errorf(at, "%s after '$arg*'", what).WithHint("it is written alone: the arguments have their own types")
	case p.has(")"):
		return p.errorf(at, "')' without a '(' before it")
	case item.Type != nil:
		return p.errorf(at, "%s after the type", what)
	case p.has("["):
		return p.errorf(at, "there is no index").WithHint("an array has a type with its length: +0($arg1):u8[4]")
	case p.has("+"), p.has("-"), p.has("*"), p.has("&"):
		return p.errorf(at, "there is no arithmetic").WithHint("memory at an offset is written +8(%%di)")
	default:
		return p.errorf(at, "%s after the value", what).WithHint("a type comes after ':', the next argument after a blank")
	}
}
