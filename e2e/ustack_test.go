//go:build linux

package e2e

import (
	"debug/elf"
	"debug/gosym"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/runtime"
	"github.com/ksnoop/ksnoop/runtime/userstack"
)

// testUstack checks that user stacks have the functions of the process.
func testUstack(t *testing.T, k *kernel) {
	for _, attach := range k.twoKinds(t) {
		for _, spec := range []string{"vfs_read($ustack, count == 7301)", "vfs_read(count, $ustack, return == 7301)", "vfs_read($ustack) if return == 7301"} {
			if k.accepts(t, attach, spec) {
				t.Run(fmt.Sprint("own/", attach, "/", spec), func(t *testing.T) { testOwnUstack(t, k, attach, spec) })
			}
		}
	}
	t.Run("gone", func(t *testing.T) { testUstackOfGone(t, k) })
	t.Run("stripped", func(t *testing.T) { testUstackOfStripped(t, k) })
	t.Run("kernel thread", func(t *testing.T) { testNoUstack(t, k) })
}

//go:noinline
func ustackOuter(fd int) int { return ustackInner(fd) + 1 }

//go:noinline
func ustackInner(fd int) int {
	n, _ := unix.Read(fd, make([]byte, 7301))
	return n + 1
}

func testOwnUstack(t *testing.T, k *kernel, attach compiler.Kind, spec string) {
	zero, err := unix.Open("/dev/zero", unix.O_RDONLY, 0)
	require.NoError(t, err)
	defer unix.Close(zero)
	self, err := os.Readlink("/proc/self/exe")
	require.NoError(t, err)
	caller := newCaller(t)
	tr := k.trace(t, attach, compiler.Options{TID: caller.tid}, spec)
	const calls = 20
	caller.do(func() {
		for range calls {
			ustackOuter(zero)
		}
	})
	stacks := userstack.Running()
	n := 0
	tr.events(t, func(ev *runtime.Event) {
		n++
		frames := stacks.Frames(ev.PID, value(ev, "$ustack").Data, ev.Time)
		at := slices.IndexFunc(frames, func(f userstack.Frame) bool { return strings.HasSuffix(f.Symbol, "e2e.ustackInner") })
		require.GreaterOrEqual(t, at, 0, "%+v", frames)
		require.Greater(t, len(frames), at+2, "%+v", frames)
		require.True(t, strings.HasSuffix(frames[at+1].Symbol, "e2e.ustackOuter"), "%+v", frames)
		require.Contains(t, frames[at+2].Symbol, "e2e.testOwnUstack.func", "%+v", frames)
		for _, f := range frames[at : at+3] {
			require.Equal(t, self, f.File)
			require.NotZero(t, f.In)
		}
	})
	require.Equal(t, calls, n)
}

// readFrames stops the session and passes the frames of all events to show.
func (tr *tracer) readFrames(t *testing.T, stacks *userstack.Stacks, show func([]userstack.Frame)) {
	n := 0
	tr.events(t, func(ev *runtime.Event) {
		n++
		v := value(ev, "$ustack")
		require.Equal(t, compiler.NoFault, v.Fault, v.Reason())
		show(stacks.Frames(ev.PID, v.Data, ev.Time))
	})
	require.NotZero(t, n)
}

// testUstackOfGone reads the stack of a process that has ended: each frame has a build
// ID and an offset.
func testUstackOfGone(t *testing.T, k *kernel) {
	path := noted(t)
	program := readProgram(t, path)
	tr := k.trace(t, "", compiler.Options{}, `vfs_read($ustack) if count == 7302 && $comm == "traffic"`)
	require.NoError(t, exec.Command(path, "read", "-n", "3", "-size", "7302").Run())
	tr.readFrames(t, userstack.Running(), func(frames []userstack.Frame) {
		var names []string
		for _, f := range frames {
			require.Empty(t, f.File)
			require.Equal(t, program.id, f.BuildID)
			names = append(names, program.function(f.Offset))
		}
		requireInOrder(t, names, "e2e/traffic.(*options).repeat", "e2e/traffic.read", "e2e/traffic.Main")
	})
}

// noted returns a copy of the program traffic whose build ID the kernel finds: Go's
// linker has no program header for that note.
func noted(t *testing.T) string {
	from, err := exec.LookPath("traffic")
	require.NoError(t, err)
	f, err := elf.Open(from)
	require.NoError(t, err)
	defer f.Close()
	note := f.Section(".note.gnu.build-id")
	program, err := os.ReadFile(from)
	require.NoError(t, err)
	i := slices.IndexFunc(f.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_NOTE })
	header := program[64+56*i:]
	for at, v := range map[int]uint64{0x08: note.Offset, 0x10: note.Addr, 0x18: note.Addr, 0x20: note.Size, 0x28: note.Size} {
		binary.LittleEndian.PutUint64(header[at:], v)
	}
	path := t.TempDir() + "/traffic"
	require.NoError(t, os.WriteFile(path, program, 0o755))
	return path
}

// testUstackOfStripped reads the stack of a process whose file has no names: each
// frame has the file and an offset.
func testUstackOfStripped(t *testing.T, k *kernel) {
	path, err := exec.LookPath("traffic")
	require.NoError(t, err)
	program := readProgram(t, path)
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	for _, at := range []int{0x28, 0x3c, 0x3e} { // no sections: e_shoff, e_shnum, e_shstrndx
		size := 2
		if at == 0x28 {
			size = 8
		}
		clear(whole[at:][:size])
	}
	dir := t.TempDir()
	stripped := dir + "/traffic"
	require.NoError(t, os.WriteFile(stripped, whole, 0o755))
	tr := k.trace(t, "", compiler.Options{CountCalls: true}, `tp:sys_enter($ustack, $arg2 == `+strconv.Itoa(unix.SYS_FACCESSAT)+`) if $comm == "traffic"`)
	cmd := exec.Command(stripped, "read", "-n", "1", "-size", "7303", "-pid", dir+"/pid", "-wait", dir+"/never")
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		c := tr.counters(t)
		if c.Matched > 0 {
			break
		}
		require.True(t, time.Now().Before(deadline), "the process never waits")
	}
	tr.readFrames(t, userstack.Running(), func(frames []userstack.Frame) {
		var names []string
		for _, f := range frames {
			require.Empty(t, f.Symbol)
			require.Equal(t, stripped, f.File)
			names = append(names, program.function(f.Offset))
		}
		requireInOrder(t, names, "e2e/traffic.awaitFile", "e2e/traffic.(*options).start", "e2e/traffic.Main")
	})
}

// testNoUstack checks that a kernel thread has an empty stack. Maps are freed by one.
func testNoUstack(t *testing.T, k *kernel) {
	tr := k.trace(t, "", compiler.Options{}, "tp:workqueue_execute_start($ustack)")
	for range 50 {
		m, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 4, MaxEntries: 1})
		require.NoError(t, err)
		require.NoError(t, m.Close())
		time.Sleep(5 * time.Millisecond)
	}
	tr.readFrames(t, userstack.Running(), func(frames []userstack.Frame) { require.Empty(t, frames) })
}

// requireInOrder checks that there are names with the wanted endings, in this order.
// Others may be between them.
func requireInOrder(t *testing.T, names []string, want ...string) {
	rest := names
	for _, w := range want {
		i := slices.IndexFunc(rest, func(name string) bool { return strings.HasSuffix(name, w) })
		require.GreaterOrEqual(t, i, 0, "%s in %q", w, names)
		rest = rest[i+1:]
	}
}

// goProgram holds the parts of a Go program's file that a test needs.
type goProgram struct {
	id       string
	segments []*elf.Prog
	table    *gosym.Table
}

func readProgram(t *testing.T, path string) *goProgram {
	f, err := elf.Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { f.Close() })
	note, err := f.Section(".note.gnu.build-id").Data()
	require.NoError(t, err)
	lines, err := f.Section(".gopclntab").Data()
	require.NoError(t, err)
	table, err := gosym.NewTable(nil, gosym.NewLineTable(lines, f.Section(".text").Addr))
	require.NoError(t, err)
	require.Equal(t, uint32(20), binary.LittleEndian.Uint32(note[4:]))
	return &goProgram{hex.EncodeToString(note[16:36]), f.Progs, table}
}

// function returns the function whose call returns to an offset in the file.
func (p *goProgram) function(offset uint64) string {
	for _, s := range p.segments {
		if s.Type == elf.PT_LOAD && offset >= s.Off && offset-s.Off < s.Filesz {
			if f := p.table.PCToFunc(offset - 1 - s.Off + s.Vaddr); f != nil {
				return f.Name
			}
		}
	}
	return ""
}
