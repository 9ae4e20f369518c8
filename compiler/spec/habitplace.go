package spec

import (
	"fmt"
	"strings"
)

// This file has what users of bpftrace, perf-probe, gdb and C write where a spec has
// the name of a function.

const (
	sourceLines   = "source lines are not known to ksnoop: name a function, as in vfs_read(count)"
	noExpressions = "names have the wildcards * ? [a-z] of a shell, not regular expressions: vfs_*"
	severalSpecs  = "write one spec for each function, each in quotes of its own, or a glob: vfs_*"
	noPrograms    = "there are no programs: name the values to show, as in vfs_read(count)"
)

// FunctionHabit returns a hint for a word that other tools have in place of a function,
// or "" for other words.
func FunctionHabit(word string) string {
	switch word {
	case "BEGIN", "begin":
		return "there are no programs: name a function, as in vfs_read(count)"
	case "END", "end":
		return "there are no programs: --summary and aggregates show what was counted at the end: vfs_read(count())"
	case "container_of":
		return noContainerOf
	}
	switch {
	case stackHabits[word] != "":
		return "a stack is a value in the list of a function: vfs_read(" + stackHabits[word] + ")"
	case isSourceFile(word):
		return sourceLines
	}
	return ""
}

// noContainerOf is the hint for a macro of C.
const noContainerOf = "container_of is a macro: subtract the offset of the member, which ksnoop info TYPE shows: (struct y *)((u8 *)x - 16)"

// stackHabits has the words for stacks in bpftrace, gdb and SystemTap.
var stackHabits = map[string]string{
	"kstack": "$kstack", "stack": "$kstack", "bt": "$kstack", "backtrace": "$kstack", "print_backtrace": "$kstack",
	"ustack": "$ustack", "ubacktrace": "$ustack", "print_ubacktrace": "$ustack",
}

// isSourceFile reports whether a word is the name of a file of C.
func isSourceFile(word string) bool {
	return strings.HasSuffix(word, ".c") || strings.HasSuffix(word, ".h") || strings.HasSuffix(word, ".S")
}

// commandHint returns a hint for a command of gdb at the place of the function, with
// what follows it, or "" for other words.
func commandHint(word, rest string) string {
	variable := rest
	if isWord(rest[0]) && !isDigit(rest[0]) {
		variable = "@" + rest
	}
	switch word {
	case "ptype", "whatis", "pahole":
		return fmt.Sprintf("write ksnoop info '%s'", rest)
	case "functions":
		return fmt.Sprintf("write ksnoop list '%s'", rest)
	case "info":
		if glob, ok := strings.CutPrefix(rest, "functions "); ok {
			return fmt.Sprintf("write ksnoop list '%s'", glob)
		}
	case "print", "p", "output", "display":
		return fmt.Sprintf("write ksnoop print '%s'; for a function, leave out '%s'", variable, word)
	case "watch", "rwatch", "awatch":
		return fmt.Sprintf("write ksnoop watch '%s'", variable)
	}
	return ""
}

// badCommand returns the error for an unexpected token after the command of another
// tool, or nil if the word before it is none.
func (p *parser) badCommand() error {
	rest := cut(strings.Join(strings.Fields(p.text[p.tok.at.Start:]), " "))
	if rest == "" || p.prev.at.End == p.tok.at.Start || p.tok.is("(") {
		return nil
	}
	hint := commandHint(p.prev.text, rest)
	if hint == "" {
		return nil
	}
	return p.expected("'('").WithHint("%s", hint)
}

// badSlash returns the error for a slash after a name: a filter of bpftrace, a file of
// the kernel's source, or the format of gdb's command x.
func (p *parser) badSlash() error {
	err := p.unexpected("'('")
	_, address, examines := strings.Cut(p.text, " 0x")
	switch touches := p.prev.at.End == p.tok.at.Start; {
	case touches && p.prev.text == "x" && examines:
		return err.WithHint("write ksnoop print '*(u64 *)0x%s'", cut(strings.TrimSpace(address)))
	case touches && isSourceFile(p.wordAhead()):
		return err.WithHint(sourceLines)
	}
	return err.WithHint("a condition comes after 'if': vfs_read if $pid == 1")
}

// wordAhead returns the rest of the word at tok, up to a blank, a colon or a
// parenthesis.
func (p *parser) wordAhead() string {
	rest := p.text[p.tok.at.Start:]
	if end := strings.IndexAny(rest, " :("); end >= 0 {
		rest = rest[:end]
	}
	return rest
}

// badBrace returns the error for a brace after a name: a program of bpftrace, or the
// alternatives of a shell.
func (p *parser) badBrace() error {
	err := p.unexpected("'('")
	inside, _, closed := strings.Cut(p.text[p.tok.at.End:], "}")
	names := strings.Trim(strings.ToLower(inside), "abcdefghijklmnopqrstuvwxyz_*?, "+decimal) == ""
	switch hint := FunctionHabit(p.prev.text); {
	case p.prev.at.End == p.tok.at.Start && closed && names && strings.Contains(inside, ","):
		return err.WithHint(severalSpecs)
	case hint != "":
		return err.WithHint("%s", hint)
	}
	return err.WithHint(noPrograms)
}

// badNumberPlace returns the error for a number in place of a function's name. After
// the name of a function and a colon, it is a source line in perf-probe.
func (p *parser) badNumberPlace(t token) error {
	err := Errorf(p.text, t.at, "a function name cannot begin with a digit")
	before, colon := strings.CutSuffix(strings.TrimSpace(p.text[:t.at.Start]), ":")
	if !colon || !only(t.text, decimal) || before == "tp" || before == "iter" {
		return err
	}
	return err.WithHint("source lines are not known to ksnoop; an instruction is 'p %s+N', N bytes after its beginning", before)
}

const (
	noAssignments = "there are no assignments"
	keyFirst      = "what calls are counted by comes before the aggregate: vfs_read($comm, count())"
)

// listHabit returns a hint for the list after a word that is no function, such as that of
// kstack(5), or "".
func (p *parser) listHabit() string {
	word, _, called := strings.Cut(p.text, "(")
	if !called || p.cond {
		return ""
	}
	return FunctionHabit(strings.TrimSpace(word))
}

// assigns reports whether tok is a part of an assignment of C: x++, ++x or x += y.
func (p *parser) assigns() bool {
	t := p.tok
	switch {
	case t.kind == compare:
		return t.text == "=" && p.prev.arithmetic() != 0
	case !t.is("-") && !t.is("+"):
		return false
	}
	doubled := p.prev.is(t.text) && p.prev.at.End == t.at.Start
	return doubled || strings.HasPrefix(p.text[t.at.End:], t.text)
}

// isGlobal reports whether x is a variable.
func isGlobal(x Expr) bool {
	_, ok := x.(*Global)
	return ok
}
