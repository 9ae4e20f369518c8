package main

import (
	"fmt"
	"strings"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
)

// candidate is what a word may become.
type candidate struct {
	text, note string
	more       []string // what may follow without a blank
}

// typeSource is where completion finds the types of the kernel.
type typeSource interface {
	kernel() *names            // nil: there are none
	modules() []string         // those that have types
	module(name string) *names // nil: there is none of that name
}

// specWord completes a spec.
type specWord struct {
	source typeSource
	word   string
	at     int // where the name begins that is to be completed
	found  []*candidate
}

// completeSpec is what a spec may become whose end is being typed. A bare one
// is a target, and nothing follows it.
func completeSpec(source typeSource, word string, bare bool) []*candidate {
	c := &specWord{source: source, word: word}
	if source.kernel() == nil {
		return nil
	}
	if head := lineHead(word); head >= 0 && !bare {
		c.line(head)
		return c.found
	}
	end := strings.IndexAny(word, "( \t")
	if end < 0 {
		c.target(0, bare)
		return c.found
	}
	if fn := c.call(word[:end]); fn != nil && !bare {
		c.values(fn, end)
	}
	return c.found
}

// add adds a name, if it begins with what was typed and can be printed.
func (c *specWord) add(name, note string, more ...string) {
	if strings.HasPrefix(name, c.word[c.at:]) && plainName(name) == name {
		c.found = append(c.found, &candidate{c.word[:c.at] + name, note, more})
	}
}

// following is what may follow a value: in the list, or behind if.
func following(inList bool) []string {
	if inList {
		return []string{",", ")"}
	}
	return []string{" ==", " !=", " <", " >", " &"}
}

// values completes what stands behind the target, which ends at a place.
func (c *specWord) values(fn *call, end int) {
	p := findPosition(c.word, end)
	c.at = p.at
	switch p.kind {
	case placeValue:
		c.arguments(fn, p)
	case placeMember:
		c.members(fn, p)
	case placeBuiltin:
		c.builtins(fn, p)
	case placeGlobal:
		fn.types.of(p.name, func(name string, id uint32) {
			c.add(name, fn.types.typeName(fn.types.ref(id)), following(p.inList)...)
		}, kindVar)
	case placeFormat:
		for _, f := range spec.Formats {
			c.add(f, "", following(p.inList)...)
		}
	case placeType:
		fn.types.of(p.name, func(name string, _ uint32) { c.add(name, "", " *)", ")") }, p.typeKind)
	case placeConstant:
		c.constants(fn, p)
	case placeIf:
		c.add("if ", "")
	}
}

func (c *specWord) arguments(fn *call, p position) {
	for i, f := range fn.params {
		name := f.name
		if name == "" {
			name = fmt.Sprintf("$arg%d", i+1)
		}
		c.addField(fn, name, f.typ, p)
	}
	if fn.result != 0 {
		c.addField(fn, "return", fn.result, p)
	}
}

func (c *specWord) addField(fn *call, name string, typ uint32, p position) {
	more := following(p.inList)
	if access := fn.accessor(typ); access != "" {
		more = append([]string{access}, more...)
	}
	c.add(name, fn.types.typeName(typ), more...)
}

func (c *specWord) members(fn *call, p position) {
	t, ok := fn.operandType(p.operand)
	if !ok {
		return
	}
	for _, f := range fn.parts(t, p.arrow) {
		c.addField(fn, f.name, f.typ, p)
	}
}

// operandType is the type of a value as it is written.
func (c *call) operandType(text string) (operandType, bool) {
	t, err := spec.Parse("x(" + text + ")")
	if err != nil || len(t.Items) != 1 {
		return operandType{}, false
	}
	return c.typeOf(t.Items[0].Value)
}

func (c *specWord) builtins(fn *call, p position) {
	for _, name := range spec.Builtins {
		if name != "arg" {
			c.add(name, "", following(p.inList)...)
			continue
		}
		for i, f := range fn.params {
			c.addField(fn, fmt.Sprintf("arg%d", i+1), f.typ, p)
		}
	}
}

func (c *specWord) constants(fn *call, p position) {
	more := following(true)
	if !p.inList {
		more = []string{" &&", " ||"}
	}
	t, ok := fn.operandType(p.operand)
	if !ok {
		return
	}
	named := fn.enumerators(t)
	for _, f := range named {
		c.add(f.name, "", more...)
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
	if fn.types.kind(fn.types.bare(t.id)) == kindPointer {
		c.add("NULL", "", more...)
	}
}
