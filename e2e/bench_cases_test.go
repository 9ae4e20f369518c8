//go:build linux

package e2e

import (
	"fmt"
	"strings"

	"github.com/ksnoop/ksnoop/compiler"
)

// A benchCase is something to trace, in the syntax of each tracer. A tracer
// without a program or spec here cannot trace it.
type benchCase struct {
	name       string
	call       string // a name in benchmark.calls
	functions  []string
	entry, ret bool // the sides that have programs
	events     int  // for each call; 0 if it is rejected
	bytes      int  // the size of the only value that is recorded, or 0
	unfiltered bool // the tracers show calls of other processes, too

	ours          []string
	bcc           []string
	kprobe, kfunc string // programs of bpftrace
	note          string
}

// kindSides maps each attach kind that a user can choose to the kind of its
// return side.
var kindSides = map[compiler.Kind]compiler.Kind{
	compiler.Fentry: compiler.Fexit, compiler.Kprobe: compiler.Kretprobe,
	compiler.KprobeMulti: compiler.KretprobeMulti, compiler.KprobeSession: compiler.KprobeSession,
}

// empties returns programs that do nothing, on the sides that have programs in
// this case.
func (c *benchCase) empties(kind compiler.Kind) (all []empty) {
	for _, fn := range c.functions {
		switch {
		case kind == compiler.KprobeSession:
			all = append(all, empty{kind: kind, fn: fn, cancel: !c.ret})
			continue
		case c.entry:
			all = append(all, empty{kind: kind, fn: fn})
		}
		if c.ret {
			all = append(all, empty{kind: kindSides[kind], fn: fn})
		}
	}
	return all
}

var vfsRead = []string{"vfs_read"}

// rejectedCases lists cases whose calls are filtered out.
var rejectedCases = []benchCase{{
	name: "scalar", call: "read", functions: vfsRead, entry: true,
	ours:   []string{"vfs_read(count == 123456789)"},
	bcc:    []string{"vfs_read(count == 123456789)"},
	kprobe: `kprobe:vfs_read /arg2 == 123456789/ { printf("vfs_read %d\n", arg2); }`,
	kfunc:  `kfunc:vfs_read /args->count == 123456789/ { printf("vfs_read %d\n", args->count); }`,
}, {
	name: "member", call: "read", functions: vfsRead, entry: true,
	ours:   []string{"vfs_read(file->f_flags == 0x12345678)"},
	bcc:    []string{"vfs_read(file->f_flags == 0x12345678)"},
	kprobe: `kprobe:vfs_read /((struct file *)arg0)->f_flags == 0x12345678/ { printf("vfs_read %d\n", arg2); }`,
	kfunc:  `kfunc:vfs_read /args->file->f_flags == 0x12345678/ { printf("vfs_read %d\n", args->count); }`,
}, {
	name: "two-level", call: "read", functions: vfsRead, entry: true,
	ours:   []string{"vfs_read(file->f_inode->i_ino == 0x12345678)"},
	kprobe: `kprobe:vfs_read /((struct file *)arg0)->f_inode->i_ino == 0x12345678/ { printf("vfs_read %d\n", arg2); }`,
	kfunc:  `kfunc:vfs_read /args->file->f_inode->i_ino == 0x12345678/ { printf("vfs_read %d\n", args->count); }`,
}, {
	name: "pid", call: "read", functions: vfsRead, entry: true,
	ours:   []string{"-p", "1", "vfs_read(count)"},
	bcc:    []string{"-p", "1", "vfs_read(count)"},
	kprobe: `kprobe:vfs_read /pid == 1/ { printf("vfs_read %d\n", arg2); }`,
	kfunc:  `kfunc:vfs_read /pid == 1/ { printf("vfs_read %d\n", args->count); }`,
}, {
	name: "return", call: "read", functions: vfsRead, ret: true,
	ours:   []string{"vfs_read(return == -4242)"},
	bcc:    []string{"vfs_read(return == 4242)"},
	kprobe: `kretprobe:vfs_read /retval == 4242/ { printf("vfs_read %d\n", retval); }`,
	kfunc:  `kretfunc:vfs_read /retval == 4242/ { printf("vfs_read %d\n", retval); }`,
}}

// countedCases lists cases whose calls are counted by key in the kernel.
var countedCases = []benchCase{{
	name: "number", call: "read", functions: vfsRead, entry: true, unfiltered: true,
	ours:   []string{"vfs_read(count, count())"},
	kprobe: `kprobe:vfs_read { @[arg2] = count(); }`,
	kfunc:  `kfunc:vfs_read { @[args->count] = count(); }`,
}, {
	name: "comm", call: "read", functions: vfsRead, entry: true, unfiltered: true,
	ours:   []string{"vfs_read($comm, count())"},
	kprobe: `kprobe:vfs_read { @[comm] = count(); }`,
	kfunc:  `kfunc:vfs_read { @[comm] = count(); }`,
}, {
	name: "histogram", call: "read", functions: vfsRead, entry: true, unfiltered: true,
	ours:   []string{"vfs_read(hist(count))"},
	kprobe: `kprobe:vfs_read { @ = hist(arg2); }`,
	kfunc:  `kfunc:vfs_read { @ = hist(args->count); }`,
}}

// scalarCase has the smallest event.
var scalarCase = benchCase{
	name: "scalar", call: "read", functions: vfsRead, entry: true, events: 1,
	ours:   []string{"vfs_read(count == 1)"},
	bcc:    []string{"vfs_read(count == 1)"},
	kprobe: `kprobe:vfs_read /arg2 == 1/ { printf("vfs_read %d\n", arg2); }`,
	kfunc:  `kfunc:vfs_read /args->count == 1/ { printf("vfs_read %d\n", args->count); }`,
}

// taskCase returns a case whose event has the given number of bytes of a
// task_struct.
func taskCase(name string, bytes int) benchCase {
	return benchCase{
		name: name, call: "getpgid", functions: []string{"security_task_getpgid"}, entry: true, events: 1, bytes: bytes,
		ours: []string{"--max-bytes", fmt.Sprint(bytes), "security_task_getpgid(p)"},
	}
}

// acceptedCases lists cases whose calls are shown, each in one event.
var acceptedCases = []benchCase{
	scalarCase,
	peered(taskCase("256B", 256), `%s:security_task_getpgid { printf("security_task_getpgid %%r\n", buf(%s, 200)); }`,
		"; bpftrace copies 200 bytes, the most that it can"),
	taskCase("2KiB", 2048).withBCC("security_task_getpgid(p)"),
	taskCase("8KiB", 8192),
}

func (c benchCase) withBCC(specs ...string) benchCase {
	c.bcc = specs
	return c
}

// peered adds programs for bpftrace to a case. The format of program takes the
// attach kind and the argument.
func peered(c benchCase, program, note string) benchCase {
	c.kprobe = fmt.Sprintf(program, "kprobe", "arg0")
	c.kfunc = fmt.Sprintf(program, "kfunc", "args->p")
	c.note = note
	return c
}

// wholeCase shows everything that the tracers can show of a call.
var wholeCase = benchCase{
	name: "vfs_read", call: "read", functions: vfsRead, entry: true, ret: true, events: 2, unfiltered: true,
	ours: []string{"vfs_read"},
	bcc:  []string{"vfs_read"},
	// Without the condition, each event of another process's call would cost
	// bpftrace half a million instructions.
	kprobe: `kprobe:vfs_read /arg2 == 1/ { printf("vfs_read %r %d\n", buf(arg0, 200), arg2); }
		kretprobe:vfs_read /retval == 1/ { printf("vfs_read %d\n", retval); }`,
	kfunc: `kfunc:vfs_read /args->count == 1/ { printf("vfs_read %r %d\n", buf(args->file, 200), args->count); }
		kretfunc:vfs_read /retval == 1/ { printf("vfs_read %d\n", retval); }`,
	note: "bpftrace copies 200 bytes of struct file, the most that it can",
}

// pairedCases lists cases that keep values of the entry until the return.
var pairedCases = []benchCase{{
	name: "pair", call: "read", functions: vfsRead, entry: true, ret: true, events: 1,
	ours: []string{"vfs_read(count == 1, file->f_mode, return == 1)"},
	bcc:  []string{"vfs_read(count == 1, file->f_mode, return == 1)"},
	kprobe: `kprobe:vfs_read /arg2 == 1/ { @mode[tid] = ((struct file *)arg0)->f_mode; }
		kretprobe:vfs_read /@mode[tid]/ { printf("vfs_read %x %d\n", @mode[tid], retval); delete(@mode[tid]); }`,
	kfunc: `kfunc:vfs_read /args->count == 1/ { @mode[tid] = args->file->f_mode; }
		kretfunc:vfs_read /@mode[tid]/ { printf("vfs_read %x %d\n", @mode[tid], retval); delete(@mode[tid]); }`,
}, {
	name: "stack", call: "read", functions: []string{"ksys_read", "vfs_read", "read_zero"}, entry: true, ret: true, events: 6,
	ours:   []string{"-s", "ksys_read(count, return)", "vfs_read(count, return)", "read_zero(count, return)"},
	bcc:    []string{"-s", "ksys_read(count, return)", "vfs_read(count, return)", "read_zero(count, return)"},
	kprobe: strings.NewReplacer("ENTRY", "kprobe", "RETURN", "kretprobe", "COUNT", "arg2").Replace(stackProgram),
	kfunc:  strings.NewReplacer("ENTRY", "kfunc", "RETURN", "kretfunc", "COUNT", "args->count").Replace(stackProgram),
	note:   "bpftrace and bcc do not tell calls of one thread apart, and bcc looks at one caller only",
}}

// stackProgram is the bpftrace program that comes closest to stack mode.
const stackProgram = `
	ENTRY:ksys_read { @outer[tid] = COUNT; }
	ENTRY:vfs_read /@outer[tid]/ { @inner[tid] = COUNT; }
	ENTRY:read_zero /@inner[tid]/ {
		printf("ksys_read %d\n", @outer[tid]); printf("vfs_read %d\n", @inner[tid]); printf("read_zero %d\n", COUNT);
		@shown[tid] = 1;
	}
	RETURN:read_zero /@shown[tid]/ { printf("read_zero %d\n", retval); }
	RETURN:vfs_read { if (@shown[tid]) { printf("vfs_read %d\n", retval); } delete(@inner[tid]); }
	RETURN:ksys_read { if (@shown[tid]) { printf("ksys_read %d\n", retval); } delete(@outer[tid]); delete(@shown[tid]); }
`

// fileCase records a whole structure.
var fileCase = benchCase{
	name: "struct-file", call: "read", functions: vfsRead, entry: true, events: 1,
	ours: []string{"vfs_read(count == 1, file)"},
	bcc:  []string{"vfs_read(count == 1, file)"},
}
