package spec

// ParseWatch parses what is to be watched: a variable, or memory at an address with a
// cast, which are read without a call; or a spec whose items are members of the
// object to find. A condition may follow both. The error is always an [*Error].
func ParseWatch(text string) (*Trace, error) {
	if len(text) > longest {
		return nil, Errorf(text[:longest], Span{longest, longest}, "the text has %d bytes, the limit is %d", len(text), longest)
	}
	p := &parser{lexer: lexer{text: text}, of: &Trace{Text: text, Values: true, Watch: true}}
	if err := p.advance(); err != nil {
		return nil, err
	}
	if p.tok.kind != name {
		return p.watchMemory()
	}
	t, err := Parse(text)
	if err != nil {
		return nil, err
	}
	t.Watch = true
	return t, t.checkObject()
}

// watchMemory parses memory that can be read without a call, and a condition.
func (p *parser) watchMemory() (t *Trace, err error) {
	t = p.of
	if p.tok.kind == end {
		return nil, p.errorf(p.tok.at, "there is nothing to watch").WithHint("%s", watchExamples)
	}
	item, err := p.item()
	if err != nil {
		return nil, err
	}
	t.Func.At = item.Value.Span()
	t.Items = []*Item{item}
	if p.tok.word("if") {
		if err := p.condition(t); err != nil {
			return nil, err
		}
	}
	if p.tok.kind != end {
		return nil, p.unexpected("'if' or the end").WithHint("each variable to watch is a word of its own")
	}
	for _, item := range t.AllItems() {
		item.Walk(func(e Expr) {
			if err == nil {
				err = p.ofCall(e)
			}
		})
	}
	return t, err
}

// watchExamples shows what can be watched.
const watchExamples = "such as @jiffies_64, *(u32 *)0xffffffff82a01234, or tcp_v4_connect(sk->sk_err) for the object of the next call"

// checkObject refuses specs that do not name members of one object.
func (t *Trace) checkObject() error {
	example := t.Target()
	switch {
	case t.Ending != nil:
		return Errorf(t.Text, t.Func.At, "a span has no object to watch").WithHint("name one function: FUNC(ARGUMENT->MEMBER)")
	case t.Iterator:
		return Errorf(t.Text, t.Func.At, "%s reads what is there now, and the object to watch is that of a call", example)
	case IsGlob(t.Func.Name):
		return Errorf(t.Text, t.Func.At, "'%s' means many functions, and the object to watch is that of one", t.Func.Name)
	case len(t.Items) == 0:
		return Errorf(t.Text, t.Func.At, "'%s' names no memory to watch", example).
			WithHint("a variable is written @%s; a member of the object of the next call %s(ARGUMENT->MEMBER)", t.Func.Name, example)
	}
	for _, item := range t.Items {
		switch x := item.Value.(type) {
		case *Aggregate:
			return Errorf(t.Text, x.At, "%s() counts calls, and it is memory that is watched", x.Name.Name)
		case *Builtin:
			if x.Name.Name == stackBuiltin {
				return Errorf(t.Text, x.Span(), "'%s' is not memory that can be watched", x).WithHint("--stack shows the callers of the function that writes")
			}
		}
	}
	return nil
}

// stackBuiltin is the name of the builtin that is the kernel's stack.
const stackBuiltin = "kstack"

// WithStack adds the callers of the function that writes to a trace of [ParseWatch].
func (t *Trace) WithStack() {
	t.Items = append(t.Items, &Item{Value: &Builtin{Name: Ident{Name: stackBuiltin, At: t.Func.At}}})
}

// Watched returns the items that are memory to watch: all but the stack.
func (t *Trace) Watched() []*Item {
	last := len(t.Items) - 1
	if b, ok := t.Items[last].Value.(*Builtin); ok && b.Name.Name == stackBuiltin {
		return t.Items[:last]
	}
	return t.Items
}
