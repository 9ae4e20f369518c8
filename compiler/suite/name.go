package suite

import (
	"slices"
	"strings"

	"github.com/ksnoop/ksnoop/compiler/spec"
)

// named is a use of a name that another line must define.
type named struct {
	place
	name  string
	xfail bool
}

// longestName is the largest number of bytes in a name. Names are in every line of
// output.
const longestName = 128

// name reads a name that every format of results can print.
func (l *line) name(what string) (word, error) {
	w := l.word()
	bad := strings.IndexFunc(w.text, func(r rune) bool { return r != ':' && r != '/' && r != '+' && !isNameByte(byte(r)) })
	switch {
	case w.text == "":
		return w, l.missing(what, w)
	case bad >= 0:
		at := spec.Span{Start: w.at.Start + bad, End: w.at.Start + bad + 1}
		err := l.errorf(at, "a name has no '%c'", w.text[bad])
		return w, err.WithHint("names have letters, digits and _ - . : / +")
	case strings.IndexByte("-.:/+", w.text[0]) >= 0:
		return w, l.errorf(w.at, "a name does not begin with '%c'", w.text[0])
	case len(w.text) > longestName:
		return w, l.errorf(w.at, "the name has %d characters, the limit is %d", len(w.text), longestName)
	}
	return w, nil
}

// newName reads a name that no earlier line has defined.
func (p *parser) newName(l *line, is string) (string, error) {
	w, err := l.name("the name of the " + is)
	if err != nil {
		return "", err
	}
	if w.text == RunName {
		return "", l.errorf(w.at, "'%s' is the name of the command's own result", RunName)
	}
	if before, ok := p.places["name "+w.text]; ok {
		return "", l.errorf(w.at, "the name %s is taken by line %d", spec.Quote(w.text), before.line.from.Line)
	}
	p.places["name "+w.text] = place{l, w.at, is}
	return w.text, nil
}

// use reads a name that another line must define.
func (p *parser) use(l *line, xfail bool) (string, error) {
	what := "the name of an assertion or a metric"
	if xfail {
		what = "the name of an assertion"
	}
	w, err := l.name(what)
	if err == nil {
		p.named = append(p.named, named{place{line: l, at: w.at}, w.text, xfail})
	}
	return w.text, err
}

// unknownName returns the error for a name that no line defines.
func (p *parser) unknownName(use named) error {
	what := "assertion or metric"
	if use.xfail {
		what = "assertion"
	}
	err := use.line.errorf(use.at, "there is no %s %s", what, spec.Quote(use.name))
	var names []string
	for name := range p.places {
		if name, ok := strings.CutPrefix(name, "name "); ok {
			names = append(names, name)
		}
	}
	if near, ok := spec.Nearest(use.name, slices.Values(names)); ok {
		return err.WithMeant("%s", near)
	}
	return err
}
