package main

import (
	"strings"

	"github.com/ksnoop/ksnoop/compiler/spec"
)

// lineHead is where the place of a kprobe_events line begins, behind "p:name ";
// -1: it is none.
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

// lineVariables are what the arguments of a line can be, and lineTypes their types.
var (
	lineVariables = []string{"$comm", "$retval", "$stack", "$arg1", "$arg2", "$arg3", "$arg4", "$arg5", "$arg6"}
	lineTypes     = []string{"u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64", "x8", "x16", "x32", "x64", "char", "string", "ustring", "symbol", "symstr"}
)

// line completes a kprobe_events line: its function, the variables and arguments
// of that, and types.
func (c *specWord) line(head int) {
	rest := c.word[head:]
	where, _, ok := strings.Cut(rest, " ")
	if !ok {
		c.at = head
		more := []string{" "}
		if c.word[0] == 't' {
			c.tracepoints(rest, more)
		} else {
			c.functions(c.source.kernel(), rest, more)
		}
		return
	}
	c.at = strings.LastIndexAny(c.word, " =:") + 1
	if c.word[c.at-1] == ':' {
		for _, name := range lineTypes {
			c.add(name, "", " ")
		}
		return
	}
	for _, name := range lineVariables {
		c.add(name, "", " ", ":")
	}
	if c.word[0] == 't' {
		where = "tp:" + where
	}
	if fn := c.call(where); fn != nil && c.word[0] != 'r' {
		for _, f := range fn.params {
			if spec.IsName(f.name) {
				c.add(f.name, fn.types.typeName(f.typ), " ", ":")
			}
		}
	}
}
