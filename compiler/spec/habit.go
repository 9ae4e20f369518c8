package spec

import (
	"fmt"
	"slices"
	"strings"
)

// This file has words of bpftrace, SystemTap, perf and C for which specs have other
// words.

// Habits is a table of words of other tools: each line has what is written here, a colon,
// and the words that stand for it. As text, it takes fewer bytes of the binary than a map.
type Habits string

// Meaning returns what is written here for a word of another tool, or "".
func (h Habits) Meaning(word string) string {
	for line := range strings.Lines(string(h)) {
		meaning, words, _ := strings.Cut(line, ": ")
		if slices.Contains(strings.Fields(words), word) {
			return meaning
		}
	}
	return ""
}

// probeType is a word of other tracers for an attach kind: the kind that is meant and,
// for the return of a function, the list after its name.
type probeType struct{ attach, list string }

// cure returns what to write for a function that is named after p.
func (p probeType) cure(function string) string {
	return "write " + function + p.list + "; --attach " + p.attach + " forces that kind"
}

// probeTypes has the words before the colon in other tracers, and before the slash in
// libbpf's names of sections.
var probeTypes = map[string]probeType{
	"kprobe": {"kprobe", ""}, "k": {"kprobe", ""}, "kretprobe": {"kprobe", "(return)"}, "kr": {"kprobe", "(return)"},
	"fentry": {"fentry", ""}, "kfunc": {"fentry", ""}, "fexit": {"fentry", "(return)"}, "kretfunc": {"fentry", "(return)"},
	"fr": {"fentry", "(return)"}, "kprobe.multi": {"kprobe.multi", ""}, "kretprobe.multi": {"kprobe.multi", "(return)"},
	"kprobe.session": {"kprobe.session", ""},
}

// tracepointTypes has the same words for tracepoints.
var tracepointTypes = map[string]bool{
	"tracepoint": true, "t": true, "rawtracepoint": true, "raw_tracepoint": true, "raw_tp": true, "rt": true, "tp_btf": true,
}

// otherTypes has the words for other things that they trace, which are not kernel
// functions.
var otherTypes = map[string]bool{
	"uprobe": true, "uretprobe": true, "u": true, "ur": true, "usdt": true, "profile": true, "interval": true,
	"software": true, "hardware": true, "self": true,
}

// badProbeType returns the error for a probe type of another tracer in place of a
// module, or nil if typ is not one. tok is the colon after it.
func (p *parser) badProbeType(typ Ident) error {
	probe, ok := probeTypes[typ.Name]
	switch {
	case typ.Name == "watchpoint", typ.Name == "asyncwatchpoint":
		return p.errorf(typ.At, "'%s' is not a module", typ.Name).
			WithHint("memory is watched by another command: ksnoop watch '(int)@panic_timeout'")
	case otherTypes[typ.Name]:
		return p.errorf(typ.At, "'%s' is not a module", typ.Name).
			WithHint("a spec names a function or a tracepoint of the kernel; nothing else is traced")
	case !ok && !tracepointTypes[typ.Name]:
		return nil
	}
	name := p.lastName()
	if name == "" {
		return nil // the caller reports what is missing, as for any module
	}
	if !ok {
		return p.errorf(typ.At, "'%s' is not a module: a tracepoint is named by itself after tp:", typ.Name).
			WithHint("%s", TracepointHint(name))
	}
	return p.errorf(typ.At, "'%s' is not a module: a function is named by itself, and ksnoop chooses how to attach to it", typ.Name).
		WithHint("%s", probe.cure(name))
}

// lastName returns the last of the names separated by colons that follow, or "" if
// there is another token among them.
func (p *parser) lastName() string {
	for ahead := p.lexer; ; {
		t, err := ahead.function()
		if err != nil || t.kind != name || t.text == "return" {
			return ""
		}
		if colon, err := ahead.next(); err != nil || !colon.is(":") {
			return t.text
		}
	}
}

// TracepointHint returns a hint with the spec for a tracepoint. Where tracefs has
// tracepoints for each system call, the kernel has only two, for all calls.
func TracepointHint(name string) string {
	call, ok := strings.CutPrefix(name, "sys_enter_")
	if !ok {
		return "write tp:" + name
	}
	amd64, here := SyscallNumber(call, "amd64")
	arm64, there := SyscallNumber(call, "arm64")
	switch {
	case here && there && amd64 != arm64:
		return fmt.Sprintf("write tp:sys_enter(id == %d), which is %s on amd64, or %d on arm64", amd64, call, arm64)
	case here:
		return fmt.Sprintf("write tp:sys_enter(id == %d), which is %s", amd64, call)
	}
	return "write tp:" + name
}

// formatHabits has formats of printf, bpftrace and gdb, with the equivalent formats
// of specs.
const formatHabits Habits = `
x: hex p ptr pointer lx llx X addr
d: i int dec ld lld
u: uint lu llu
string: s str kstr
ustring: ustr user
c: char chr
symbol: sym ksym pS a
ip4: ipv4 inet ntop
ip6: ipv6 inet6
mac: macaddr
be: ntohs ntohl htons htonl bswap be16 be32 be64 be16_to_cpu be32_to_cpu cpu_to_be16 cpu_to_be32
errno: strerror PTR_ERR
`

// functionHint returns a hint for a function of bpftrace or SystemTap that is written
// around a value, or "" for other names.
func (p *parser) functionHint(function string) string {
	format := formatHabits.Meaning(function)
	if slices.Contains(Formats, function) {
		format = function
	}
	switch {
	case format == "string":
		return "write name:string, or name:ustring for memory of the process"
	case format != "" && len(function) > 2:
		return "a format comes after the value: count:" + format
	case slices.Contains([]string{"printf", "print", "printk", "trace_printk", "echo", "join"}, function):
		return "values are shown by their names: vfs_read(count)"
	case slices.Contains([]string{"strcmp", "strncmp", "strcontains", "strstr", "memcmp", "strlen"}, function):
		return "strings are compared by == and ~: name == \"eth0\", name ~ \"eth*\""
	case function == "sizeof" || function == "offsetof":
		return "ksnoop info TYPE shows sizes and offsets"
	case p.has(strings.TrimPrefix(stackHabit(function), "$")):
		return "write " + stackHabit(function)
	case function == "container_of":
		return noContainerOf
	case function == "kaddr" || function == "ksym":
		return "a variable is named after @: @jiffies"
	case function == "buf":
		return "bytes are the elements of a cast: ((u8 *)p)[0..15]"
	case function == "usym" && p.has("ustack"):
		return "write $ustack"
	case strings.HasSuffix(function, "_sk"):
		return "write a cast: ((struct TYPE *)sk)"
	case function == "IS_ERR":
		return "write name is-err"
	case function == "time":
		return p.builtinHabit(function)
	case function == "reg" && p.has("arg"):
		return "arguments have names, or are $arg1, $arg2 ..."
	case aggregations.Meaning(function) != "" && p.listing():
		return "did you mean '" + aggregations.Meaning(function) + "'?"
	}
	return ""
}

// noFunction returns a hint for a word before a parenthesis that no tool knows.
func (p *parser) noFunction(word string) string {
	if !p.listing() {
		return "there are no functions"
	}
	if near, ok := Nearest(word, slices.Values(Aggregates)); ok {
		return "did you mean '" + near + "'?"
	}
	return "there are no functions but the aggregates " + strings.Join(Aggregates, " ")
}

// commandHabits has the words before a function in gdb, perf and C.
var commandHabits = strings.Fields(`b br break tbreak hbreak print probe add call func function
int void long unsigned bool static struct ssize_t`)

// comparisonHabits has words of shells and of trace-cmd for comparisons.
const comparisonHabits Habits = `
==: eq is equals
!=: ne
<: lt
<=: le
>: gt
>=: ge
~: like matches contains
`

// registerHabits has the registers of arguments in gdb, perf and bpftrace.
const registerHabits Habits = `
return: rax ax eax
$arg1: rdi di x0
$arg2: rsi si x1
$arg3: rdx dx x2
$arg4: rcx cx x3
$arg5: r8 x4
$arg6: r9 x5
`

// builtinHabit returns a hint for a word after $ in other tools, or "".
func (p *parser) builtinHabit(word string) string {
	register := registerHabits.Meaning(word)
	called := !p.of.Values && !p.of.Iterator
	switch {
	case word == "ret" || word == "return" || word == "rv" || word == "result":
		return p.given("retval", "the return value is 'return'")
	case register == "return":
		return p.given("retval", "a function returns its value in this register: it is 'return'")
	case register != "":
		return p.given("arg", "the argument in this register has a name, or is "+register)
	case !called || word != "nsecs" && word != "elapsed" && word != "time" && word != "timestamp":
		return ""
	case p.has("duration"):
		return "each event has its time; $duration is how long a call took"
	}
	return "each event has its time"
}

// given returns a hint about a builtin, or "" if it cannot be at the current place.
func (p *parser) given(builtin, hint string) string {
	if !p.has(builtin) {
		return ""
	}
	return hint
}

// has reports whether a builtin can be at the current place, as far as this is known
// without the kernel. That of 'return' is retval.
func (p *parser) has(builtin string) bool {
	t := p.of
	if builtin == "" || t.Values && !WithoutCall(builtin) || (t.Iterator || p.over) && builtin != "arg" {
		return false
	}
	switch builtin {
	case "retval":
		return !t.Tracepoint
	case "duration":
		return p.ending || !t.Tracepoint && !strings.Contains(p.text, "=>")
	case "kstack", "ustack", "container":
		return !p.number && !p.cond
	case "comm":
		return !p.number
	}
	return true
}

// listing reports whether an item of a list is being parsed, which can be an aggregate.
func (p *parser) listing() bool { return !p.of.Values && !p.number && !p.cond }

// builtins returns the builtins that can be at the current place, as far as this is
// known without the kernel.
func (p *parser) builtins() (names []string) {
	for _, name := range Builtins {
		if p.has(name) {
			names = append(names, name)
		}
	}
	return names
}

// aggregations has other names of aggregates.
const aggregations Habits = `
avg: average mean stats
min: minimum
max: maximum
sum: total
hist: histogram hist_log quantize
lhist: hist_linear lquantize
`

// sizeHabits has other suffixes of sizes, with those of specs.
const sizeHabits Habits = `
k: kb kB
K: KB KiB Ki
M: MB MiB Mi
G: GB GiB Gi g
T: TB TiB t
`

// isTimed reports whether the constant is a duration or is compared with one.
func (p *parser) isTimed() bool {
	if p.last == nil {
		return true
	}
	b, ok := p.last.Value.(*Builtin)
	return ok && b.Name.Name == "duration"
}

const (
	noAssignments = "there are no assignments"
	keyFirst      = "what calls are counted by comes before the aggregate: vfs_read($comm, count())"
)

// listHabit returns a hint for the list after a word that is not a function, such as that of
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
	sign := p.tok.text
	switch sign {
	case "=":
		return p.prev.arithmetic() != 0
	case "+", "-":
		at := p.tok.at
		return strings.Contains(p.text[max(0, at.Start-1):min(at.End+1, len(p.text))], sign+sign)
	}
	return false
}

// isGlobal reports whether x is a variable.
func isGlobal(x Expr) bool {
	_, ok := x.(*Global)
	return ok
}
