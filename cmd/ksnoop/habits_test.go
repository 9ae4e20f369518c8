package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/fixture"
	"github.com/ksnoop/ksnoop/compiler/compilertest"
)

// TestHabits verifies that what users of bpftrace, perf-probe, trace-cmd, gdb and C write
// by habit is answered by what to write here.
func TestHabits(t *testing.T) {
	types := fixture.Write(t, compilertest.TaskStruct())
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
		{"vfs_read(@[comm] = count())", "what calls are counted by comes before the aggregate: vfs_read($comm, count())"},
		{"vfs_read(@reads = count())", "what calls are counted by comes before the aggregate: vfs_read($comm, count())"},
		{"vfs_read(@reads[comm] = count())", "what calls are counted by comes before the aggregate: vfs_read($comm, count())"},
		{"vfs_read(kstack(5))", "write $kstack"},
		{"vfs_read(ustack())", "write $ustack"},
		{"vfs_read(bt)", "it is written '$kstack'"},
		{"kstack", "a stack is a value in the list of a function: vfs_read($kstack)"},
		{"ustack(3)", "a stack is a value in the list of a function: vfs_read($ustack)"},
		{"t:sched:sched_switch", "write tp:sched_switch"},
		{"BEGIN", "there are no programs: name a function, as in vfs_read(count)"},
		{"iter", "a name follows, with a colon between them: tp:sched_switch, iter:task"},
		{"BEGIN { printf(\"x\"); }", "there are no programs: name a function, as in vfs_read(count)"},
		{"END { print(@x); }", "there are no programs: --summary and aggregates show what was counted at the end: vfs_read(count())"},
		{"vfs_read(count == 1e6)", "there are no exponents: write 1000000, or 0x1e6 if it is hexadecimal"},
		{"vfs_{read,write}", "write one spec for each function, each in quotes of its own, or a glob: vfs_*"},
		{"vfs_read{@x=count()}", "there are no programs: name the values to show, as in vfs_read(count)"},
		{"self:signal:SIGUSR1", "a spec names a function or a tracepoint of the kernel; nothing else is traced"},
		{"-e|vfs_read", "write ksnoop SPEC, as in ksnoop 'vfs_read(count)'"},
		{"-c|ls|vfs_read", "write ksnoop SPEC -- COMMAND"},
		{"-l|vfs_*", "write ksnoop list 'GLOB'"},
		{"-l|kprobe:*", "write ksnoop list 'GLOB'"},
		{"--info", "write ksnoop doctor"},
		{"/pid == 1/ vfs_read", "a condition comes after 'if': vfs_read if $pid == 1"},
		{"{ printf(\"hi\"); }", "there are no programs: name the values to show, as in vfs_read(count)"},
		{"vfs_read(count) { exit(); }", "there are no programs: name the values to show, as in vfs_read(count)"},
		{"script.bt", "there are no programs: name the values to show, as in vfs_read(count)"},
		{"./script.bt", "there are no programs: name the values to show, as in vfs_read(count)"},
		{"vfs_read(usym(count))", "write $ustack"},
		{"vfs_read(buf(file, 5))", "bytes are the elements of a cast: ((u8 *)p)[0..15]"},
		{"vfs_read(strerror(return))", "a format comes after the value: count:errno"},
		{"vfs_read(path(file))", "a format comes after the value: count:path"},
		{"vfs_read(time(\"%H\"))", "each event has its time; $duration is how long a call took"},
		// perf-probe and kprobe_events
		{"--add|vfs_read", "write ksnoop SPEC, as in ksnoop 'vfs_read(count)'"},
		{"--add|vfs_read count=%dx", "write ksnoop SPEC, as in ksnoop 'vfs_read(count)'"},
		{"-L|vfs_read", "write ksnoop info FUNCTION"},
		{"--vars|vfs_read", "write ksnoop info FUNCTION"},
		{"vfs_read count=%dx", "values belong in parentheses, vfs_read(count > 5), or after 'if': vfs_read if count > 5"},
		{"myprobe=vfs_read", "a spec has no name of its own: leave out 'myprobe='"},
		{"vfs_read%return", "an offset and %return are parts of kprobe_events lines: 'p vfs_read+4'"},
		{"vfs_read $retval", "values belong in parentheses, vfs_read(count > 5), or after 'if': vfs_read if count > 5"},
		{"vfs_read(count:u64:x)", "a value has one format"},
		{"vfs_read($retvalue)", "did you mean '$retval'?"},
		{"vfs_read($ret)", "the return value is 'return'"},
		{"fs/read_write.c:450", "source lines are not known to ksnoop: name a function, as in vfs_read(count)"},
		{"read_write.c:450", "source lines are not known to ksnoop: name a function, as in vfs_read(count)"},
		{"vfs_read@fs/read_write.c:450", "source lines are not known to ksnoop: name a function, as in vfs_read(count)"},
		{"vfs_read:5", "source lines are not known to ksnoop; an instruction is 'p vfs_read+N', N bytes after its beginning"},
		{"vfs_.*", "did you mean 'vfs_*'? wildcards are those of a shell"},
		{"^vfs_", "names have the wildcards * ? [a-z] of a shell, not regular expressions: vfs_*"},
		{"vfs_read|vfs_write", "write one spec for each function, each in quotes of its own, or a glob: vfs_*"},
		{"r vfs_read ret=$retval:s64 if ret == EINTR", "numbers have no names in these lines: write them out"},
		// trace-cmd
		{"vfs_read(file_flags)", "did you mean 'file->flags'?"},
		{"vfs_read(common_type)", "it is a part of tracefs' own records, not of a call"},
		{"vfs_read(common_pid)", "it is written '$tid'"},
		{"r vfs_read ret", "the return value is '$retval'"},
		{"p vfs_read uid", "a line has no word for it, and a spec has: vfs_read($uid)"},
		{"p:x tp:tick", "a tracepoint is named without its group: t:x tick"},
		{"t:x tick* $arg1", "a spec takes patterns: tp:sched_*"},
		{"vfs_read(count eq 5)", "did you mean '=='?"},
		{"vfs_read(count) filter count > 5", "a condition begins with 'if': vfs_read(count) if count > 5"},
		{"tp:sched:tick", "write tp:tick"},
		{"-p|function_graph", "leave out trace-cmd's plugin, as in ksnoop 'vfs_read(count)'"},
		{"record|-e|sched_switch", "write ksnoop record -w FILE SPEC, as in ksnoop record -w FILE tp:sched_switch"},
		{"list|-e", "write ksnoop list 'tp:*'"},
		{"list|-f", "write ksnoop list '*'"},
		{"-g|vfs_read", "write ksnoop SPEC, as in ksnoop 'vfs_read($kstack)'"},
		{"report", "if report was meant as a command: did you mean 'replay'?"},
		{"record|-o|trace.dat|vfs_read", "it is written --write FILE"},
		{"record|-F|ls", "write ksnoop record -w FILE SPEC -- COMMAND"},
		{"record|-c|-p|1|vfs_read", "write ksnoop record -w FILE -p PID --tree SPEC"},
		{"--filter|count > 5|vfs_read", "write ksnoop SPEC, as in ksnoop 'vfs_read if count > 4k'"},
		{"vfs_read(return) unless count", "a condition begins with 'if', and '!' negates it: vfs_read(count) if !count"},
		// gdb
		{"break vfs_read", "a function is named by itself: leave out 'break'"},
		{"break", "a function is named by itself: leave out 'break'"},
		{"p", "if p was meant as a command: did you mean 'print'?"},
		{"p/x jiffies", "write ksnoop print '(u64)@jiffies:x'"},
		{"ptype/o struct file", "ksnoop info TYPE shows sizes and offsets"},
		{"x/8xb", "write ksnoop print '*(u64 *)0xffff888012345600'"},
		{"display", "if display was meant as a command: did you mean 'print'?"},
		{"watch|-l|jiffies", "write ksnoop watch '@jiffies'"},
		{"vfs_read($rsi)", "the argument in this register has a name, or is $arg2"},
		{"vfs_read($rax)", "a function returns its value in this register: it is 'return'"},
		{"vfs_read(sizeof(file))", "ksnoop info TYPE shows sizes and offsets"},
		{"&vfs_read", "a function is named by itself, without an operator"},
		{"ptype struct file", "write ksnoop info 'struct file'"},
		{"whatis file", "write ksnoop info 'file'"},
		{"info functions vfs_*", "write ksnoop list 'vfs_*'"},
		{"functions vfs_*", "write ksnoop list 'vfs_*'"},
		{"p init_task", "a variable is shown by ksnoop print '@init_task'"},
		{"print init_task.pid", "write ksnoop print '@init_task.pid'; for a function, leave out 'print'"},
		{"watch jiffies", "write ksnoop watch '@jiffies'"},
		{"x/4x 0xffff888012345600", "write ksnoop print '*(u64 *)0xffff888012345600'"},
		// C
		{"vfs_read(count++)", "there are no assignments"},
		{"vfs_read(IS_ERR(file))", "write name is-err"},
		{"vfs_read(PTR_ERR(return))", "a format comes after the value: count:errno"},
		{"vfs_read(be16_to_cpu(count))", "a format comes after the value: count:be"},
		{"vfs_read(memcmp(path, \"a\", 1))", "strings are compared by == and ~: name == \"eth0\", name ~ \"eth*\""},
		{"vfs_read(--count)", "there are no assignments"},
		{"vfs_read(count += 1)", "there are no assignments"},
		{"vfs_read(count <<= 1)", "there are no assignments"},
		{"vfs_read(count ? 1 : 2)", "there is no '?:'; a condition comes after 'if', as in vfs_read(count) if count > 5"},
		{"vfs_read(~count)", "'~' compares a string with a pattern; the inverted bits of a value are -1 - count"},
		{"vfs_read(count & ~1)", "there is no '~' of a number: ~1 is -2"},
		{"container_of(x, struct y, z)", "container_of is a macro: subtract the offset of the member, which ksnoop info TYPE shows: (struct y *)((u8 *)x - 16)"},
		{"vfs_read(container_of(file, struct y, z))", "container_of is a macro: subtract the offset of the member, which ksnoop info TYPE shows: (struct y *)((u8 *)x - 16)"},
		{"vfs_read(return & EINTR)", "an error is a whole number, not a bit: return == -EINTR"},
		{"vfs_read(return + 0 == EINTR)", "did you mean '-EINTR'?"},
		{"ssize_t vfs_read(file)", "a function is named by itself: leave out 'ssize_t'"},
		{"vfs_read(file.flags)", "it is a pointer: write 'file->flags'"},
		{"vfs_read(count = 5)", "did you mean '=='?"},
		{"vfs_read(count & 1 == 1)", "a condition with '&' holds if both have a bit in common; it gives no value to compare"},
		{"vfs_read(count > 5 || count < 2)", "conditions with '||' come after 'if': vfs_read(count) if count > 5 || count == 1"},
		{"vfs_read(file == nullptr)", "did you mean 'NULL'?"},
		{"vfs_read(return == EINTR)", "did you mean '-EINTR'?"},
		{"vfs_read(count == 5ull)", "leave out the suffix 'ull'"},
		{"vfs_read(count / 2)", "the operators are + - * & | << >>, and x >> 10 is x / 1024"},
		{"vfs_read(-count)", "a value has no sign; write 0 - count"},
		{"vfs_read(not count)", "a condition comes after 'if', and '!' negates it: vfs_read(count) if !count"},
		{"vfs_read(count > 64KB)", "did you mean '64K'?"},
		{"vfs_read;vfs_open", "separate values with ',', and quote each function with its values"},
	} {
		args := append([]string{"compile", "--btf", types}, tc.line)
		if words := strings.Split(tc.line, "|"); strings.HasPrefix(tc.line, "-") || slices.Contains([]string{"record", "list", "watch"}, words[0]) {
			args = words
		}
		status, stdout, stderr := runLine(args...)
		require.Equal(t, 2, status, tc.line)
		require.Empty(t, stdout, tc.line)
		lines := strings.Split(strings.TrimSuffix(stderr, "\n"), "\n")
		require.Truef(t, strings.HasSuffix(lines[len(lines)-1], tc.cure), "%s\nwant: %s\ngot:\n%s", tc.line, tc.cure, stderr)
	}
}
