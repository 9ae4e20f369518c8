//go:build linux

package e2e

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/e2e/feature"
	"github.com/ksnoop/ksnoop/runtime"
)

// A twin is an event that both the kernel and ksnoop trace.
type twin struct {
	// line has %offset(STRUCT.MEMBER) and %address(SYMBOL) for numbers that
	// differ between kernels, and %reg(N) for the register of argument N.
	line   string
	filter string // a condition besides the thread; empty for none
	// spec is the equivalent spec for ksnoop, with the same arguments, for
	// kernels before 6.12, which know too little of BTF to accept the line. It
	// is empty if all kernels accept the line.
	spec string
}

// twins lists lines of all kinds. makeCalls makes the calls for them.
var twins = []twin{
	{line: "p:regs vfs_read %reg(0) si=%reg(1) dx=%reg(2):u32 low=%reg(2):s8 word=%reg(2):x16"},
	{line: "p:args vfs_read a=$arg1:x64 n=$arg3:u64 s=$arg3:s8 x=$arg3:x32", filter: "n > 100"},
	{line: "p:stack vfs_open sp=$stack:x64 s0=$stack0:symbol s1=$stack1:x64 s2=$stack2:u8"},
	{line: "p:comm vfs_read name=$comm:string $comm", filter: `name != "other"`},
	{line: "p:mem vfs_read pos=+0($arg4):s64 low=+0($arg4):u8 inode=+%offset(file.f_inode)($arg1):x64 size=+%offset(inode.i_size)(+%offset(file.f_inode)($arg1)):s64 back=-8(+%offset(file.f_op)($arg1)):s64"},
	{line: "p:user do_sys_openat2 path=+0($arg2):ustring same=+u0($arg2):string first=+u0($arg2):x8", filter: `path ~ "*/twin*"`},
	{line: "p:either do_sys_openat2 path=+0($arg2):string first=+0($arg2):x8 bits=+1($arg2):b4@4/8 list=+0($arg2):u8[2]", filter: `path ~ "*/twin*"`},
	{line: "p:array vfs_open sy=+0($arg1):symbol[2] bi=+0($arg1):b4@0/8[3] raw=+0($arg1):x8[8] words=+0($arg1):x64[2] signed=+0($arg1):s16[4] many=+0($arg1):u8[16]"},
	{line: "p:bits vfs_read high=%reg(2):b8@8/16 low=%reg(2):b4@0/32 mid=%reg(2):b5@3/64 all=%reg(2):b8@0/8"},
	{line: "p:symbol vfs_read op=+%offset(file.f_op)($arg1):symbol none=\\0x1234:symbol"},
	{line: `p:constant vfs_read five=\5:u32 minus=\-1:s64 hex=\0xff:x8 text=\"text":string`},
	{line: "p:global vfs_read comm=@init_task+%offset(task_struct.comm):string state=@system_state:s32 pid=@init_task+%offset(task_struct.pid):s32"},
	{line: "r:ret vfs_read ret=$retval:s64 low=$retval:x8 same=$retval:u32"},
	{line: "p:back vfs_write%return n=$retval:u32"},
	{line: "r8:eight ksys_read n=$retval:s64 code=$retval:s32", filter: "code < 0"},
	{line: "p:inside ksys_read+%inside() fd=%reg(0):s32 n=%reg(2):u64"},
	{line: "p:address %address(vfs_write) buf=%reg(1):x64 n=%reg(2):u32"},
	{line: "p:fault do_sys_openat2 none=+0(%reg(0)):string user=+0(%reg(0)):ustring far=+8(+0(%reg(0))):string"},
	{line: "p:name vfs_read name=+0(+%offset(dentry.d_name.name)(+%offset(file.f_path.dentry)($arg1))):string", filter: `name == "twin [1]=2"`},
	{line: "p:grp_in/named vfs_write n=$arg3:u32 b=+u0($arg2):u8", filter: "n & 1 && (n >= 4321 || b == 3)"},
	{line: "p:two_names vfs_write n=$arg3:u32", filter: "!(n < 4321) && common_pid != 1"},

	{line: "p:types vfs_read a=$arg1 n=$arg3:u64 count pos", spec: "vfs_read(file:x, $arg3, count, pos:x)"},
	{line: "p:member vfs_read flags=file->f_flags len=file->f_path.dentry->d_name.len name=file->f_path.dentry->d_name.name:string size=file->f_inode->i_size",
		spec: "vfs_read(file->f_flags, file->f_path.dentry->d_name.len, file->f_path.dentry->d_name.name:string, file->f_inode->i_size)"},
	{line: "p:all vfs_read $arg*", spec: "vfs_read(file:x, buf:x, $arg3, pos:x)"},
	{line: "p:char vfs_read c=+0(+%offset(dentry.d_name.name)(+%offset(file.f_path.dentry)($arg1))):char", spec: "vfs_read(file->f_path.dentry->d_name.name[0])"},
	{line: "p:file vfs_read name=$arg1:%pD", spec: "vfs_read(file->f_path.dentry->d_name.name:string)"},
	{line: "p:dentry vfs_open name=+8($arg1):%pd", spec: "vfs_open(path->dentry->d_name.name:string)"},
	{line: "r:both vfs_read n=$arg3:u64 ret=$retval", filter: "n == 4321", spec: "vfs_read(count == 4321, return)"},
	{line: "f:enter vfs_read count pos", spec: "vfs_read(count, pos:x)"},
	{line: "f:leave vfs_read%return $retval count", spec: "vfs_read(return != -9999, count)"},
	{line: "t:point sys_enter nr=$arg2:s64", filter: fmt.Sprintf("nr == %d", unix.SYS_LSEEK), spec: fmt.Sprintf("tp:sys_enter($arg2 == %d)", unix.SYS_LSEEK)},
}

// testLines checks that the kernel's own events and ksnoop's have the same
// values and the same format for the same calls, and that the kernel accepts what
// docs/kprobe-events.md says.
func testLines(t *testing.T, k *kernel) {
	takesBTF := !kernelBefore(t, 6, 12)
	caller := newCaller(t)
	var file strings.Builder
	var names, specs, formats, formatted []string
	var done []twin
	events := newEvents(t)
	for _, twin := range twins {
		line := k.fillIn(t, twin.line)
		name := eventName(line)
		if name == "global" && !hasVariables(t) {
			require.Error(t, appendLine(dynamicLines, line), "the kernel itself finds no variables")
			require.ErrorContains(t, k.refused(t, "", "vfs_read(@init_task.pid)"), "there is no variable 'init_task'")
			continue
		}
		done = append(done, twin)
		names = append(names, name)
		filtered := line
		if twin.filter != "" {
			filtered += " if " + twin.filter
		}
		fmt.Fprintln(&file, filtered)
		if byFprobe := line[0] == 'f' || line[0] == 't'; takesBTF && byFprobe && !feature.Has("kprobe.multi") {
			require.Error(t, appendLine(dynamicLines, line), "it takes CONFIG_FPROBE")
			specs = append(specs, twin.spec)
			continue
		}
		if twin.spec != "" && !takesBTF {
			specs = append(specs, twin.spec)
			continue
		}
		specs = append(specs, "")
		if hasCaller(t, line) {
			formats, formatted = append(formats, line), append(formatted, name)
		}
		filter := fmt.Sprintf("common_pid == %d", caller.tid)
		if twin.filter != "" {
			filter += " && (" + twin.filter + ")"
		}
		events.define(t, line, filter)
	}
	own := k.traceSpecs(t, caller, specs)
	gotText := traceLines(t, caller, file.String(), func() { makeCalls(t, caller) })
	own.stop(t)
	wantText := events.read(t)
	got, want := parseTrace(t, gotText), parseTrace(t, wantText)
	for i, name := range names {
		if specs[i] != "" {
			require.NotEmpty(t, own.shown[specs[i]], done[i].spec)
			require.Equal(t, own.shown[specs[i]], plainValues(got[name]), "%s and %s", done[i].line, specs[i])
			continue
		}
		require.NotEmpty(t, want[name], done[i].line)
		require.Equal(t, want[name], got[name], done[i].line)
	}
	require.Len(t, got, len(names))
	compareCallers(t, returnsTo(gotText), returnsTo(wantText))
	require.Equal(t, events.formats(t, formatted), describeLines(t, formats))
	testDifferences(t)
}

// hasVariables reports whether the kernel lists variables among its symbols
// (CONFIG_KALLSYMS_ALL).
func hasVariables(t *testing.T) bool {
	symbols, err := os.ReadFile("/proc/kallsyms")
	require.NoError(t, err)
	return bytes.Contains(symbols, []byte(" init_task\n"))
}

// kernelBefore reports whether the kernel is older than a version.
func kernelBefore(t *testing.T, major, minor int) bool {
	var uts unix.Utsname
	require.NoError(t, unix.Uname(&uts))
	var a, b int
	_, err := fmt.Sscanf(unix.ByteSliceToString(uts.Release[:]), "%d.%d", &a, &b)
	require.NoError(t, err)
	return a < major || a == major && b < minor
}

// placeholder matches the text that fillIn replaces.
var placeholder = regexp.MustCompile(`%(offset|address|inside|reg)\(([^)]*)\)`)

// fillIn replaces placeholders by numbers that differ between kernels.
func (k *kernel) fillIn(t *testing.T, line string) string {
	return placeholder.ReplaceAllStringFunc(line, func(text string) string {
		m := placeholder.FindStringSubmatch(text)
		switch m[1] {
		case "offset":
			path := strings.Split(m[2], ".")
			var s *btf.Struct
			require.NoError(t, k.target().Kernel.TypeByName(path[0], &s))
			return fmt.Sprint(offsetOf(t, s, path[1:]))
		case "address":
			symbols := k.target().Symbols.Lookup(m[2])
			require.Len(t, symbols, 1)
			return fmt.Sprintf("%#x", symbols[0].Addr)
		case "reg":
			n, err := strconv.Atoi(m[2])
			require.NoError(t, err)
			return "%" + argRegisters[n]
		}
		return k.inside(t)
	})
}

// inside returns the offset of an instruction of functions that takes a probe. On
// amd64 it is behind the call of the function tracer, or behind endbr64, but 0 from
// 5.11 to 6.11. On arm64 it is behind the two instructions that the function tracer
// changes.
func (k *kernel) inside(t *testing.T) string {
	if k.target().Arch == compiler.ARM64 {
		return "8"
	}
	if kernelBefore(t, 5, 11) {
		return "5"
	}
	if kernelBefore(t, 6, 12) {
		return "0"
	}
	return "4"
}

// offsetOf returns the offset in bytes of a nested member of a record.
func offsetOf(t *testing.T, record btf.Type, path []string) uint32 {
	if len(path) == 0 {
		return 0
	}
	typ, bits, ok := findMember(record, path[0])
	require.True(t, ok, "%v has no %s", record, path[0])
	return uint32(bits/8) + offsetOf(t, typ, path[1:])
}

// findMember finds a member of a structure, or of an anonymous structure in it.
func findMember(record btf.Type, name string) (typ btf.Type, bits btf.Bits, ok bool) {
	var members []btf.Member
	switch r := btf.UnderlyingType(record).(type) {
	case *btf.Struct:
		members = r.Members
	case *btf.Union:
		members = r.Members
	}
	for _, m := range members {
		if m.Name == name {
			return m.Type, m.Offset, true
		}
		if m.Name != "" {
			continue
		}
		if typ, bits, ok := findMember(m.Type, name); ok {
			return typ, m.Offset + bits, true
		}
	}
	return nil, 0, false
}

// makeCalls makes the calls that the twins trace.
func makeCalls(t *testing.T, c *caller) {
	path := filepath.Join(t.TempDir(), "twin [1]=2")
	require.NoError(t, os.WriteFile(path, make([]byte, 5000), 0o644))
	name, err := unix.BytePtrFromString(path)
	require.NoError(t, err)
	buf := make([]byte, 4321)
	buf[0] = 3
	c.do(func() {
		var fds [2]uintptr
		data := uintptr(unsafe.Pointer(&buf[0]))
		cwd := unix.AT_FDCWD
		for i, flags := range []uintptr{unix.O_RDONLY, unix.O_RDWR} {
			fds[i], _, _ = unix.RawSyscall6(unix.SYS_OPENAT, uintptr(cwd), uintptr(unsafe.Pointer(name)), flags, 0, 0, 0)
		}
		unix.RawSyscall(unix.SYS_READ, fds[0], data, 100)
		unix.RawSyscall(unix.SYS_READ, fds[0], data, 4321)
		unix.RawSyscall(unix.SYS_READ, ^uintptr(0), data, 4321)
		unix.RawSyscall(unix.SYS_WRITE, fds[1], data, 4321)
		unix.RawSyscall(unix.SYS_WRITE, fds[1], data, 5)
		unix.RawSyscall(unix.SYS_LSEEK, fds[0], 7, unix.SEEK_SET)
		unix.RawSyscall(unix.SYS_READ, fds[0], data, 3)
		unix.RawSyscall(unix.SYS_CLOSE, fds[0], 0, 0)
		unix.RawSyscall(unix.SYS_CLOSE, fds[1], 0, 0)
	})
}

// traceLines runs ksnoop with the lines of a file while it makes calls, and
// returns the lines of the events.
func traceLines(t *testing.T, c *caller, lines string, calls func()) string {
	path := filepath.Join(t.TempDir(), "lines")
	require.NoError(t, os.WriteFile(path, []byte(lines), 0o644))
	cmd := exec.Command("/bin/ksnoop", "-t", strconv.Itoa(int(c.tid)), "-f", path)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	defer cmd.Process.Kill()
	out := bufio.NewReader(stdout)
	_, err = out.ReadString('\n') // the header, which ksnoop prints once it is attached
	require.NoError(t, err, &stderr)
	calls()
	require.NoError(t, cmd.Process.Signal(unix.SIGINT))
	text, err := io.ReadAll(out)
	require.NoError(t, err)
	require.NoError(t, cmd.Wait(), &stderr)
	return string(text)
}

// traceLine matches a line of the kernel's trace file, or of ksnoop's output.
var traceLine = regexp.MustCompile(`^ *(?:\S.*)-\d+ +\[\d+\] +(?:\S+ +)?\d+\.\d{6}: (\w+): \(([^)]*)\)(.*)$`)

// parseTrace returns the arguments of each event, in the order of the calls,
// with the function before them. It omits the offset, because the kernel may
// have moved the probe, and the caller.
func parseTrace(t *testing.T, text string) map[string][]string {
	events := map[string][]string{}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		m := traceLine.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		require.NotNil(t, m, line)
		place := m[2][strings.LastIndex(m[2], " ")+1:]
		if function, rest, ok := strings.Cut(place, "+"); ok {
			_, size, _ := strings.Cut(rest, "/")
			place = function + " of " + size
			if tracepoint, ok := strings.CutPrefix(function, "__probestub_"); ok { // the kernel's stub for the tracepoint
				place = tracepoint
			}
		}
		events[m[1]] = append(events[m[1]], place+":"+m[3])
	}
	return events
}

// returnsTo returns the addresses that the functions of return probes return
// to, for each event.
func returnsTo(text string) map[string][]string {
	callers := map[string][]string{}
	for line := range strings.Lines(text) {
		if m := traceLine.FindStringSubmatch(strings.TrimSuffix(line, "\n")); m != nil {
			if caller, _, ok := strings.Cut(m[2], " <- "); ok {
				callers[m[1]] = append(callers[m[1]], caller)
			}
		}
	}
	return callers
}

// compareCallers checks that return probes made of kretprobes show the same
// return addresses as the kernel's own events, where kretprobes know them:
// since 5.15. If others follow the function's returns as well, the kernel's
// event has another address, and prints that it does not know the caller.
func compareCallers(t *testing.T, got, want map[string][]string) {
	for _, name := range []string{"ret", "back", "eight"} {
		if kernelBefore(t, 5, 15) {
			require.NotContains(t, got, name)
			continue
		}
		require.Len(t, got[name], len(want[name]), name)
		for i, caller := range want[name] {
			if caller == "[unknown/kretprobe'd]" {
				caller = map[string]string{"ret": "ksys_read", "back": "ksys_write", "eight": syscallCaller}[name]
				require.Regexp(t, `^(`+syscallPrefix+`sys_read|return_to_handler|`+caller+`)\+0x[0-9a-f]+/0x[0-9a-f]+$`, got[name][i])
				continue
			}
			require.Equal(t, caller, got[name][i], name)
		}
	}
}

// field matches an argument of an event.
var field = regexp.MustCompile(`(?:^| )\w+=("(?:[^"])*"|'.'|\S+)`)

// plainValues returns the values of events without their names, with numbers as
// signed decimals.
func plainValues(events []string) (plain []string) {
	for _, event := range events {
		_, args, _ := strings.Cut(event, ":")
		var values []string
		for _, m := range field.FindAllStringSubmatch(args, -1) {
			value := m[1]
			if len(value) == 3 && value[0] == '\'' {
				value = strconv.Itoa(int(value[1]))
			} else if n, err := strconv.ParseUint(value, 0, 64); err == nil {
				value = strconv.FormatInt(int64(n), 10)
			}
			values = append(values, value)
		}
		plain = append(plain, strings.Join(values, " "))
	}
	return plain
}

// specEvents holds the events of specs.
type specEvents struct {
	tracer *tracer
	shown  map[string][]string // the values of each event, by spec
}

// traceSpecs traces the calls of a thread by specs. It ignores empty specs.
func (k *kernel) traceSpecs(t *testing.T, c *caller, specs []string) *specEvents {
	specs = slices.DeleteFunc(slices.Clone(specs), func(s string) bool { return s == "" })
	s := &specEvents{shown: map[string][]string{}}
	if len(specs) > 0 {
		s.tracer = k.trace(t, "", compiler.Options{TID: c.tid}, specs...)
	}
	return s
}

// stop reads the events and formats their values in the order of the spec.
func (s *specEvents) stop(t *testing.T) {
	if s.tracer == nil {
		return
	}
	s.tracer.events(t, func(ev *runtime.Event) {
		var values []string
		for _, item := range ev.Probe.Trace.Items {
			v := value(ev, item.Value.String())
			if v.Text != compiler.NoText {
				values = append(values, strconv.Quote(string(v.Data)))
				continue
			}
			n := number(ev, v.Name)
			if shift := 64 - 8*len(v.Data); v.Scalar.Signed {
				n = uint64(int64(n<<shift) >> shift)
			}
			values = append(values, strconv.FormatInt(int64(n), 10))
		}
		text := ev.Probe.Trace.Text
		s.shown[text] = append(s.shown[text], strings.Join(values, " "))
	})
}

// hasCaller reports whether the events of a line have the return address, if they are
// at the return of a function. Those of the kernel have it always.
func hasCaller(t *testing.T, line string) bool {
	returns := line[0] == 'r' || strings.Contains(line, "%return")
	return !returns || line[0] != 'f' && !kernelBefore(t, 5, 15)
}

// length matches the length of an array in a field of a format.
var length = regexp.MustCompile(`\[\d+\];`)

// describeLines returns what ksnoop info prints for lines.
func describeLines(t *testing.T, lines []string) string {
	cmd := exec.Command("/bin/ksnoop", "info", "-f", "-")
	cmd.Stdin = strings.NewReader(strings.Join(lines, "\n"))
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return string(out)
}
