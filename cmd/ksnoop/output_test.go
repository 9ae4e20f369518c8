package main

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

// An unknown format is refused before the kernel is looked at.
func TestOutputFormat(t *testing.T) {
	for format, want := range map[string]string{
		"jsn": "ksnoop: --output is \"jsn\": did you mean \"json\"? it must be text, compact or json\n",
		"xml": "ksnoop: --output is \"xml\": it must be text, compact or json\n",
		"":    "ksnoop: --output is \"\": it must be text, compact or json\n",
	} {
		var stdout, stderr bytes.Buffer
		status := run([]string{"ksnoop", "--output=" + format, "vfs_read"}, strings.NewReader(""), &stdout, &stderr)
		require.Equal(t, exitUsage, status)
		require.Equal(t, want, stderr.String())
		require.Empty(t, stdout.String())
	}
}

// Each format is what its name says.
func TestNewOutput(t *testing.T) {
	for _, format := range outputFormats {
		out, err := newOutput(format, dumpDefaults, &compiler.Unit{}, nil)
		require.NoError(t, err)
		out.begin()
		var text strings.Builder
		require.NoError(t, out.flush(&text))
		require.Zero(t, out.gathered())
		require.Contains(t, text.String(), map[string]string{
			"text": "PID FUNCTION/ARGS\n", "compact": "COMM             FUNCTION", "json": `{"type":"run","version":1,`,
		}[format])
	}
}

// commonEvents are an event of one number, and one of a record of 100 members.
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

// printing prints an event in a format, again and again.
func printing(tb testing.TB, format string, ev *runtime.Event) func() {
	out, err := newOutput(format, dumpDefaults, &compiler.Unit{}, nil)
	require.NoError(tb, err)
	return func() {
		if err := errors.Join(out.event(ev), out.flush(io.Discard)); err != nil {
			tb.Fatal(err)
		}
	}
}

// Nothing is allocated for an event once there was another like it.
func TestOutputAllocates(t *testing.T) {
	for name, ev := range commonEvents() {
		for _, format := range outputFormats {
			require.Zero(t, testing.AllocsPerRun(100, printing(t, format, ev)), "%s as %s", name, format)
		}
	}
}

func BenchmarkOutput(b *testing.B) {
	for name, ev := range commonEvents() {
		for _, format := range outputFormats {
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
