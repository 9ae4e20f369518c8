package complete

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/compiler/spec/kprobe"
)

// lineHead returns the offset of the place in a kprobe_events line, after "p:name ",
// or -1 if the word is not such a line.
func lineHead(word string) int {
	if word == "" || !strings.Contains("prft", word[:1]) {
		return -1
	}
	head, _, ok := strings.Cut(word, " ")
	if !ok || len(head) > 1 && head[1] != ':' && (head[1] < '0' || head[1] > '9') {
		return -1
	}
	return len(head) + 1
}

// line completes a kprobe_events line: its place, its arguments with their types, and
// the fields in its filter.
func (c *specWord) line(head int) {
	where, _, ok := strings.Cut(c.word[head:], " ")
	if !ok {
		c.at = head
		if c.word[0] == 't' {
			c.tracepoints(where, []string{" "})
		} else {
			c.functions(c.source.kernel(), where, []string{" "})
		}
		return
	}
	where, returns := strings.CutSuffix(where, "%return")
	where, offset, _ := strings.Cut(where, "+")
	if c.word[0] == 't' {
		where = "tp:" + where
	}
	fn := c.call(where)
	if args, _, ok := strings.Cut(c.masked, " if "); ok {
		c.fields(fn, c.word[:len(args)], findPosition(c.masked, head))
		return
	}
	c.lineArgument(fn, lineWords{
		arguments: strings.Trim(strings.TrimPrefix(offset, "0x"), "0") == "",
		result:    (returns || c.word[0] == 'r' || c.word[0] == 'f') && (fn == nil || fn.result != 0),
		stack:     c.word[0] != 't',
	})
}

// lineWords says which values the place of a line has.
type lineWords struct {
	arguments bool // none are known after a function's beginning
	result    bool // $retval makes an f line one at the return
	stack     bool
}

// lineArgument completes an argument of a line, or its type. If fn is nil, the place
// is not known.
func (c *specWord) lineArgument(fn *call, has lineWords) {
	p := findPosition(c.masked, strings.LastIndexAny(c.masked, " =")+1)
	p.next = []string{" ", ":"}
	if p.address = p.inList; p.address {
		p.next = []string{")"}
	}
	c.at = strings.LastIndexAny(c.masked, " =:(") + 1
	switch {
	case c.masked[c.at-1] == ':':
		for _, name := range spec.FetchTypes {
			c.add(name, "", " ")
		}
	case p.kind == placeGlobal:
		c.complete(&call{types: c.source.kernel()}, p)
	case p.kind != placeMember:
		c.lineValues(fn, has, p)
	case fn != nil && !strings.ContainsAny(p.operand, "@()["): // which have no types in lines
		c.complete(fn, p)
	}
}

// lineValues adds the variables and the arguments that a line can name.
func (c *specWord) lineValues(fn *call, has lineWords, p position) {
	if !p.inList { // as a string, it is no address
		c.add("$comm", "", p.next...)
	}
	if has.result && (fn == nil || !p.address || fn.types.Word(fn.result)) {
		c.add("$retval", "", p.next...)
	}
	if has.stack {
		c.add("$stack", "", p.next...)
	}
	switch {
	case !has.arguments:
		return
	case fn == nil:
		for i := range 6 {
			c.add(fmt.Sprintf("$arg%d", i+1), "", p.next...)
		}
		return
	}
	for i, f := range fn.params {
		c.addField(fn, fmt.Sprintf("$arg%d", i+1), f.Type, p)
		if spec.IsName(f.Name) {
			c.addField(fn, f.Name, f.Type, p)
		}
	}
}

// fields completes a field of an event: an argument of its line, or what every event
// has.
func (c *specWord) fields(fn *call, line string, p position) {
	t, err := kprobe.Parse(line)
	if err != nil || p.kind != placeValue {
		return
	}
	var params []string // of $arg*
	if fn != nil {
		for _, f := range fn.params {
			params = append(params, f.Name)
		}
	}
	if t, err = t.Expand(params); err != nil {
		return
	}
	c.at = p.at
	for _, name := range slices.AppendSeq(t.ItemNames(), maps.Keys(spec.EventFields)) {
		c.add(name, "", p.next...)
	}
}
