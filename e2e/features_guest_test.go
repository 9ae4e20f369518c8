//go:build linux

package e2e

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"testing"
	"unsafe"

	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/resolve"
	"github.com/ksnoop/ksnoop/e2e/guest"
	"github.com/ksnoop/ksnoop/runtime"
)

// featureMark begins the lines of the guest's output that are rows of the table in
// docs/install.md: the row, a tab, and yes or the reason why not.
const featureMark = "feature row "

// featureCalls is how many calls each row makes.
const featureCalls = 5

// A featureTest checks the rows of the table. Its methods make calls, require that
// exactly these are shown with their values, and return "", or the reason why the
// kernel lacks the feature.
type featureTest struct {
	*kernel
	*testing.T
	caller *caller
	zero   int // the file /dev/zero
}

func newFeatureTest(t *testing.T, k *kernel) *featureTest {
	zero, err := unix.Open("/dev/zero", unix.O_RDONLY|unix.O_NONBLOCK, 0)
	require.NoError(t, err)
	t.Cleanup(func() { unix.Close(zero) })
	return &featureTest{k, t, newCaller(t), zero}
}

var featureRows = []struct {
	name  string
	check func(*featureTest) (lacks string)
}{
	{"default kind", func(f *featureTest) string { return f.reads("") }},
	{"fentry", func(f *featureTest) string { return f.reads(compiler.Fentry) }},
	{"kprobe", func(f *featureTest) string { return f.reads(compiler.Kprobe) }},
	{"kprobe.multi", func(f *featureTest) string { return f.reads(compiler.KprobeMulti) }},
	{"kprobe.session", func(f *featureTest) string { return f.reads(compiler.KprobeSession) }},
	{"returns", (*featureTest).returns},
	{"10 arguments", func(f *featureTest) string { return f.tenArguments("") }},
	{"10 arguments by fentry", func(f *featureTest) string { return f.tenArguments(compiler.Fentry) }},
	{"struct by value", (*featureTest).structByValue},
	{"struct by reference", (*featureTest).structByReference},
	{"whole structure", (*featureTest).wholeStructure},
	{"stack mode, `-s`", (*featureTest).stackMode},
	{"`$kstack`", (*featureTest).kernelStack},
	{"registers", func(f *featureTest) string { return f.line("p:regs vfs_read n=%reg(2):u64 if n == 4321") }},
	{"offsets", func(f *featureTest) string { return f.line("p:inside ksys_read+%inside() n=%reg(2):u64 if n == 4321") }},
	{"variables, `@NAME`", (*featureTest).variables},
	{"functions of modules", (*featureTest).modules},
	{"tracepoints", (*featureTest).tracepoints},
	{"`test`: `at-least`", func(f *featureTest) string { return f.verdict("vfs_read(count == 4321) at-least 5") }},
	{"`test`: `never`", func(f *featureTest) string { return f.verdict("vfs_read(count == 77777) never allow-unreached") }},
	{"counts under load on two CPUs", (*featureTest).load},
}

// TestGuestFeatures runs in the machines that TestFeatures boots.
func TestGuestFeatures(t *testing.T) {
	if !guest.Inside() {
		t.Skip("runs inside a virtual machine, see TestFeatures")
	}
	k := openKernel(t)
	for _, row := range featureRows {
		t.Run(row.name, func(t *testing.T) {
			f := newFeatureTest(t, k)
			answer := "yes"
			if lacks := row.check(f); lacks != "" {
				answer = "no: " + lacks
			}
			fmt.Printf("\n%s%s\t%s\n", featureMark, row.name, answer)
		})
	}
}

// reason returns the reason why a spec cannot be traced, or "".
func (f *featureTest) reason(attach compiler.Kind, spec string) string {
	err := f.refused(f.T, attach, spec)
	if err == nil {
		return ""
	}
	var kind *resolve.KindError
	if errors.As(err, &kind) {
		return kind.Reason()
	}
	why, _, _ := strings.Cut(err.Error(), "\n")
	return why
}

// shown traces specs while the caller makes calls, and requires that n events are
// shown and that nothing was lost or missed.
func (f *featureTest) shown(w resolve.Wishes, n int, call func(), show func(*runtime.Event), specs ...string) {
	tr := f.traceAs(f.T, w, compiler.Options{TID: f.caller.tid, CountCalls: true}, specs...)
	f.caller.do(func() {
		for range featureCalls {
			call()
		}
	})
	events := 0
	tr.events(f.T, func(ev *runtime.Event) {
		events++
		show(ev)
	})
	require.Equal(f, n, events, specs)
	counts, err := tr.Counts()
	require.NoError(f, err)
	require.Zero(f, counts.Lost(), "%+v", counts)
	require.NoError(f, tr.Close())
}

// read reads n bytes in the caller.
func (f *featureTest) read(n int) { unix.Read(f.zero, make([]byte, n)) }

func (f *featureTest) reads(attach compiler.Kind) string {
	const spec = "vfs_read(count == 4321, file->f_flags)"
	if why := f.reason(attach, spec); why != "" {
		return why
	}
	f.shown(resolve.Wishes{Attach: attach}, featureCalls, func() { f.read(4321); f.read(1234) }, func(ev *runtime.Event) {
		require.Equal(f, f.flags(), number(ev, "file->f_flags"))
	}, spec)
	return ""
}

// flags returns f_flags of the open file.
func (f *featureTest) flags() uint64 {
	flags, err := unix.FcntlInt(uintptr(f.zero), unix.F_GETFL, 0)
	require.NoError(f, err)
	require.NotZero(f, flags&unix.O_NONBLOCK)
	return uint64(flags)
}

func (f *featureTest) returns() string {
	for _, kind := range append(f.kinds(f.T), "") {
		f.shown(resolve.Wishes{Attach: kind}, featureCalls, func() { f.read(4321) }, func(ev *runtime.Event) {
			require.Equal(f, uint64(4321), number(ev, "return"), kind)
		}, "vfs_read(return)")
	}
	f.shown(resolve.Wishes{}, featureCalls, func() { f.read(4321); f.read(1234) }, func(ev *runtime.Event) {
		require.Equal(f, f.flags(), number(ev, "file->f_flags"))
		require.Equal(f, uint64(4321), number(ev, "return"))
	}, "vfs_read(file->f_flags, return == 4321)")
	return ""
}

func (f *featureTest) tenArguments(attach compiler.Kind) string {
	const spec, size, header = "ip_make_skb(length, transhdrlen, flags)", 100, 8
	if why := f.reason(attach, spec); why != "" {
		return why
	}
	require.NoError(f, exec.Command("traffic", "udp", "-n", "1").Run()) // which sets up lo
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	require.NoError(f, err)
	defer unix.Close(fd)
	to := &unix.SockaddrInet4{Port: 9, Addr: [4]byte{127, 0, 0, 1}}
	f.shown(resolve.Wishes{Attach: attach}, featureCalls, func() { _ = unix.Sendto(fd, make([]byte, size), unix.MSG_DONTWAIT, to) }, func(ev *runtime.Event) {
		require.Equal(f, []uint64{size + header, header, unix.MSG_DONTWAIT},
			[]uint64{number(ev, "length"), number(ev, "transhdrlen"), number(ev, "flags") & unix.MSG_DONTWAIT})
	}, spec)
	return ""
}

func (f *featureTest) structByValue() string {
	const uid = 4321
	become := func(uid int) { unix.RawSyscall(unix.SYS_SETRESUID, uintptr(uid), ^uintptr(0), ^uintptr(0)) }
	f.shown(resolve.Wishes{}, featureCalls, func() {
		become(uid)
		unix.RawSyscall(unix.SYS_GETUID, 0, 0, 0)
		become(0)
	}, func(ev *runtime.Event) {
		require.Equal(f, []uint64{uid, uid}, []uint64{number(ev, "kuid.val"), number(ev, "return")})
	}, "from_kuid_munged(kuid.val == 4321, return)")
	return ""
}

// structByReference looks at a va_list, of which the caller passes a copy. Of the 8
// registers for arguments, devkmsg_emit has used 3 before its list begins.
func (f *featureTest) structByReference() string {
	null := filepath.Join(f.TempDir(), "kmsg")
	require.NoError(f, unix.Mknod(null, unix.S_IFCHR|0o600, int(unix.Mkdev(1, 11))))
	fd, err := unix.Open(null, unix.O_WRONLY, 0)
	require.NoError(f, err)
	defer unix.Close(fd)
	f.shown(resolve.Wishes{}, featureCalls, func() { unix.Write(fd, []byte("<7>ksnoop")) }, func(ev *runtime.Event) {
		require.Equal(f, int32(-(8-3)*8), int32(number(ev, "args->__gr_offs")))
		require.Equal(f, uint64(7), number(ev, "level"))
	}, "vprintk_emit(level, args->__gr_offs)")
	return ""
}

func (f *featureTest) wholeStructure() string {
	var file *btf.Struct
	require.NoError(f, f.target().Kernel.TypeByName("file", &file))
	at := offsetOf(f.T, file, []string{"f_flags"})
	f.shown(resolve.Wishes{}, featureCalls, func() { f.read(4321); f.read(1234) }, func(ev *runtime.Event) {
		data := value(ev, "file").Data
		require.Len(f, data, int(file.Size))
		require.Equal(f, f.flags(), uint64(binary.LittleEndian.Uint32(data[at:])))
	}, "vfs_read(file, count == 4321)")
	return ""
}

func (f *featureTest) stackMode() string {
	calls := map[string]int{}
	var outer uint64
	f.shown(resolve.Wishes{Chain: true}, 4*featureCalls, func() { f.read(4321); f.read(1234) }, func(ev *runtime.Event) {
		name := ev.Probe.Func.Name
		calls[name]++
		if name == "ksys_read" {
			outer = ev.Call
			return
		}
		require.Equal(f, outer, ev.Caller)
	}, "ksys_read(count == 4321, return)", "vfs_read(count, return)")
	require.Equal(f, map[string]int{"ksys_read": 2 * featureCalls, "vfs_read": 2 * featureCalls}, calls)
	return ""
}

func (f *featureTest) kernelStack() string {
	for _, attach := range append(f.kinds(f.T), "") {
		names := f.readStack(f.T, attach, "vfs_read(count == 4321, $kstack)")
		if names[0] == "vfs_read" {
			names = names[1:]
		}
		require.Equal(f, "ksys_read", names[0], attach)
		require.Equal(f, syscallPrefix+"sys_read", names[1], attach)
	}
	return ""
}

// line traces by a kprobe_events line whose events have n=4321.
func (f *featureTest) line(line string) string {
	text := traceLines(f.T, f.caller, f.fillIn(f.T, line), func() {
		f.caller.do(func() {
			for range featureCalls {
				f.read(4321)
				f.read(1234)
			}
		})
	})
	require.Equal(f, featureCalls, strings.Count(text, " n=4321\n"), text)
	require.Equal(f, featureCalls, strings.Count(text, ": ("), text)
	return ""
}

func (f *featureTest) variables() string {
	const spec = "vfs_read(count == 4321, ((struct task_struct)@init_task).pid, ((struct task_struct)@init_task).comm)"
	if !hasVariables(f.T) {
		return f.reason("", spec)
	}
	f.shown(resolve.Wishes{}, featureCalls, func() { f.read(4321) }, func(ev *runtime.Event) {
		require.Equal(f, make([]byte, 4), ev.Values[1].Data)
		require.Contains(f, string(ev.Values[2].Data), "swapper")
	}, spec)
	return ""
}

func (f *featureTest) modules() string {
	const spec = "dummy_xmit(skb->len == 200, return)"
	require.NoError(f, exec.Command("traffic", "dummy", "-n", "0").Run())
	fresh := openKernel(f.T)
	if err := fresh.refused(f.T, "", spec); err != nil {
		return (&featureTest{kernel: fresh, T: f.T}).reason("", spec)
	}
	for _, kind := range append(f.kinds(f.T), "") {
		if kind == compiler.Fentry && f.target().Features.Preemptible {
			continue // refuses to join both sides
		}
		events := 0
		tr := fresh.trace(f.T, kind, compiler.Options{}, spec)
		require.NoError(f, exec.Command("traffic", "dummy", "-n", "3", "-size", "200").Run())
		tr.events(f.T, func(ev *runtime.Event) {
			events++
			require.Zero(f, number(ev, "return"))
		})
		require.Equal(f, 3, events, kind)
		require.NoError(f, tr.Close())
	}
	return ""
}

func (f *featureTest) tracepoints() string {
	name := [16]byte{'w', 'o', 'r', 'k'}
	f.shown(resolve.Wishes{}, featureCalls, func() {
		unix.RawSyscall(unix.SYS_PRCTL, unix.PR_SET_NAME, uintptr(unsafe.Pointer(&name)), 0)
	}, func(ev *runtime.Event) {
		require.Equal(f, "work", string(ev.Values[0].Data))
	}, "tp:task_rename($arg2:string)")
	return ""
}

// verdict runs a test of one assertion, which must pass unless the kernel cannot
// tell.
func (f *featureTest) verdict(assertion string) string {
	file := filepath.Join(f.TempDir(), "probes")
	require.NoError(f, os.WriteFile(file, []byte("ksnoop-probes 1\nsuite feature\nassert it "+assertion+"\n"), 0o644))
	out, err := exec.Command("ksnoop", "test", file, "--", "traffic", "read", "-n", "5", "-size", "4321").Output()
	if _, why, ok := strings.Cut(string(out), "# ERROR "); ok {
		why, _, _ = strings.Cut(why, ":")
		return why
	}
	require.NoError(f, err, "%s", out)
	require.Contains(f, string(out), "\nok 2 feature.it")
	return ""
}

// load checks that the calls of two busy processes, each on a CPU of its own, are
// shown or known to be missed, by each kind.
func (f *featureTest) load() string {
	const each = 2000
	require.Equal(f, 2, goruntime.NumCPU())
	for _, attach := range append(f.kinds(f.T), "") {
		for _, spec := range []string{"vfs_read(count == 4321)", "vfs_read(count == 4321, return)"} {
			if !f.accepts(f.T, attach, spec) {
				continue
			}
			tr := f.trace(f.T, attach, compiler.Options{CountCalls: true}, spec)
			busy := [2]*exec.Cmd{}
			for i := range busy {
				busy[i] = exec.Command("traffic", "read", "-n", fmt.Sprint(each), "-size", "4321")
				require.NoError(f, busy[i].Start())
				require.NoError(f, unix.SchedSetaffinity(busy[i].Process.Pid, onlyCPU(i)))
			}
			for i := range busy {
				require.NoError(f, busy[i].Wait())
			}
			var onCPU [2]int
			tr.events(f.T, func(ev *runtime.Event) { onCPU[ev.CPU]++ })
			missed := int(tr.missed(f.T))
			f.Logf("%s %s: %v on each CPU, %d missed", attach, spec, onCPU, missed)
			sum := tr.counters(f.T)
			require.Equal(f, onCPU[0]+onCPU[1], int(sum.Matched), attach)
			if !(attach == compiler.Fentry && f.target().Features.Preemptible) {
				require.Zero(f, missed)
			}
			require.GreaterOrEqual(f, onCPU[0]+onCPU[1]+missed, 2*each)
			require.LessOrEqual(f, onCPU[0]+onCPU[1], 2*each)
			require.NotZero(f, onCPU[0])
			require.NotZero(f, onCPU[1])
			require.Zero(f, sum.Lost+sum.NoRoom+sum.Unpaired+sum.Unreadable, "%+v", sum)
			require.NoError(f, tr.Close())
		}
	}
	return ""
}

// onlyCPU returns the set of one CPU.
func onlyCPU(i int) *unix.CPUSet {
	var set unix.CPUSet
	set.Set(i)
	return &set
}
