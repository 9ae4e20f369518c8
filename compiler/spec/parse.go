package spec

const (
	longest = 64 << 10 // bytes in a spec
	deepest = 64       // members in a value, and nested parentheses, casts, * and !
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

// ParseIn parses the spec that begins at an offset of a line, and returns where
// it ends: at the first word that cannot belong to it. Places in the tree are
// those of the line. An empty list of values, which [Parse] refuses, says that
// nothing is recorded: Items is then empty, and not nil.
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

// parser is a recursive descent parser with one token of lookahead, but for
// casts. Each method is called with tok at the first token of what it parses
// and leaves tok behind the last.
type parser struct {
	lexer
	tok   token
	prev  token // the one before tok
	depth int   // what is open of parentheses, casts, * and !
	last  *Item // the latest that was parsed
	cond  bool  // behind 'if'
	part  bool  // the spec is a part of the text, and may have an empty list
}

// advance moves to the next token.
func (p *parser) advance() (err error) {
	p.prev = p.tok
	p.tok, err = p.next()
	return err
}

// enter goes one level down. The limit keeps recursion over the tree, here and
// in whoever reads it, within bounds.
func (p *parser) enter() error {
	if p.depth++; p.depth > deepest {
		return Errorf(p.text, p.tok.at, "more than %d parentheses, casts, '*' and '!' inside each other", deepest)
	}
	return nil
}

func (p *parser) leave() { p.depth-- }

// trace parses a whole spec: what to trace, perhaps a list and perhaps a
// condition.
func (p *parser) trace(t *Trace) error {
	if err := p.target(t); err != nil {
		return err
	}
	refuse := p.badAfterFunc
	if p.tok.is("(") {
		if err := p.list(t); err != nil {
			return err
		}
		refuse = p.badAfterList
	}
	if p.tok.word("if") {
		if err := p.condition(t); err != nil {
			return err
		}
		refuse = p.badAfterCond
	}
	if p.tok.kind != end && !p.part {
		return refuse()
	}
	return nil
}

// target parses a function or a tracepoint, and the module before it.
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
	if t.Tracepoint = id.Name == "tp"; !t.Tracepoint {
		t.Module = id
		if err := p.checkModule(target); err != nil {
			return err
		}
	}
	return p.qualified(t)
}

// qualified parses the name behind the colon.
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

// first moves to a name that may have dots and wildcards in it.
func (p *parser) first() (err error) {
	p.prev = p.tok
	p.tok, err = p.function()
	return err
}

// checkFunc refuses what is no name of a function or tracepoint.
func (p *parser) checkFunc(t token) error {
	if t.kind != name || t.text == "return" || !suffixed(t.text) {
		return p.badFunc(t)
	}
	return p.checkGlob(t.text, func(at int) int { return t.at.Start + at })
}

// checkModule refuses what is no name of a module. One may begin with a digit:
// 8021q.
func (p *parser) checkModule(t token) error {
	if t.kind != name && t.kind != number || t.text == "return" {
		return p.badFunc(t)
	}
	for i := range len(t.text) {
		if !isWord(t.text[i]) {
			return Errorf(p.text, t.at, "%s is not the name of a module", t).
				WithHint("only the function may have wildcards and dots: ext4:ext4_*")
		}
	}
	return nil
}

// ident parses a name, which tok is known to be.
func (p *parser) ident() (Ident, error) {
	id := Ident{p.tok.text, p.tok.at}
	return id, p.advance()
}

// suffixed reports whether a dotted name is one with suffixes: no part of it
// is empty.
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
