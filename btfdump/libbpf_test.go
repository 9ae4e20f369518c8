package btfdump

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"
)

// libbpf is a running process of testdata/libbpf/dump.c, which dumps values of the
// running kernel's types with libbpf.
type libbpf struct {
	spec    *btf.Spec
	version string
	in      io.Writer
	out     *bufio.Reader
}

// startLibbpf builds and starts the program. If the compiler or libbpf is missing,
// it skips the test, or fails it if CI=true: `make test` installs them.
func startLibbpf(t testing.TB) *libbpf {
	t.Helper()
	spec := kernelTypes(t)
	const source = "testdata/libbpf/dump.c"
	_, err := os.Stat(source) // go test's cache sees what the test looks at
	require.NoError(t, err)
	prog := filepath.Join(t.TempDir(), "dump")
	build := exec.Command("cc", "-O2", "-Wall", "-Werror", "-o", prog, source, "-lbpf")
	if out, err := build.CombinedOutput(); err != nil {
		lacking := errors.Is(err, exec.ErrNotFound) || strings.Contains(string(out), "bpf/btf.h: No such file")
		if lacking && os.Getenv("CI") != "true" {
			t.Skipf("needs cc and libbpf's headers (Debian: gcc, libbpf-dev): %v", err)
		}
		require.NoError(t, err, "%s", out)
	}

	cmd := exec.Command(prog, "/sys/kernel/btf/vmlinux")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		in.Close()
		require.NoError(t, cmd.Wait())
	})

	l := &libbpf{spec: spec, in: in, out: bufio.NewReaderSize(out, 1<<16)}
	l.version, err = l.out.ReadString('\n')
	require.NoError(t, err)
	l.version = strings.TrimSpace(l.version)
	return l
}

// ask sends a request and reads the reply. The two structs are those in dump.c.
func (l *libbpf) ask(t testing.TB, typ btf.Type, o Options, data []byte, repeat int) (text string, result int32) {
	t.Helper()
	id, err := l.spec.TypeID(typ)
	require.NoError(t, err)
	// libbpf 1.1 takes a bitfield for cut if its type reaches beyond the data.
	beyond := make([]byte, 16)
	b := le(uint32(id), libbpfOptions(o), uint32(o.IndentLevel), uint32(repeat), uint32(len(o.Indent)), uint32(len(data)+len(beyond)))
	b = append(append(append(b, o.Indent...), data...), beyond...)
	_, err = l.in.Write(b)
	require.NoError(t, err)

	var reply struct {
		Result int32
		Len    uint32
	}
	require.NoError(t, binary.Read(l.out, binary.LittleEndian, &reply))
	out := make([]byte, reply.Len)
	_, err = io.ReadFull(l.out, out)
	require.NoError(t, err)
	return string(out), reply.Result
}

func libbpfOptions(o Options) (bits uint32) {
	for i, set := range []bool{o.Compact, o.SkipNames, o.EmitZeroes} {
		if set {
			bits |= 1 << i
		}
	}
	return bits
}

// dump returns libbpf's text for a value. It fails the test if libbpf cannot print
// it.
func (l *libbpf) dump(t testing.TB, typ btf.Type, o Options, data []byte) string {
	t.Helper()
	text, result := l.ask(t, typ, o, data, 0)
	require.EqualValues(t, len(data), result, "libbpf's result for %v with %x:\n%s", typ, data, text)
	text = nullPointer.ReplaceAllString(text, "0x0")
	text = strings.ReplaceAll(text, ")()", ")(void)") // functions without parameters, before 1.2
	text = unnamedEnum.ReplaceAllString(text, "enum$1")
	return nameVersion.ReplaceAllString(text, "")
}

// nanoseconds returns the CPU time of one dump.
func (l *libbpf) nanoseconds(t testing.TB, typ btf.Type, o Options, data []byte, repeat int) float64 {
	t.Helper()
	text, result := l.ask(t, typ, o, data, repeat)
	require.EqualValues(t, len(data), result)
	ns, err := strconv.ParseFloat(text, 64)
	require.NoError(t, err)
	return ns
}

var (
	// nullPointer matches NULL as glibc prints it with %p, which libbpf uses for
	// aligned pointers.
	nullPointer = regexp.MustCompile(`\(nil\)`)
	// unnamedEnum matches an enum without a name, after which libbpf prints a
	// blank too many.
	unnamedEnum = regexp.MustCompile(`\benum ([ ()\[])`)
	// nameVersion is the suffix by which libbpf distinguishes types of the same
	// name, in the order of printing.
	nameVersion = regexp.MustCompile(`___[0-9]+\b`)
)
