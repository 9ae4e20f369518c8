package kprobe

import (
	"strings"

	"github.com/ksnoop/ksnoop/compiler/spec"
)

const (
	longest  = 64 << 10 // bytes in a line
	deepest  = 64       // nested parentheses and !, and members
	mostArgs = 128      // as in the kernel
)

// Is reports whether text is a kprobe_events line and not a spec: whether its first
// word is the letter of a kind of line, alone or with a colon and a name, or begins
// with -: as a line does that deletes an event.
func Is(text string) bool {
	words := split(text)
	if len(words) == 0 {
		return false
	}
	first := text[words[0].Start:words[0].End]
	if strings.HasPrefix(first, "-:") {
		return true
	}
	head, _, named := strings.Cut(first, ":")
	letters := "prft"
	if named && len(head) > 1 { // a module may have this name, as e1000 and r8169 do
		if strings.Contains(first, "(") || !placeAt(text, words[1:]) {
			return false
		}
	} else if named {
		letters += "e"
	}
	return head != "" && strings.Contains(letters, head[:1]) && isNumber(head[1:]) && (named || len(words) > 1)
}

// placeAt reports whether the first of some words may be the place of a probe.
func placeAt(text string, words []spec.Span) bool {
	return len(words) > 0 && spec.IsWord(text[words[0].Start]) && text[words[0].Start:words[0].End] != "if"
}

// isNumber reports whether text is made of digits, perhaps hexadecimal ones after 0x, or empty.
func isNumber(text string) bool {
	hexadecimal, ok := strings.CutPrefix(strings.ToLower(text), "0x")
	return strings.Trim(text, digits) == "" || ok && strings.Trim(hexadecimal, digits+"abcdef") == ""
}

// ParseAny parses a spec or a kprobe_events line. Its error is always a
// [*spec.Error].
func ParseAny(text string) (*spec.Trace, error) {
	if Is(text) {
		return Parse(text)
	}
	return spec.Parse(text)
}

// Parse parses a kprobe_events line. Its error is always a [*spec.Error].
func Parse(line string) (*spec.Trace, error) {
	if err := check(line); err != nil {
		return nil, err
	}
	p := &parser{text: line, trace: &spec.Trace{Text: line, Line: &spec.Line{}}}
	if err := p.line(split(line)); err != nil {
		return nil, err
	}
	return p.trace, nil
}

// check refuses text that cannot be a line.
func check(line string) error {
	if len(line) > longest {
		return spec.Errorf(line[:longest], spec.Span{Start: longest, End: longest},
			"the line has %d bytes, the limit is %d", len(line), longest)
	}
	return spec.CheckText(line)
}

// parser reads a line word by word. Each method is called with pos at the beginning
// of what it parses and returns with pos after the end.
type parser struct {
	text     string
	trace    *spec.Trace
	pos, end int // of the word, or of the filter
	depth    int // number of open parentheses and !
}

// line parses a line of these words.
func (p *parser) line(words []spec.Span) error {
	if len(words) == 0 {
		return p.errorf(p.at(0), "the line is empty").WithHint("name a place, for example p vfs_read")
	}
	p.open(words[0])
	if err := p.head(); err != nil {
		return err
	}
	if len(words) == 1 || p.word(words[1]) == "if" {
		return p.noPlace(words)
	}
	p.open(words[1])
	if err := p.place(); err != nil {
		return err
	}
	args, filter := cutFilter(p.text, words[2:])
	if err := p.args(args); err != nil {
		return err
	}
	if filter != nil {
		return p.filter(*filter)
	}
	return nil
}

func (p *parser) noPlace(words []spec.Span) error {
	at := spec.Span{Start: words[0].End, End: words[0].End}
	err := p.errorf(at, "the place of the probe is missing")
	if p.trace.Line.Kind == spec.Tracepoint {
		return err.WithHint("name a tracepoint: %s sched_switch", p.word(words[0]))
	}
	return err.WithHint("name a function: %s vfs_read", p.word(words[0]))
}

// cutFilter splits the words at the word if, and returns the place of the filter
// after it. As in C, a parenthesis may directly follow the if.
func cutFilter(text string, words []spec.Span) (args []spec.Span, filter *spec.Span) {
	for i, w := range words {
		word := text[w.Start:w.End]
		if word == "if" || strings.HasPrefix(word, "if(") || strings.HasPrefix(word, "if!") {
			return words[:i], &spec.Span{Start: w.Start + len("if"), End: len(text)}
		}
	}
	return words, nil
}

// enter goes one level down. The limit bounds the recursion over the tree, here and
// in other packages.
func (p *parser) enter() error {
	if p.depth++; p.depth > deepest {
		return p.errorf(p.at(1), "more than %d parentheses and '!' inside each other", deepest)
	}
	return nil
}

func (p *parser) leave() { p.depth-- }
