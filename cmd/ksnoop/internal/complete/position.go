package complete

import (
	"slices"
	"strings"

	"github.com/ksnoop/ksnoop/btfdump/rawbtf"
	"github.com/ksnoop/ksnoop/compiler/spec"
)

// position is the place in a spec that is being typed.
type position struct {
	kind     placeKind
	at       int         // offset of its beginning
	name     string      // what has been typed of it
	inList   bool        // not after "if"
	next     []string    // what may follow a value here
	operand  string      // value whose member, or constant, follows
	arrow    bool        // "->" and not "."
	typeKind rawbtf.Kind // struct, union or enum
	cast     bool        // right behind parentheses that do not follow a name
	address  bool        // in the parentheses of a line, where only addresses have a meaning
}

type placeKind int

const (
	placeNone placeKind = iota
	placeValue
	placeMember
	placeBuiltin
	placeGlobal
	placeFormat
	placeType
	placeConstant
	placeIf
)

// findPosition returns the position at the end of a spec, whose target ends before
// from. The spec must be masked.
func findPosition(text string, from int) position {
	p := position{at: len(text)}
	for p.at > from && spec.IsWord(text[p.at-1]) {
		p.at--
	}
	p.name, p.cast = text[p.at:], endsInCast(text[:p.at])
	parens := strings.Count(text[from:], "(") - strings.Count(text[from:], ")")
	before := strings.TrimRight(text[from:p.at], " \t")
	p.next = []string{" ==", " !=", " <", " >", " &"}
	if p.inList = parens > 0 && !hasIf(text[from:p.at]); p.inList {
		p.next = []string{",", ")"}
	}
	p.find(before, before == text[from:p.at], parens)
	return p
}

// mask replaces what is in quotes by blanks, so that it is not taken for a part of the
// spec. It returns false if the last quotes are open.
func mask(text string) (string, bool) {
	masked, quote := []byte(text), byte(0)
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == quote:
			quote = 0
		case quote == 0 && (c == '"' || c == '\''):
			quote = c
		case quote != 0:
			masked[i] = ' '
			if c == '\\' && i+1 < len(text) {
				i++
				masked[i] = ' '
			}
		}
	}
	return string(masked), quote == 0
}

// find examines the text before the position. adjacent reports whether no blank is
// between.
func (p *position) find(before string, adjacent bool, parens int) {
	operand := func(n int) string { return lastOperand(before[:len(before)-n]) }
	switch {
	case strings.HasSuffix(before, "->"):
		p.kind, p.arrow, p.operand = placeMember, true, operand(2)
	case strings.HasSuffix(before, "."):
		p.kind, p.operand = placeMember, operand(1)
	case strings.HasSuffix(before, "$") && adjacent:
		p.kind = placeBuiltin
	case strings.HasSuffix(before, "@") && adjacent:
		p.kind = placeGlobal
	case strings.HasSuffix(before, ":"):
		p.kind = placeFormat
	case strings.HasSuffix(before, "-") && adjacent:
		p.at-- // of a negative constant
		p.findConstant(strings.TrimRight(before[:len(before)-1], " \t"))
	case p.findConstant(before):
	case lastWord(before) == "if", lastWord(before) == "on", hasAnySuffix(before, "(", ",", "&&", "||", "!", "*", "+", "-", "|", "<<", ">>"):
		p.kind = placeValue
	case keywordKinds[lastWord(before)] != 0 && !adjacent:
		p.kind, p.typeKind = placeType, keywordKinds[lastWord(before)]
	case p.cast:
		p.kind = placeValue
	case parens == 0 && (before == "" || !adjacent) && !hasIf(before):
		p.kind = placeIf
	}
}

// endsInCast reports whether a text ends in parentheses that do not follow a name.
func endsInCast(text string) bool {
	i := opening(text, '(', ')')
	return strings.HasSuffix(text, ")") && (i == 0 || !spec.IsWord(text[i-1]))
}

// findConstant reports whether a comparison is before the position.
func (p *position) findConstant(before string) bool {
	for _, op := range []string{"==", "!=", "<=", ">=", "<", ">", "&"} {
		if rest, ok := strings.CutSuffix(before, op); ok && !hasAnySuffix(before, "&&", "<<", ">>") {
			p.kind, p.operand = placeConstant, lastOperand(rest)
			return true
		}
	}
	return false
}

// lastOperand returns the value at the end of a text, to which "->" and "." apply.
func lastOperand(text string) string {
	text = strings.TrimRight(text, " \t")
	i := len(text)
	for i > 0 {
		switch c := text[i-1]; {
		case c == ']':
			i = opening(text[:i], '[', ']')
		case c == ')':
			return text[opening(text[:i], '(', ')'):]
		case spec.IsWord(c):
			i -= len(lastWord(text[:i]))
			switch rest := strings.TrimRight(text[:i], " \t"); {
			case strings.HasSuffix(rest, "->"):
				i = len(rest) - 2
			case strings.HasSuffix(rest, "."):
				i = len(rest) - 1
			case hasAnySuffix(rest, "$", "@") && len(rest) == i:
				return text[i-1:]
			default:
				return text[i:]
			}
		case c == ' ', c == '\t':
			i--
		default:
			return text[i:]
		}
	}
	return text
}

// opening returns the index of the bracket that the last one of a text closes.
func opening(text string, open, shut byte) int {
	depth := 0
	for i := len(text) - 1; i >= 0; i-- {
		switch text[i] {
		case shut:
			depth++
		case open:
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return 0
}

func lastWord(text string) string {
	i := len(text)
	for i > 0 && spec.IsWord(text[i-1]) {
		i--
	}
	return text[i:]
}

// hasIf reports whether a condition follows the list.
func hasIf(text string) bool {
	return slices.Contains(strings.Fields(strings.ReplaceAll(text, ")", " ")), "if")
}

func hasAnySuffix(text string, suffixes ...string) bool {
	return slices.ContainsFunc(suffixes, func(s string) bool { return strings.HasSuffix(text, s) })
}
