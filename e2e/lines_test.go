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
	"github.com/ksnoop/ksnoop/runtime"
)

// A twin is an event that is defined twice: by the kernel and by ksnoop.
type twin struct {
	// line has %offset(STRUCT.MEMBER) and %address(SYMBOL) for numbers that
	// differ from kernel to kernel.
	line   string
	filter string // besides the thread; "": none
	// spec says the same to ksnoop, argument by argument, where the kernel
	// knows too little of BTF to take the line: before 6.12. "": all take it.
	spec string
}

// twins are lines of all kinds. The tests make the calls of makeCalls.
var twins = []twin{
	{line: "p:regs vfs_read %di si=%si dx=%dx:u32 low=%dx:s8 word=%dx:x16"},
	{line: "p:args vfs_read a=$arg1:x64 n=$arg3:u64 s=$arg3:s8 x=$arg3:x32", filter: "n > 100"},
	{line: "p:stack vfs_open sp=$stack:x64 s0=$stack0:symbol s1=$stack1:x64 s2=$stack2:u8"},
	{line: "p:comm vfs_read name=$comm:string $comm", filter: `name != "other"`},
	{line: "p:mem vfs_read pos=+0($arg4):s64 low=+0($arg4):u8 inode=+%offset(file.f_inode)($arg1):x64 size=+%offset(inode.i_size)(+%offset(file.f_inode)($arg1)):s64 back=-8(+%offset(file.f_op)($arg1)):s64"},
	{line: "p:user do_sys_openat2 path=+0($arg2):ustring same=+u0($arg2):string first=+u0($arg2):x8", filter: `path ~ "*/twin*"`},
	{line: "p:array vfs_open raw=+0($arg1):x8[8] words=+0($arg1):x64[2] signed=+0($arg1):s16[4] many=+0($arg1):u8[16]"},
	{line: "p:bits vfs_read high=%dx:b8@8/16 low=%dx:b4@0/32 mid=%dx:b5@3/64 all=%dx:b8@0/8"},
	{line: "p:symbol vfs_read op=+%offset(file.f_op)($arg1):symbol none=\\0x1234:symbol"},
	{line: `p:constant vfs_read five=\5:u32 minus=\-1:s64 hex=\0xff:x8 text=\"text":string`},
	{line: "p:global vfs_read comm=@init_task+%offset(task_struct.comm):string state=@system_state:s32 pid=@init_task+%offset(task_struct.pid):s32"},
	{line: "r:ret vfs_read ret=$retval:s64 low=$retval:x8 same=$retval:u32"},
	{line: "p:back vfs_write%return n=$retval:u32"},
	{line: "r8:eight ksys_read n=$retval:s64 code=$retval:s32", filter: "code < 0"},
	{line: "p:inside ksys_read+%inside() fd=%di:s32 n=%dx:u64"},
	{line: "p:address %address(vfs_write) buf=%si:x64 n=%dx:u32"},
	{line: "p:fault do_sys_openat2 none=+0(%di):string user=+0(%di):ustring far=+8(+0(%di)):string"},
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
	{line: "t:point sys_enter nr=$arg2:s64", filter: fmt.Sprintf("nr == %d", unix.SYS_LSEEK), spec: "tp:sys_enter($arg2 == 8)"},
}

// testLines: for the same calls the kernel's own events and ksnoop's have the
// same values, and the same format.
func testLines(t *testing.T, k *kernel) {
	takesBTF := !kernelBefore(t, 6, 12)
	caller := newCaller(t)
	var file strings.Builder
	var names, specs, formats []string
	events := newEvents(t)
	for _, twin := range twins {
		line := k.fillIn(t, twin.line)
		name := eventName(line)
		names = append(names, name)
		filtered := line
		if twin.filter != "" {
			filtered += " if " + twin.filter
		}
		fmt.Fprintln(&file, filtered)
		if twin.spec != "" && !takesBTF {
			specs = append(specs, twin.spec)
			continue
		}
		specs = append(specs, "")
		formats = append(formats, line)
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
			require.NotEmpty(t, own.shown[specs[i]], twins[i].spec)
			require.Equal(t, own.shown[specs[i]], plainValues(got[name]), "%s and %s", twins[i].line, specs[i])
			continue
		}
		require.NotEmpty(t, want[name], twins[i].line)
		require.Equal(t, want[name], got[name], twins[i].line)
	}
	require.Len(t, got, len(names))
	compareCallers(t, returnsTo(gotText), returnsTo(wantText))
	require.Equal(t, events.formats(t), describeLines(t, formats))
}

// kernelBefore says whether the kernel is older than a version.
func kernelBefore(t *testing.T, major, minor int) bool {
	var uts unix.Utsname
	require.NoError(t, unix.Uname(&uts))
	var a, b int
	_, err := fmt.Sscanf(unix.ByteSliceToString(uts.Release[:]), "%d.%d", &a, &b)
	require.NoError(t, err)
	return a < major || a == major && b < minor
}

// placeholder is what is filled in.
var placeholder = regexp.MustCompile(`%(offset|address|inside)\(([^)]*)\)`)

// fillIn replaces what differs from kernel to kernel.
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
		}
		return k.inside(t)
	})
}

// inside is where the second instruction of functions begins: behind the call of
// the function tracer, or behind endbr64.
func (k *kernel) inside(t *testing.T) string {
	if kernelBefore(t, 5, 11) {
		return "5"
	}
	if kernelBefore(t, 6, 12) {
		return "0"
	}
	return "4"
}

// offsetOf is the offset in bytes of a member of a member of a record.
func offsetOf(t *testing.T, record btf.Type, path []string) uint32 {
	if len(path) == 0 {
		return 0
	}
	typ, bits, ok := findMember(record, path[0])
	require.True(t, ok, "%v has no %s", record, path[0])
	return uint32(bits/8) + offsetOf(t, typ, path[1:])
}

// findMember finds a member of a record, or of one without a name in it.
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

// makeCalls makes the calls that the twins are events of.
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

// traceLines has ksnoop trace the lines of a file while calls are made, and
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
	_, err = out.ReadString('\n') // the header: it is attached
	require.NoError(t, err, &stderr)
	calls()
	require.NoError(t, cmd.Process.Signal(unix.SIGINT))
	text, err := io.ReadAll(out)
	require.NoError(t, err)
	require.NoError(t, cmd.Wait(), &stderr)
	return string(text)
}

// traceLine is a line of the kernel's trace file, or of ksnoop's.
var traceLine = regexp.MustCompile(`^ *(?:\S.*)-\d+ +\[\d+\] +(?:\S+ +)?\d+\.\d{6}: (\w+): \(([^)]*)\)(.*)$`)

// parseTrace returns the arguments of each event, in the order of the calls. In
// front of them stands the function: neither the offset, which is where the
// kernel has moved the probe to, nor the caller.
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
			if tracepoint, ok := strings.CutPrefix(function, "__probestub_"); ok { // the kernel's stand-in for it
				place = tracepoint
			}
		}
		events[m[1]] = append(events[m[1]], place+":"+m[3])
	}
	return events
}

// returnsTo returns where the functions of return probes return to, event by
// event.
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

// compareCallers: return probes made of kretprobes return to where the kernel's
// own say, where kretprobes know that: since 5.15. The kernel's have another
// address on functions whose returns others follow as well, which it prints as
// one that it does not know.
func compareCallers(t *testing.T, got, want map[string][]string) {
	for _, name := range []string{"ret", "back", "eight"} {
		if kernelBefore(t, 5, 15) {
			require.NotContains(t, got, name)
			continue
		}
		require.Len(t, got[name], len(want[name]), name)
		for i, caller := range want[name] {
			if caller == "[unknown/kretprobe'd]" {
				caller = map[string]string{"ret": "ksys_read", "back": "ksys_write", "eight": "do_syscall_64"}[name]
				require.Regexp(t, `^(__x64_sys_read|return_to_handler|`+caller+`)\+0x[0-9a-f]+/0x[0-9a-f]+$`, got[name][i])
				continue
			}
			require.Equal(t, caller, got[name][i], name)
		}
	}
}

// field is an argument of an event.
var field = regexp.MustCompile(`(?:^| )\w+=("(?:[^"])*"|'.'|\S+)`)

// plainValues are the values of events without their names, and numbers as signed
// decimal ones.
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

// specEvents are the events of specs.
type specEvents struct {
	tracer *tracer
	shown  map[string][]string // by spec
}

// traceSpecs traces the calls of a thread by specs, but for empty ones.
func (k *kernel) traceSpecs(t *testing.T, c *caller, specs []string) *specEvents {
	specs = slices.DeleteFunc(slices.Clone(specs), func(s string) bool { return s == "" })
	s := &specEvents{shown: map[string][]string{}}
	if len(specs) > 0 {
		s.tracer = k.trace(t, "", compiler.Options{TID: c.tid}, specs...)
	}
	return s
}

// stop reads the events, whose values are shown in the order of the spec.
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

// length is that of an array in a field of a format. Most kernels leave it out,
// but not the first one here.
var length = regexp.MustCompile(`\[\d+\];`)

// describeLines is what ksnoop info says of lines.
func describeLines(t *testing.T, lines []string) string {
	cmd := exec.Command("/bin/ksnoop", "info", "-f", "-")
	cmd.Stdin = strings.NewReader(strings.Join(lines, "\n"))
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return length.ReplaceAllString(string(out), "[];")
}
