package spec

const (
	longest = 64 << 10 // bytes in a spec
	deepest = 64       // members in a value; nested parentheses, casts, * and !
)

// Parse parses a spec. Its error is always an [*Error].
func Parse(text string) (*Trace, error) {
	if len(text) > longest {
		return nil, Errorf(text[:longest], Span{longest, longest},
			"the spec has %d bytes, the limit is %d", len(text), longest)
	}
	t, _, err := parse(&parser{lexer: lexer{text: text}})
	return t, err
}

// ParseIn parses the spec that begins at offset start of a line. It returns the
// offset of the first word that cannot belong to the spec. Places in the tree are
// offsets in the line.
func ParseIn(line string, start int) (t *Trace, end int, err error) {
	return parse(&parser{lexer: lexer{text: line, pos: start}, part: true})
}

func parse(p *parser) (t *Trace, end int, err error) {
	t = &Trace{Text: p.text}
	if err := p.trace(t); err != nil {
		return nil, 0, err
	}
	return t, p.tok.at.Start, nil
}

// parser is a recursive descent parser with one token of lookahead, except for
// casts. Each method is called with tok at the first token of what it parses and
// returns with tok after the last.
type parser struct {
	lexer
	tok   token
	prev  token // the one before tok
	depth int   // number of open parentheses, casts, * and !
	last  *Item // the latest item
	cond  bool  // after 'if'
	open  int   // number of open parentheses around conditions
	part  bool  // other text may follow the spec
	bare  bool  // the items are not in parentheses

	of     *Trace // what the items belong to: a point, or values without one
	ending bool   // of is the second point of a span
	over   bool   // inside of after or diff
	number bool   // only a number can be here: in a comparison, an aggregate or a key

	operators int  // between values, so far
	grouped   bool // the latest predicate is one in parentheses
}

// advance moves to the next token. It is not inlined: it has 50 callers.
//
//go:noinline
func (p *parser) advance() (err error) {
	p.prev = p.tok
	p.tok, err = p.next()
	return err
}

// enter goes one level down. The limit bounds the recursion over the tree, here and
// in other packages.
func (p *parser) enter() error {
	if p.depth++; p.depth > deepest {
		return p.errorf(p.tok.at, "more than %d parentheses, casts, '*' and '!' inside each other", deepest)
	}
	return nil
}

func (p *parser) leave() { p.depth-- }

// trace parses a whole spec: a point, or the two of a span.
func (p *parser) trace(t *Trace) error {
	refuse, err := p.point(t)
	if err != nil {
		return err
	}
	if p.tok.arrow() {
		return p.span(t)
	}
	if p.tok.kind != end && !p.part {
		return refuse()
	}
	return nil
}

// point parses a target, then optionally a list and a condition. It returns the
// function that refuses what may not follow.
func (p *parser) point(t *Trace) (refuse func() error, err error) {
	p.of = t
	if err := p.target(t); err != nil {
		return nil, err
	}
	refuse = p.badAfterFunc
	if p.tok.is("(") {
		if err := p.list(t); err != nil {
			return nil, err
		}
		refuse = p.badAfterList
	}
	if p.tok.word("if") {
		if err := p.condition(t); err != nil {
			return nil, err
		}
		refuse = p.badAfterCond
	}
	return refuse, nil
}

// target parses a function, and the module before it, a tracepoint or an iterator.
func (p *parser) target(t *Trace) (err error) {
	if err := p.first(); err != nil {
		return err
	}
	id := Ident{p.tok.text, p.tok.at}
	target := p.tok
	if err := p.advance(); err != nil {
		return err
	}
	if !p.tok.is(":") {
		t.Func = id
		return p.checkFunc(target)
	}
	t.Tracepoint, t.Iterator = id.Name == "tp", id.Name == "iter"
	if !t.Tracepoint && !t.Iterator {
		t.Module = id
		if err := p.badProbeType(id); err != nil {
			return err
		}
		if err := p.checkModule(target); err != nil {
			return err
		}
	}
	return p.qualified(t)
}

// qualified parses the name after the colon.
func (p *parser) qualified(t *Trace) error {
	if err := p.first(); err != nil {
		return err
	}
	target := p.tok
	t.Func = Ident{target.text, target.at}
	if err := p.advance(); err != nil {
		return err
	}
	if p.tok.is(":") {
		return p.secondColon(t)
	}
	return p.checkFunc(target)
}

// first moves to the next token, which may be a name with dots and wildcards.
func (p *parser) first() (err error) {
	p.prev = p.tok
	p.tok, err = p.function()
	return err
}

// checkFunc refuses a token that is not the name of a function, tracepoint or iterator.
func (p *parser) checkFunc(t token) error {
	if t.kind != name || t.text == "return" || !suffixed(t.text) {
		return p.badFunc(t)
	}
	return p.checkGlob(t.text, func(at int) int { return t.at.Start + at })
}

// checkModule refuses a token that is not the name of a module. Such a name may
// begin with a digit, as 8021q does.
func (p *parser) checkModule(t token) error {
	if t.kind != name && t.kind != number || t.text == "return" {
		return p.badFunc(t)
	}
	if isSourceFile(t.text) {
		return p.errorf(t.at, "%s is not the name of a module", t).WithHint(sourceLines)
	}
	for i := range len(t.text) {
		if !IsWord(t.text[i]) {
			return p.errorf(t.at, "%s is not the name of a module", t).
				WithHint("only the function may have wildcards and dots: ext4:ext4_*")
		}
	}
	return nil
}

// ident parses a name. tok must be one.
func (p *parser) ident() (Ident, error) {
	id := Ident{p.tok.text, p.tok.at}
	return id, p.advance()
}

// suffixed reports whether no part of a dotted name is empty, so that the parts
// after the first are suffixes.
func suffixed(name string) bool {
	dot := true
	for _, c := range []byte(name) {
		if c == '.' && dot {
			return false
		}
		dot = c == '.'
	}
	return !dot
}
