package spec

import (
	"slices"
	"strings"
)

// This file has what users of bpftrace, perf-probe, gdb and C write where a spec has
// the name of a function.

const (
	sourceLines   = "source lines are not known to ksnoop: name a function, as in vfs_read(count)"
	noExpressions = "names have the wildcards * ? [a-z] of a shell, not regular expressions: vfs_*"
	severalSpecs  = "write one spec for each function, each in quotes of its own, or a glob: vfs_*"
	ifAfter       = "a condition comes after 'if': vfs_read if $pid == 1"
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
	case "tp", "iter":
		return "a name follows, with a colon between them: tp:sched_switch, iter:task"
	}
	switch {
	case isSourceFile(word):
		return sourceLines
	case strings.HasSuffix(word, ".bt"):
		return noPrograms
	case strings.HasSuffix(word, ".txt"):
		return "files of specs are read by -f: ksnoop -f FILE"
	case strings.HasSuffix(word, ".probes"):
		return "probe files are read by test: ksnoop test FILE"
	case slices.Contains(commandHabits, word):
		return "a function is named by itself: leave out '" + word + "'"
	}
	if stack := stackHabit(word); stack != "" {
		return "a stack is a value in the list of a function: vfs_read(" + stack + ")"
	}
	return ""
}

// noContainerOf is the hint for container_of, a macro of the kernel.
const noContainerOf = "container_of is a macro: subtract the offset of the member, which ksnoop info TYPE shows: (struct y *)((u8 *)x - 16)"

// stackHabit returns the builtin for a word that means a stack in bpftrace, gdb or
// SystemTap, or "" for other words.
//
//go:noinline
func stackHabit(word string) string {
	switch word {
	case "kstack", "stack", "bt", "backtrace", "print_backtrace":
		return "$kstack"
	case "ustack", "ubacktrace", "print_ubacktrace":
		return "$ustack"
	}
	return ""
}

// isSourceFile reports whether a word is the name of a file of C. It is not inlined: it
// has five callers.
//
//go:noinline
func isSourceFile(word string) bool {
	return strings.HasSuffix(word, ".c") || strings.HasSuffix(word, ".h") || strings.HasSuffix(word, ".S")
}

// commandHint returns a hint for a command of gdb at the place of the function, with
// what follows it, or "" for other words.
func commandHint(word, rest string) string {
	variable, or := rest, ""
	if IsWord(rest[0]) && !IsDigit(rest[0]) {
		variable = "@" + rest
	}
	switch word {
	case "ptype", "whatis":
		word = "info"
	case "functions":
		word = "list"
	case "info":
		if !strings.HasPrefix(rest, "functions ") {
			return ""
		}
		word, rest = "list", rest[len("functions "):]
	case "print":
		rest, or = variable, "; for a function, leave out 'print'"
	case "watch":
		rest = variable
	default:
		return ""
	}
	return "write ksnoop " + word + " '" + rest + "'" + or
}

// badCommand returns the error for an unexpected token after the command of another
// tool, or nil if the word before it is not a command.
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

// badSlash returns the error for a slash after a name: a filter of bpftrace, a section of
// libbpf, a file of the kernel's source, or the format of a command of gdb.
func (p *parser) badSlash() error {
	err := p.unexpected("'('")
	if p.prev.at.End == p.tok.at.Start {
		switch p.prev.text {
		case "x":
			return err.WithHint("write ksnoop print '*(u64 *)0xffff888012345600'")
		case "p", "print":
			return err.WithHint("write ksnoop print '(u64)@jiffies:x'")
		case "ptype":
			return err.WithHint("ksnoop info TYPE shows sizes and offsets")
		}
		word := p.wordAhead()
		if isSourceFile(word) {
			return err.WithHint(sourceLines)
		}
		name := word[strings.LastIndexByte(word, '/')+1:]
		switch probe, ok := probeTypes[p.prev.text]; {
		case name == "", strings.Contains(p.text[p.tok.at.Start+len(word):], "/"): // ends a filter
		case p.prev.text == "iter":
			return err.WithHint("write iter:%s", name)
		case strings.HasPrefix(p.text, "tp:"):
			return err.WithHint("%s", TracepointHint(name))
		case ok:
			return err.WithHint("%s", probe.cure(name))
		case p.prev.text == "tp", tracepointTypes[p.prev.text]:
			return err.WithHint("%s", TracepointHint(name))
		}
	}
	return err.WithHint(ifAfter)
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
	err := p.errorf(t.at, "a function name cannot begin with a digit")
	before, colon := strings.CutSuffix(strings.TrimSpace(p.text[:t.at.Start]), ":")
	if !colon || !only(t.text, decimal) || before == "tp" || before == "iter" {
		return err
	}
	return err.WithHint("source lines are not known to ksnoop; an instruction is 'p %s+N', N bytes after its beginning", before)
}
