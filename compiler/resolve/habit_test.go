package resolve

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/compilertest"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/compiler/spec/kprobe"
)

// threads are the types of an iterator over threads.
func threads() []btf.Type {
	meta := &btf.Struct{Name: "bpf_iter_meta", Size: 8, Members: []btf.Member{{Name: "seq_num", Type: compilertest.Ulong}}}
	task := &btf.Struct{Name: "thread", Size: 24, Members: []btf.Member{{Name: "pid", Type: compilertest.Int}, {Name: "comm", Type: compilertest.Ulong, Offset: 64}}}
	return []btf.Type{compilertest.Function("bpf_iter_task", compilertest.Int,
		compilertest.Param("meta", compilertest.Ptr(meta)), compilertest.Param("task", compilertest.Ptr(task)))}
}

// bindText parses and binds a spec or a kprobe_events line.
func bindText(text string, target *compiler.Target) error {
	trace, err := kprobe.ParseAny(text)
	if err == nil {
		_, err = All([]*spec.Trace{trace}, target, Wishes{})
	}
	return err
}

// TestHabitPlaces checks that each hint for a word of another tracer is accepted at the
// place of this word.
func TestHabitPlaces(t *testing.T) {
	target := compilertest.NewTarget(t, compilertest.WithTrampoline, threads()...)
	replaced, whole := regexp.MustCompile(`^(?:it is written|the return value is|did you mean) '(.*?)'\??$`), regexp.MustCompile(`(?: has| has it): (.*)$`)
	words := append(slices.Sorted(maps.Keys(valueHabits)), "nsecs", "func", "args", "common_flags", "arg0")
	followed := 0
	for _, place := range []string{
		"read(%s)", "nothing(%s)", "do_exit(%s)", "tp:tick(%s)", "iter:buf(%s)", "iter:task(%s)",
		"read(%s) => send(dev) on $tid", "read(count) => send(%s) on $tid",
		"p read %s", "p read%%return %s", "r:back read %s", "f read %s", "f read%%return %s", "p nothing %s", "t:g/x tick %s",
	} {
		for _, word := range words {
			text := fmt.Sprintf(place, word)
			err := bindText(text, target)
			if err == nil || word == "cpu" { // some are words of 2009, and tick has an argument cpu
				continue
			}
			var refused *spec.Error
			require.ErrorAs(t, err, &refused, text)
			cure := ""
			if m := replaced.FindStringSubmatch(refused.Hint); m != nil {
				cure = fmt.Sprintf(place, m[1])
			} else if m := whole.FindStringSubmatch(refused.Hint); m != nil {
				cure = m[1]
			}
			if cure != "" && !strings.HasPrefix(refused.Hint, "it has ") {
				followed++
				require.NoError(t, bindText(cure, target), "%s: %s", text, refused.Hint)
			}
		}
	}
	require.Greater(t, followed, 200)

	for text, hint := range map[string]string{
		"p read ret":        "a return probe has it: r read $retval",
		"p read return":     "a return probe has it: r read $retval",
		"r read return":     "the return value is '$retval'",
		"f read ret":        "the return value is '$retval'",
		"p nothing ret":     "it takes no arguments",
		"p read uid":        "a line has no word for it, and a spec has: read($uid)",
		"t tick uid":        "a line has no word for it, and a spec has: tp:tick($uid)",
		"t tick duration":   "it has cpu, buf",
		"r read comm":       "it is written '$comm'",
		"p read nsecs":      "each event has its time",
		"tp:tick(nsecs)":    "each event has its time",
		"tp:tick(duration)": "it has cpu, buf",
		"iter:task(pid)":    "did you mean 'task->pid'?",
		"iter:task(nsecs)":  "it has meta, task",
		"iter:task(func)":   "it has meta, task",
		"read(nil)":         "it has buf, ubuf, count, pos",
		"p:x tp:tick":       "a tracepoint is named without its group: t:x tick",
		"p:g/x timer:tick":  "a tracepoint is named without its group: t:g/x tick",
		"p tick":            "it is a tracepoint: t tick",
		"t:x tikc":          "did you mean 'tick'?",
	} {
		var refused *spec.Error
		require.ErrorAs(t, bindText(text, target), &refused, text)
		require.Equal(t, hint, refused.Hint, text)
	}
}

// TestParserHabitPlaces checks that what the parser suggests for a word of another
// tracer is accepted at the place of this word, unless only the kernel's types refuse it.
func TestParserHabitPlaces(t *testing.T) {
	target := compilertest.NewTarget(t, compilertest.WithTrampoline, threads()...)
	cures := regexp.MustCompile(`(?:is '|did you mean '|or is |argument is |^write |; )(\$\w+|return|avg)\b`)
	refusedByTypes := regexp.MustCompile(`^nothing returns void|^\w+ has no \$arg\d|which is not a number|is a string, and`)
	followed := 0
	for _, place := range []string{
		"read(%s)", "read(%s) if count", "nothing(%s)", "*e*(%s)", "read(after(%s))", "tp:tick(%s)", "iter:buf(%s)", "iter:task(%s)", "@ %s",
		"read if %s == 1", "read if count && %s == 1", "tp:tick if %s == 1", "iter:buf if %s == 1", "read(count == %s)",
		"read(%s) => send(dev) on $tid", "read => send(%s) on $tid", "tp:tick(%s) => read on $tid", "read => tp:tick(%s) on $tid",
		"read() => open() on (u32)%s == (u32)$arg1", "read() => open() on (u32)count == (u32)%s", "tp:tick => open on (u32)%s == (u32)$pid", "read if $pid => open on (u32)%s",
	} {
		for _, word := range []string{
			"$ret", "$rax", "$rdi", "$nsecs", "$time", "$com", "$tip", "$kstac", "$retvla", "$durations", "$foo", "$", "$arg", "$arg0",
			"kstack()", "kstack(5)", "bt()", "ustack(3)", "usym(count)", `reg("di")`, "time()", "mean(1)", "mean(count)",
		} {
			follow := func(cure string) (text string, err error) {
				text = fmt.Sprintf(place, cure)
				if values, ok := strings.CutPrefix(text, "@ "); ok {
					trace, err := spec.ParseValues(values)
					if err == nil {
						_, err = One(trace, target)
					}
					return values, err
				}
				return text, bindText(text, target)
			}
			text, err := follow(word)
			var refused *spec.Error
			require.ErrorAs(t, err, &refused, text)
			list, listed := strings.CutPrefix(refused.Hint, "there are $")
			found := cures.FindAllStringSubmatch(refused.Hint, -1)
			if listed {
				found = nil
				for _, name := range strings.Fields(strings.ReplaceAll("$"+list, "...", "")) {
					found = append(found, []string{"", name})
				}
			}
			for _, m := range found {
				cure := m[1]
				if cure == "avg" {
					cure = "avg($arg3)"
				}
				followed++
				if cured, err := follow(cure); err != nil && !refusedByTypes.MatchString(err.Error()) {
					t.Errorf("%s: %s\n%s: %v", text, refused.Hint, cured, err)
				}
			}
		}
	}
	require.Greater(t, followed, 1000)
}
