package kprobe

import (
	"strings"

	"github.com/ksnoop/ksnoop/compiler/spec"
)

// The methods in this file return the errors for filters, at the place where the
// parser cannot continue.

// noField returns the error for an unexpected token where a predicate is expected.
func (p *parser) noField() error {
	at, what := p.token()
	switch {
	case p.pos == p.end, p.has(")"), p.has("&&"), p.has("||"):
		return p.errorf(at, "a condition is missing %s", p.before())
	case p.has("$"), p.has("%"), p.has("@"), p.has("+"), p.has(`\`):
		return p.errorf(at, "a filter tests the fields of the event, not %s", what).
			WithHint("give the value a name and test this: p vfs_read len=$arg3 if len > 4096")
	case spec.IsDigit(p.text[p.pos]), p.has(`"`), p.has("'"):
		return p.errorf(at, "a constant where a field belongs").WithHint("the constant comes after the operator: count > 5")
	default:
		return p.errorf(at, "expected a field, not %s", what)
	}
}

// before returns a description of the text before the current position.
func (p *parser) before() string {
	text := strings.TrimRight(p.text[:p.pos], " \t\n\v\f\r")
	for _, token := range []string{"if", "&&", "||", "(", "!"} {
		if strings.HasSuffix(text, token) {
			return "after '" + token + "'"
		}
	}
	return "here"
}

// badAs returns the error for an unexpected token after the dot of a field.
func (p *parser) badAs(f *spec.Field) error {
	return p.errorf(f.As.At, "a field has no members").
		WithHint("give the member a name and test this: p vfs_read flags=file->f_flags if flags & 2")
}

// noOp returns the error for an unexpected token after a field.
func (p *parser) noOp(f *spec.Field) error {
	at, what := p.token()
	err := p.errorf(at, "expected a comparison after '%s', not %s", f, what)
	switch {
	case p.pos == p.end, p.has(")"), p.has("&&"), p.has("||"):
		return p.errorf(at, "a comparison is missing after '%s'", f).WithHint("write %s != 0", f)
	case p.has("=~"), p.has("!~"):
		return err.WithHint(`write %s ~ "x*", or !(%s ~ "x*")`, f, f)
	case p.has("="):
		return err.WithMeant("==")
	case p.has("->"), p.has("["):
		return err.WithHint("give the value a name and test this: p vfs_read flags=file->f_flags if flags & 2")
	default:
		return err.WithHint("the comparisons are == != < <= > >= & ~")
	}
}

// noConstant returns the error for a word where a constant is expected.
func (p *parser) noConstant(f *spec.Field) error {
	at, what := p.token()
	id := p.word(at)
	switch {
	case p.has("="):
		return p.errorf(at, "expected a constant, not %s", what)
	case p.trace.FieldItem(spec.Ident{Name: id}) != nil:
		return p.errorf(at, "a field is compared with a constant, not with another field")
	case isIdentifier(id) && unknown(f):
		return p.errorf(at, "%s is not a number", what).WithHint("put strings in quotes: \"%s\"", id)
	case isIdentifier(id):
		err := p.errorf(at, "%s is not a number, and '%s' is not a string", what, f)
		if strings.ToUpper(id) == id {
			return err.WithHint("numbers have no names in these lines: write them out")
		}
		return err
	default:
		return p.errorf(at, "expected a constant, not %s", what)
	}
}

// badAfterTerm returns the error for an unexpected token after a predicate, where want is
// expected.
func (p *parser) badAfterTerm(want string) error {
	at, what := p.token()
	err := p.errorf(at, "expected '&&', '||' or %s, not %s", want, what)
	switch word := p.word(at); {
	case p.has(")"):
		return p.errorf(at, "')' without a '(' before it")
	case strings.EqualFold(word, "and"), p.has("&"), p.has(","):
		return err.WithMeant("&&")
	case strings.EqualFold(word, "or"), p.has("|"):
		return err.WithMeant("||")
	case p.has("="), p.has("<"), p.has(">"), p.has("!="):
		return err.WithHint("there is one comparison in a condition: (flags & 4) == 4 is flags & 4")
	case p.has("#"):
		return err.WithHint("comments are for files")
	default:
		return err
	}
}

// unclosedGroup returns the error for an unexpected token after predicates in parentheses.
func (p *parser) unclosedGroup() error {
	if p.pos == p.end {
		return p.errorf(p.at(0), "')' is missing")
	}
	return p.badAfterTerm("')'")
}
