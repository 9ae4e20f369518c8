package suite

import (
	"slices"
	"strings"

	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/compiler/spec/kprobe"
)

const (
	stackWord = "-s"
	anyOfWord = "any-of"
	deepest   = 64 // functions of a chain, as many as package resolve takes
	mostNames = 64 // names after any-of
)

// path parses a spec, or the functions of a chain, which end at one of the words
// in follow.
func (l *line) path(follow []string) (path []*Spec, err error) {
	ahead := *l
	if ahead.word().text != stackWord {
		s, err := l.parseSpec()
		return []*Spec{s}, err
	}
	option := l.word()
	for next := l.peek().text; next != "" && next != "~" && !slices.Contains(follow, next); next = l.peek().text {
		s, err := l.parseSpec()
		if err != nil {
			return nil, err
		}
		if err := l.inChain(s); err != nil {
			return nil, err
		}
		path = append(path, s)
	}
	if len(path) < 2 || len(path) > deepest {
		return nil, l.errorf(option.at, "a chain has 2 to %d functions, not %d", deepest, len(path))
	}
	return path, nil
}

// inChain refuses a spec that cannot be part of a chain.
func (l *line) inChain(s *Spec) error {
	for _, t := range s.AnyOf {
		switch {
		case t.Line != nil:
			return l.errorf(t.Func.At, "a chain is made of specs, and this is a kprobe_events line").WithHint("write %s", t.Symbol())
		case spec.IsGlob(t.Func.Name):
			return l.errorf(t.Func.At, "a chain is made of single functions, and %s means many", spec.Quote(t.Func.Name))
		}
	}
	if a := tabled(s); a != nil {
		return l.errorf(a.At, "the calls of a chain are counted as chains, and %s() makes a table of calls", a.Name.Name).
			WithHint("leave it out, or the chain")
	}
	return nil
}

// parseSpec parses a spec or a kprobe_events line.
func (l *line) parseSpec() (*Spec, error) {
	if l.end() {
		return nil, l.missing("a spec", word{})
	}
	l.spec = l.pos
	first := l.peek()
	switch quoted := l.text[l.pos] == '"' || l.text[l.pos] == '\''; {
	case quoted:
		return l.probe()
	case first.text == anyOfWord:
		l.token()
		return l.anyOf(first)
	}
	t, end, err := spec.ParseIn(l.text, l.pos)
	if err != nil {
		return nil, l.adopt(err, 0)
	}
	if err := l.ofCalls(t); err != nil {
		return nil, err
	}
	l.pos, t.From = end, l.from
	return &Spec{AnyOf: []*spec.Trace{t}}, nil
}

// ofCalls returns an error for a spec of an iterator.
func (l *line) ofCalls(t *spec.Trace) error {
	if !t.Iterator {
		return nil
	}
	return l.errorf(t.Func.At, "%s is an iterator, and a probe file is about calls", t.Func.Name).
		WithHint("read it in the command of the test: ksnoop -o json 'iter:...'")
}

// behindSpec returns the error for an unexpected word after a spec. If the spec and
// the word look like a kprobe_events line, the hint says so.
func (l *line) behindSpec(w word, what string, words []string) error {
	ahead := line{text: l.text, pos: l.spec}
	switch first := ahead.word(); {
	case kprobe.Is(l.text[l.spec:]):
		return l.errorf(first.at, "put a kprobe_events line in quotes").WithHint(`write "%s ..."`, first.text)
	case w.text == ")":
		return l.errorf(w.at, "')' without a '(' before it")
	case w.text == "if":
		return l.errorf(w.at, "'if' after the end of the spec").WithHint("that of a kprobe_events line is inside its quotes")
	}
	return l.unknown(w, what, words)
}

// probe parses a kprobe_events line in quotes.
func (l *line) probe() (*Spec, error) {
	start, end := l.pos, closing(l.text, l.pos)
	at := spec.Span{Start: start, End: start + 1}
	if end == len(l.text) {
		return nil, l.errorf(at, "the quotes of the kprobe_events line are not closed")
	}
	if !kprobe.Is(l.text[start+1 : end]) {
		return nil, l.errorf(at, "what is in quotes is not a kprobe_events line").WithHint("a spec is written without quotes around it")
	}
	t, err := kprobe.Parse(blanks(start+1) + l.text[start+1:end])
	if err != nil {
		return nil, l.adopt(err, 0)
	}
	l.pos = end + 1
	t.Text, t.From = l.text, l.from
	return &Spec{AnyOf: []*spec.Trace{t}, Text: l.text[start:l.pos]}, nil
}

// anyOf parses the names of functions, of which the first that exists is traced,
// and the part of the spec that is the same for all of them.
func (l *line) anyOf(first word) (*Spec, error) {
	names, err := l.names(first)
	if err != nil {
		return nil, err
	}
	s := &Spec{}
	behind := l.pos
	for _, name := range names {
		// The text of one spec is this name and the common part, each at its
		// place in the line.
		text := blanks(name.at.Start) + name.text + blanks(behind-name.at.End) + l.text[behind:]
		t, end, err := spec.ParseIn(text, 0)
		if err != nil {
			return nil, l.adopt(err, 0)
		}
		if t.Func.At.End != name.at.End {
			return nil, l.notAFunction(name)
		}
		if err := l.ofCalls(t); err != nil {
			return nil, err
		}
		l.pos, t.Text, t.From = max(end, behind), l.text, l.from
		s.AnyOf = append(s.AnyOf, t)
	}
	return s, nil
}

// names reads the names between the braces.
func (l *line) names(first word) (names []word, err error) {
	if l.end() || l.text[l.pos] != '{' {
		return nil, l.missing("'{' after 'any-of'", l.peek()).WithHint("write any-of {tcp_sendmsg tcp_sendmsg_locked}")
	}
	l.pos++
	length := strings.IndexByte(l.text[l.pos:], '}')
	if length < 0 {
		return nil, l.errorf(first.at, "'any-of' has no closing '}'")
	}
	inside := line{text: l.text[:l.pos+length], from: l.from, pos: l.pos}
	for !inside.end() {
		name := inside.word()
		if bad := strings.IndexAny(name.text, "(),{\"'"); bad >= 0 {
			return nil, l.notAFunction(name)
		}
		if slices.ContainsFunc(names, func(w word) bool { return w.text == name.text }) {
			return nil, l.errorf(name.at, "%s is there twice", spec.Quote(name.text))
		}
		names = append(names, name)
	}
	l.pos += length + 1
	switch {
	case len(names) < 2:
		return nil, l.errorf(first.at, "'any-of' has 2 names or more").WithHint("without a choice, write only the name")
	case len(names) > mostNames:
		return nil, l.errorf(first.at, "'any-of' has %d names, the limit is %d", len(names), mostNames)
	}
	return names, nil
}

func (l *line) notAFunction(name word) error {
	return l.errorf(name.at, "%s is not a name of a function", spec.Quote(name.text)).
		WithHint("names are separated by blanks, and values come after the '}'")
}

func blanks(n int) string { return strings.Repeat(" ", n) }

// String returns s as it is written in a probe file.
func (s *Spec) String() string {
	first := s.AnyOf[0]
	switch {
	case s.Text != "":
		return s.Text
	case len(s.AnyOf) == 1:
		return first.String()
	}
	var names []string
	for _, t := range s.AnyOf {
		names = append(names, t.Target())
	}
	return anyOfWord + " {" + strings.Join(names, " ") + "}" + strings.TrimPrefix(first.String(), first.Target())
}

// PathText returns a path as it is written in a probe file.
func PathText(path []*Spec) string {
	if len(path) == 1 {
		return path[0].String()
	}
	text := stackWord
	for _, s := range path {
		text += " " + s.String()
	}
	return text
}

// name returns the name of the function that was counted, for people.
func (c *Counts) name(path []*Spec) string {
	if c.Func != "" {
		return c.Func
	}
	t := path[len(path)-1].AnyOf[0]
	if t.Line != nil {
		return t.Symbol()
	}
	return t.Target()
}
