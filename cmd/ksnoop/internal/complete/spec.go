package complete

import (
	"fmt"
	"strings"

	"github.com/cilium/ebpf/btf"

	"github.com/ksnoop/ksnoop/btfdump/rawbtf"
	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/runtime/render"
)

// candidate is a possible completion of a word.
type candidate struct {
	text, note string
	more       []string // possible continuations without a blank
}

// typeSource provides completion with the types of the kernel.
type typeSource interface {
	kernel() *rawbtf.Types            // nil if there are none
	modules() []string                // those that have types
	module(name string) *rawbtf.Types // nil if there is none of that name
}

// specWord completes a spec.
type specWord struct {
	source typeSource
	word   string
	masked string // the word, with blanks for what is in quotes
	at     int    // offset of the name to complete
	found  []*candidate
}

// completeSpec returns the completions of a spec at its end. A bare spec is only a
// target, and nothing follows it.
func completeSpec(source typeSource, word string, bare bool) []*candidate {
	masked, closed := mask(word)
	if source.kernel() == nil || !closed {
		return nil
	}
	c := &specWord{source: source, word: word, masked: masked}
	if head := lineHead(word); head >= 0 && !bare {
		c.line(head)
		return c.found
	}
	start := 0
	if s := findSpan(masked); s.end > 0 && !bare {
		if s.on > 0 {
			c.key(s)
			return c.found
		}
		start = s.end
	}
	end := strings.IndexAny(masked[start:], "( \t")
	if end < 0 {
		c.target(start, bare)
		return c.found
	}
	if fn := c.call(word[start : start+end]); fn != nil && !bare {
		c.complete(fn, findPosition(masked, start+end))
	}
	return c.found
}

// add adds a name, if it begins with what has been typed and is printable.
func (c *specWord) add(name, note string, more ...string) {
	if strings.HasPrefix(name, c.word[c.at:]) && render.PlainName(name) == name {
		c.found = append(c.found, &candidate{c.word[:c.at] + name, note, more})
	}
}

// complete completes the word at a position.
func (c *specWord) complete(fn *call, p position) {
	c.at = p.at
	switch p.kind {
	case placeValue:
		c.arguments(fn, p)
	case placeMember:
		c.members(fn, p)
	case placeBuiltin:
		c.builtins(fn, p)
	case placeGlobal:
		for id, name := range fn.types.Named(p.name, rawbtf.Var) {
			c.add(name, fn.types.CName(fn.types.Target(id)), p.next...)
		}
	case placeFormat:
		for _, f := range spec.Formats {
			c.add(f, "", p.next...)
		}
	case placeType:
		for _, name := range fn.types.Named(p.name, p.typeKind) {
			c.add(name, "", " *)", ")")
		}
	case placeConstant:
		c.constants(fn, p)
	case placeIf:
		c.add("if ", "")
		if findSpan(c.masked).end == 0 {
			c.add("=> ", "")
		} else {
			c.add("on ", "")
		}
	}
}

func (c *specWord) arguments(fn *call, p position) {
	for i, f := range fn.params {
		name := f.Name
		if name == "" {
			name = fmt.Sprintf("$arg%d", i+1)
		}
		c.addField(fn, name, f.Type, p)
	}
	if fn.result != 0 {
		c.addField(fn, "return", fn.result, p)
	}
	if p.name == "" {
		return // functions of values would hide the arguments
	}
	if !strings.HasPrefix(c.word, "tp:") && !strings.HasPrefix(c.word, "iter:") && findSpan(c.masked).end == 0 {
		for _, word := range spec.OverCalls {
			c.add(word+"(", "")
		}
	}
	if p.inList && len(c.found) == 0 { // an argument is often called count
		for _, word := range spec.Aggregates {
			c.add(word+"(", "")
		}
	}
}

func (c *specWord) addField(fn *call, name string, typ btf.TypeID, p position) {
	var more []string
	access := fn.accessor(typ)
	if access != "" {
		more = append(more, access)
	}
	switch {
	case !p.address || fn.types.Word(typ):
		more = append(more, p.next...)
	case access == "":
		return
	}
	c.add(name, fn.types.CName(typ), more...)
}

func (c *specWord) members(fn *call, p position) {
	t, ok := fn.operandType(p.operand)
	if !ok {
		return
	}
	for _, f := range fn.parts(t, p.arrow) {
		c.addField(fn, f.Name, f.Type, p)
	}
}

// operandType returns the type of a value as written.
func (c *call) operandType(text string) (operandType, bool) {
	t, err := spec.Parse("x(" + text + ")")
	if err != nil {
		t, err = spec.ParseValues(text) // which has addresses
	}
	if err != nil || len(t.Items) != 1 {
		return operandType{}, false
	}
	return c.typeOf(t.Items[0].Value)
}

func (c *specWord) builtins(fn *call, p position) {
	end := findSpan(c.masked).end > 0
	for _, name := range spec.Builtins {
		switch {
		case name == "arg":
			for i, f := range fn.params {
				c.addField(fn, fmt.Sprintf("arg%d", i+1), f.Type, p)
			}
		case fn.iterator, name == "retval" && fn.result == 0, name == "duration" && fn.tracepoint && !end:
		default:
			c.add(name, "", p.next...)
		}
	}
}

func (c *specWord) constants(fn *call, p position) {
	more := p.next
	if !p.inList {
		more = []string{" &&", " ||"}
	}
	t, ok := fn.operandType(p.operand)
	if !ok {
		return
	}
	named := fn.enumerators(t)
	for _, f := range named {
		c.add(f.Name, "", more...)
	}
	if p.name != "" {
		c.arguments(fn, p) // a value can be compared with another
	}
	if len(named) > 0 {
		return
	}
	if strings.HasPrefix(c.word[c.at:], "-") {
		for _, name := range compiler.ErrorNames() {
			c.add("-"+name, "", more...)
		}
		return
	}
	if fn.types.Kind(fn.types.Underlying(t.id)) == rawbtf.Pointer {
		c.add("NULL", "", more...)
	}
}
