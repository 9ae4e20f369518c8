package suite

import (
	"slices"
	"strings"

	"github.com/ksnoop/ksnoop/compiler/spec"
)

// modifierWords lists the words that may follow a condition.
var modifierWords = []string{"min-samples", "allow-unreached", "scope"}

// scopeWords has the word for each Scope.
var scopeWords = []string{System: "system", Task: "task", Cgroup: "cgroup"}

// assert parses an assertion.
func (p *parser) assert(l *line) (err error) {
	a := &Assert{From: l.from}
	if a.Name, err = p.newName(l, "assertion"); err != nil {
		return err
	}
	p.is(a.Name, "assert")
	l.skip()
	start := l.pos
	if a.Path, err = l.path(kindWords); err != nil {
		return err
	}
	if l.peek().text == "~" {
		tilde := l.token()
		if a.Other, err = l.other(a, tilde); err != nil {
			return err
		}
	}
	subject := spec.Span{Start: start, End: l.pos}
	if err := l.condition(a); err != nil {
		return err
	}
	if err := l.fits(a, subject); err != nil {
		return err
	}
	p.suite.Asserts = append(p.suite.Asserts, a)
	return nil
}

// other parses the second spec of a comparison.
func (l *line) other(a *Assert, tilde word) (*Spec, error) {
	if len(a.Path) > 1 {
		return nil, l.errorf(tilde.at, "a chain is not compared with another spec")
	}
	if next := l.peek(); next.text == stackWord || next.text == "" || slices.Contains(kindWords, next.text) {
		return nil, l.missing("a spec after '~'", next)
	}
	s, err := l.parseSpec()
	if next := l.peek(); err == nil && next.text == "~" {
		return nil, l.errorf(next.at, "two specs are compared, and this is a third")
	}
	return s, err
}

// condition parses the condition and its modifiers.
func (l *line) condition(a *Assert) error {
	if l.end() {
		last := a.Path[len(a.Path)-1].AnyOf[0].Func
		err := l.missing("a condition", word{})
		if near, ok := spec.Nearest(last.Name, slices.Values(kindWords)); ok {
			return err.WithMeant("%s", near)
		}
		return err.WithHint("the conditions are %s", strings.Join(kindWords, ", "))
	}
	w := l.token()
	c, ok := conditionOf(w.text)
	if !ok {
		return l.behindSpec(w, "a condition", kindWords)
	}
	a.Condition = c
	if err := l.operands(a, w); err != nil {
		return err
	}
	return l.modifiers(a, w)
}

// modifiers parses the modifiers after a condition.
func (l *line) modifiers(a *Assert, condition word) (err error) {
	seen := map[string]bool{}
	for !l.end() {
		w := l.token()
		switch {
		case seen[w.text]:
			return l.errorf(w.at, "a second '%s'", w.text)
		case w.text == "min-samples" && a.Kind != Percentile:
			return l.errorf(w.at, "only percentiles have 'min-samples', and this is '%s'", condition.text)
		case w.text == "min-samples":
			if a.Samples, err = l.number("a number after 'min-samples'"); err == nil && a.Samples == 0 {
				err = l.errorf(w.at, "a percentile of nothing: min-samples is 1 or more")
			}
		case w.text == "allow-unreached":
			a.AllowUnreached = true
			if err := l.unreachable(a, w); err != nil {
				return err
			}
		case w.text == "scope":
			a.Scope, err = l.scope()
		default:
			return l.unknown(w, "a modifier", modifierWords)
		}
		if err != nil {
			return err
		}
		seen[w.text] = true
	}
	if a.Kind == Percentile && a.Samples == 0 {
		return l.errorf(condition.at, "'%s' of a few calls says nothing: how many there must be is missing", condition.text).
			WithHint("write min-samples 1000 after the condition")
	}
	return nil
}

// unreachable refuses allow-unreached for conditions that need calls to pass.
func (l *line) unreachable(a *Assert, w word) error {
	if a.counts() && a.Low > 0 || a.Kind == Changed {
		return l.errorf(w.at, "without a call '%s' does not hold, so 'allow-unreached' contradicts it", &a.Condition)
	}
	return nil
}

// scope parses the scope: the tasks whose calls count.
func (l *line) scope() (Scope, error) {
	name, err := l.oneOf("a scope", scopeWords)
	return Scope(max(0, slices.Index(scopeWords, name))), err
}

// is records the kind of line that a name belongs to.
func (p *parser) is(name, what string) {
	at := p.places["name "+name]
	at.is = what
	p.places["name "+name] = at
}

// String returns the line of the assertion.
func (a *Assert) String() string {
	text := "assert " + a.Name + " " + PathText(a.Path)
	if a.Other != nil {
		text += " ~ " + a.Other.String()
	}
	text += " " + a.Condition.String()
	if a.Samples > 0 {
		text += " min-samples " + number(a.Samples)
	}
	if a.AllowUnreached {
		text += " allow-unreached"
	}
	return text + scopeText(a.Scope)
}

func scopeText(s Scope) string {
	if s == System {
		return ""
	}
	return " scope " + scopeWords[s]
}
