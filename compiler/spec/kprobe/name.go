package kprobe

import (
	"strconv"
	"strings"

	"github.com/ksnoop/ksnoop/compiler/spec"
)

// name parses the name of an argument of the function, with its members, or a
// word of 2009.
func (p *parser) name() (spec.Expr, error) {
	id := p.run(spec.IsWord)
	arg := &spec.Arg{Name: id}
	if !p.has("->") && !p.has(".") {
		was, err := p.wordOf2009(id)
		if was != nil || err != nil {
			return &spec.Old{Name: id, Was: was}, err
		}
	}
	if err := p.atEntry(id.At); err != nil {
		return nil, err
	}
	return p.members(arg)
}

// wordOf2009 returns the value that a word had in 2009, when there were only p and r
// lines, or nil. Today a word is first of all the name of an argument.
func (p *parser) wordOf2009(id spec.Ident) (spec.Expr, error) {
	line := p.trace.Line
	if line.Kind != spec.Kprobe && line.Kind != spec.Kretprobe {
		return nil, nil
	}
	switch number := id.Name[1:]; {
	case id.Name == "sa":
		return &spec.StackPointer{At: id.At}, nil
	case id.Name == "rv" && line.Return:
		return &spec.Builtin{Name: spec.Ident{Name: "retval", At: id.At}}, nil
	case id.Name == "ra" && line.Return:
		return &spec.ReturnAddress{At: id.At}, nil
	case number == "" || strings.Trim(number, digits) != "":
		return nil, nil
	case id.Name[0] == 'a':
		return p.numberOf2009(id, number)
	case id.Name[0] == 's':
		return p.slotOf2009(id, number)
	}
	return nil, nil
}

// numberOf2009 returns the argument aN, counted from 0. If the number is too great,
// the word is a name.
func (p *parser) numberOf2009(id spec.Ident, number string) (spec.Expr, error) {
	n, err := strconv.ParseUint(number, 10, 16)
	if err != nil || n >= mostNumber {
		return nil, nil
	}
	arg := &spec.Builtin{Name: spec.Ident{Name: "arg" + strconv.FormatUint(n+1, 10), At: id.At}}
	return arg, p.atEntry(id.At)
}

// slotOf2009 returns sN, a word of the stack.
func (p *parser) slotOf2009(id spec.Ident, number string) (spec.Expr, error) {
	n, err := strconv.ParseUint(number, 10, 16)
	if err != nil || n > mostStack {
		return nil, nil
	}
	return &spec.StackSlot{N: n, At: id.At}, nil
}

// members parses the members after x, which is an argument or the return value.
func (p *parser) members(x spec.Expr) (spec.Expr, error) {
	for depth := 1; p.has("->") || p.has("."); depth++ {
		if err := p.checkMembers(x, depth); err != nil {
			return nil, err
		}
		dot := p.accept(".")
		if !dot {
			p.pos += 2
		}
		operator := p.text[p.pos-1 : p.pos]
		if !dot {
			operator = "->"
		}
		id := p.run(spec.IsWord)
		if id.Name == "" {
			return nil, p.expected("a member after '" + operator + "'")
		}
		x = &spec.Member{X: x, Dot: dot, Name: id}
	}
	return x, nil
}

// checkMembers refuses members of a value that has no type.
func (p *parser) checkMembers(x spec.Expr, depth int) error {
	at := p.at(2)
	if p.has(".") {
		at = p.at(1)
	}
	switch x := x.(type) {
	case *spec.Arg, *spec.Member:
	case *spec.Builtin:
		if x.Name.Name == "comm" {
			return p.errorf(at, "'$comm' is a string and has no members")
		}
	default:
		return p.errorf(at, "%s has no type, and so no members", spec.Quote(x.String())).
			WithHint("members are those of an argument, skb->len, or of $retval; other memory has an offset: +8(%s)", x)
	}
	if depth > deepest {
		return p.errorf(at, "a value with more than %d members", deepest)
	}
	return nil
}
