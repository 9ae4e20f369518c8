package render

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/runtime"
)

// TestNewOutput verifies the output of each format.
func TestNewOutput(t *testing.T) {
	for _, format := range Formats {
		out, err := New(&compiler.Unit{}, Options{Format: format, Values: dumpDefaults})
		require.NoError(t, err)
		var text strings.Builder
		require.NoError(t, out.Flush(&text))
		require.Zero(t, out.Gathered())
		require.Contains(t, text.String(), map[string]string{
			"text": "PID FUNCTION/ARGS\n", "compact": "COMM             FUNCTION", "json": `{"type":"run","version":1,`,
		}[format])
	}
}

// commonEvents returns an event of one number, and one of a structure of 100 members.
func commonEvents() map[string]*runtime.Event {
	large := &btf.Struct{Name: "large", Size: 800}
	for i := range 100 {
		large.Members = append(large.Members, btf.Member{Name: "member" + strconv.Itoa(i), Type: longType, Offset: btf.Bits(64 * i)})
	}
	return map[string]*runtime.Event{
		"scalar": newEvent(compiler.EntryEvent, runtime.Value{Value: plain("count", longType), Data: words(4321)}),
		"record": newEvent(compiler.EntryEvent, runtime.Value{Value: pointerTo("p", large), Addr: 0xffff8880, Data: bytes.Repeat([]byte{1, 2, 0, 0}, 200)}),
	}
}

// printing returns a function that prints an event in a format.
func printing(tb testing.TB, format string, ev *runtime.Event) func() {
	out, err := New(&compiler.Unit{}, Options{Format: format, Values: dumpDefaults})
	require.NoError(tb, err)
	return func() {
		if err := errors.Join(out.Event(ev), out.Flush(io.Discard)); err != nil {
			tb.Fatal(err)
		}
	}
}

// TestOutputAllocates verifies that the second event of a type allocates nothing.
func TestOutputAllocates(t *testing.T) {
	for name, ev := range commonEvents() {
		for _, format := range Formats {
			require.Zero(t, testing.AllocsPerRun(100, printing(t, format, ev)), "%s as %s", name, format)
		}
	}
}

func BenchmarkOutput(b *testing.B) {
	for name, ev := range commonEvents() {
		for _, format := range Formats {
			b.Run(name+"/"+format, func(b *testing.B) {
				print := printing(b, format, ev)
				b.ReportAllocs()
				for b.Loop() {
					print()
				}
			})
		}
	}
}
