package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/fixture"
)

// TestHabits verifies that what users of bpftrace, perf-probe, trace-cmd, gdb and C write
// by habit is answered by what to write here.
func TestHabits(t *testing.T) {
	types := fixture.Write(t)
	for _, tc := range []struct{ line, cure string }{
		// bpftrace
		{"kprobe:vfs_read", "write vfs_read; --attach kprobe forces that kind"},
		{"kretprobe:vfs_read", "write vfs_read(return); --attach kprobe forces that kind"},
		{"tracepoint:sched:tick", "write tp:tick"},
		{"interval:s:1", "a spec names a function or a tracepoint of the kernel; nothing else is traced"},
		{"vfs_read { @[comm] = count(); }", "there are no programs: name the values to show, as in vfs_read(count)"},
		{"vfs_read /pid == 5/", "a condition comes after 'if': vfs_read if $pid == 1"},
		{"vfs_read(arg0)", "arguments are counted from 1: '$arg1', or 'file'"},
		{"vfs_read(args->count)", "arguments are named by themselves: file, count"},
		{"vfs_read(retval)", "the return value is 'return'"},
		{"vfs_read(comm)", "it is written '$comm'"},
		{"vfs_read(str(path))", "write name:string, or name:ustring for memory of the process"},
		{"vfs_read(ntop(count))", "a format comes after the value: count:ip4"},
		{"vfs_read(nsecs)", "each event has its time; $duration is how long a call took"},
		{"vfs_read(printf(\"%d\", count))", "values are shown by their names: vfs_read(count)"},
		{"vfs_read(strncmp(path, \"a\", 1))", "strings are compared by == and ~: name == \"eth0\", name ~ \"eth*\""},
		{"vfs_read(quantize(count))", "did you mean 'hist'?"},
		{"vfs_read(hist_linear(count))", "did you mean 'lhist'?"},
		{"vfs_read(curtask)", "it is written '$task'"},
		{"-e|vfs_read", "write ksnoop SPEC, as in ksnoop 'vfs_read(count)'"},
		{"-l|vfs_*", "write ksnoop list 'GLOB'"},
		// perf-probe and kprobe_events
		{"--add|vfs_read", "write ksnoop SPEC, as in ksnoop 'vfs_read(count)'"},
		{"vfs_read%return", "an offset and %return are parts of kprobe_events lines: 'p vfs_read+4'"},
		{"vfs_read $retval", "values belong in parentheses, vfs_read(count > 5), or after 'if': vfs_read if count > 5"},
		{"vfs_read(count:u64:x)", "a value has one format"},
		{"vfs_read($retvalue)", "did you mean '$retval'?"},
		{"vfs_read($ret)", "the return value is 'return'"},
		// trace-cmd
		{"vfs_read(common_pid)", "it is written '$tid'"},
		{"vfs_read(count eq 5)", "did you mean '=='?"},
		{"vfs_read(count) filter count > 5", "a condition begins with 'if': vfs_read(count) if count > 5"},
		{"tp:sched:tick", "write tp:tick"},
		{"--filter|a*|vfs_read", "it is written --comm GLOB"},
		{"vfs_read(return) unless count", "a condition begins with 'if', and '!' negates it: vfs_read(count) if !count"},
		// gdb
		{"break vfs_read", "a function is named by itself: leave out 'break'"},
		{"vfs_read($rsi)", "the argument in this register has a name, or is $arg2"},
		{"vfs_read($rax)", "a function returns its value in this register: it is 'return'"},
		{"vfs_read(sizeof(file))", "ksnoop info TYPE shows sizes and offsets"},
		{"&vfs_read", "a function is named by itself, without an operator"},
		// C
		{"ssize_t vfs_read(file)", "a function is named by itself: leave out 'ssize_t'"},
		{"vfs_read(file.flags)", "it is a pointer: write 'file->flags'"},
		{"vfs_read(count = 5)", "did you mean '=='?"},
		{"vfs_read(count & 1 == 1)", "a test with '&' holds if both have a bit in common; it gives no value to compare"},
		{"vfs_read(count > 5 || count < 2)", "conditions with '||' come after 'if': vfs_read(count) if count > 5 || count == 1"},
		{"vfs_read(file == nullptr)", "did you mean 'NULL'?"},
		{"vfs_read(return == EINTR)", "did you mean '-EINTR'?"},
		{"vfs_read(count == 5ull)", "leave out the suffix 'ull'"},
		{"vfs_read(count / 2)", "the operators are + - * & | << >>"},
		{"vfs_read(-count)", "a value has no sign; write 0 - count"},
		{"vfs_read(not count)", "a condition comes after 'if', and '!' negates it: vfs_read(count) if !count"},
		{"vfs_read(count > 64KB)", "did you mean '64K'?"},
		{"vfs_read;vfs_open", "separate values with ',', and quote each function with its values"},
	} {
		args := append([]string{"compile", "--btf", types}, tc.line)
		if strings.HasPrefix(tc.line, "-") {
			args = strings.Split(tc.line, "|")
		}
		status, stdout, stderr := runLine(args...)
		require.Equal(t, 2, status, tc.line)
		require.Empty(t, stdout, tc.line)
		lines := strings.Split(strings.TrimSuffix(stderr, "\n"), "\n")
		require.Truef(t, strings.HasSuffix(lines[len(lines)-1], tc.cure), "%s\nwant: %s\ngot:\n%s", tc.line, tc.cure, stderr)
	}
}
