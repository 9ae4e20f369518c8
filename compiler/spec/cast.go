package spec

import (
	"slices"
	"strings"
)

var (
	tags       = []string{"struct", "union", "enum"}
	qualifiers = []string{"const", "volatile"}
	basics     = []string{"unsigned", "signed", "long", "short", "int", "char", "void", "_Bool", "float", "double", "__int128"}
)

// isTypeWord reports whether word is a keyword of C that is part of a type. Nothing
// else can have such a name.
func isTypeWord(word string) bool {
	return slices.Contains(tags, word) || slices.Contains(qualifiers, word) || slices.Contains(basics, word)
}

// atCast reports whether the parenthesis at tok begins a cast. As it does not know
// typedefs, it decides by the tokens around them: (T *) is a type, and so is T in
// (T)x, and in (T)5 where there is no call, but not in (x) * 5. It looks no further than
// three tokens behind the next parenthesis, so that parsing takes linear time.
func (p *parser) atCast() bool {
	ahead := lookahead{lexer: p.lexer}
	ahead.advance()
	switch {
	case ahead.tok.kind != name, ahead.tok.text == "return":
		return false
	case isTypeWord(ahead.tok.text):
		return true
	}
	ahead.skip(func(t token) bool { return t.kind == name })
	pointer := ahead.tok.is("*")
	ahead.skip(func(t token) bool { return t.is("*") || slices.Contains(qualifiers, t.text) })
	switch {
	case ahead.tok.is("["):
		return ahead.arrayType(p.castable)
	case pointer || !ahead.tok.is(")"):
		return ahead.tok.is(")")
	}
	ahead.advance()
	return p.castable(ahead.tok) && (p.of.Values || !ahead.timesNumber())
}

// timesNumber reports whether tok is a star with a number after it: it multiplies, as a
// number points to nothing.
func (a lookahead) timesNumber() bool {
	if !a.tok.is("*") {
		return false
	}
	if a.advance(); a.tok.is("-") {
		a.advance()
	}
	return a.tok.numeric()
}

// castable reports whether what is cast can begin with t. Where there is no call, it may
// be a number: an address. What has is-err or a key after it is a value in parentheses.
func (p *parser) castable(t token) bool {
	ahead := lookahead{lexer: lexer{text: p.text, pos: t.at.End}}
	switch ahead.advance(); {
	case t.word("is") && strings.HasPrefix(p.text[t.at.Start:], ops[IsErr]):
		return false
	case t.word("on") && p.ending && p.cond && p.open == 0 && ahead.tok.beginsValue():
		return false
	}
	return t.beginsValue() || p.of.Values && t.numeric()
}

// arrayType reports whether [N] is the end of a type in parentheses. Without a value
// after them, [N] is the index of an array; so it is with a star after them, which
// multiplies.
func (a *lookahead) arrayType(castable func(token) bool) bool {
	a.advance()
	number := a.tok.kind == number
	a.advance()
	closed := a.tok.is("]")
	a.advance()
	closed = closed && a.tok.is(")")
	a.advance()
	return number && closed && castable(a.tok) && !a.tok.is("*")
}

// lookahead reads tokens ahead. The parser reads them again and reports their
// errors.
type lookahead struct {
	lexer lexer
	tok   token
}

func (a *lookahead) advance() {
	var err error
	if a.tok, err = a.lexer.next(); err != nil {
		a.tok = token{kind: end}
	}
}

// skip skips tokens for which in returns true.
func (a *lookahead) skip(in func(token) bool) {
	for in(a.tok) {
		a.advance()
	}
}

// beginsValue reports whether a value can begin with t.
func (t token) beginsValue() bool {
	return t.kind == name && t.text != "if" || t.is("(") || t.is("$") || t.is("@") || t.is("*")
}

// cast parses a type in parentheses and the value after it.
func (p *parser) cast() (Expr, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	open := p.tok
	if err := p.advance(); err != nil {
		return nil, err
	}
	typ, err := p.typeName()
	if err != nil {
		return nil, err
	}
	if !p.tok.is(")") {
		return nil, p.badAfterType()
	}
	at := Span{open.at.Start, p.tok.at.End}
	if err := p.advance(); err != nil {
		return nil, err
	}
	var x Expr
	switch {
	case p.of.Values && p.tok.numeric(): // an address
		x, err = p.operand()
	case !p.tok.beginsValue():
		return nil, p.nothingToCast(at)
	default:
		x, err = p.value()
	}
	return &Cast{typ, x, at}, err
}

// typeName parses a type.
func (p *parser) typeName() (typ TypeName, err error) {
	start := p.tok.at.Start
	var words []string
	for p.tok.kind == name {
		if word := p.tok.text; !slices.Contains(qualifiers, word) {
			if !continues(words, word) {
				return typ, p.badTypeWord(words)
			}
			words = append(words, word)
		}
		if err := p.advance(); err != nil {
			return typ, err
		}
	}
	if len(words) == 0 || len(words) == 1 && slices.Contains(tags, words[0]) {
		return typ, p.badType(words)
	}
	typ.Name = strings.Join(words, " ")
	for p.tok.is("*") || slices.Contains(qualifiers, p.tok.text) {
		if p.tok.is("*") {
			if typ.Stars++; typ.Stars > deepest {
				return typ, p.errorf(p.tok.at, "a pointer to a pointer and so on, more than %d of them", deepest)
			}
		}
		if err := p.advance(); err != nil {
			return typ, err
		}
	}
	if p.tok.is("[") {
		if err := p.count(&typ); err != nil {
			return typ, err
		}
	}
	typ.At = Span{start, p.prev.at.End}
	return typ, nil
}

// count parses [N] after a type.
func (p *parser) count(typ *TypeName) error {
	if err := p.advance(); err != nil {
		return err
	}
	if p.tok.kind != number {
		return p.badIndex(nil)
	}
	n, err := p.integer(p.tok.at.Start, false, false)
	if err == nil {
		err = p.checkIndex(n)
	}
	switch {
	case err != nil:
		return err
	case n.Abs == 0:
		return p.errorf(n.At, "an array of no elements")
	case !p.tok.is("]"):
		return p.unclosedIndex()
	}
	typ.Count = n.Abs
	return p.advance()
}

// continues reports whether word can follow the words of a type: a name after
// struct, or another word of an integer type.
func continues(words []string, word string) bool {
	switch {
	case len(words) == 0:
		return word != "return"
	case slices.Contains(tags, words[0]):
		return len(words) == 1 && !isTypeWord(word)
	default:
		return slices.Contains(basics, words[0]) && slices.Contains(basics, word)
	}
}
