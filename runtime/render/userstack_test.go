package render

import (
	"bytes"
	"strings"
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/runtime"
	"github.com/ksnoop/ksnoop/runtime/userstack"
)

// frameAt returns a stack of one frame at an address.
func frameAt(addr uint64) []byte { return words(2, 0, 0, addr) }

// stacksOf returns the stacks of processes 7 and 77, whose frames have names.
func stacksOf() *userstack.Stacks {
	stacks, named := userstack.New(""), new(userstack.Named)
	for pid, name := range map[uint32]string{7: "began", 77: "ended"} {
		for _, addr := range []uint64{0x10, 0x20} {
			named.Add(userstack.Key{PID: pid, Raw: [userstack.FrameSize]byte(frameAt(addr))}, userstack.Frame{Symbol: name, File: "/bin/x"})
		}
	}
	stacks.Named = named
	return stacks
}

// TestStackOfBeginning verifies that a stack at the beginning of a span is that of the
// process that began it.
func TestStackOfBeginning(t *testing.T) {
	for _, format := range TraceFormats {
		ev := newEvent(compiler.SpanEvent, runtime.Value{Value: ustack, Data: frameAt(0x10)}, runtime.Value{Value: ustack, Data: frameAt(0x10)})
		ev.Probe.Span = &compiler.Span{Begin: &compiler.Probe{Func: &compiler.Function{Name: "open"}, Entry: []*compiler.Value{ustack}}}
		ev.Begin = runtime.Begin{PID: 7, TID: 7, Comm: []byte("nc")}
		p, err := New(&compiler.Unit{Events: []*compiler.EventType{ev.EventType}}, Options{Format: format, Stacks: stacksOf()})
		require.NoError(t, err)
		require.NoError(t, p.Event(ev))
		var text strings.Builder
		require.NoError(t, p.Flush(&text))
		require.Equal(t, 1, strings.Count(text.String(), "began"), "%s: %s", format, &text)
		require.Equal(t, 1, strings.Count(text.String(), "ended"), "%s: %s", format, &text)
		require.Less(t, strings.Index(text.String(), "began"), strings.Index(text.String(), "ended"), format)
	}
}

// TestStackBefore verifies that the earlier stack in an object's line is that of the
// process at that time.
func TestStackBefore(t *testing.T) {
	for _, format := range Formats {
		stack := *ustack
		stack.Type = &btf.Array{Type: &btf.Struct{Name: "bpf_stack_build_id", Size: 32}, Nelems: 1}
		unit, event := followEvents()
		p, err := New(unit, Options{Format: format, Stacks: stacksOf()})
		require.NoError(t, err)
		var text strings.Builder
		for i, pid := range []uint32{7, 77} {
			ev := event(i, 1, 1000, 5)
			ev.PID, ev.Values = pid, []runtime.Value{{Value: &stack, Data: frameAt(uint64(0x10 * (i + 1)))}}
			require.NoError(t, p.Event(ev))
			text.Reset()
			require.NoError(t, p.Flush(&text))
		}
		require.Equal(t, 1, strings.Count(text.String(), "began"), "%s: %s", format, &text)
		require.Equal(t, 1, strings.Count(text.String(), "ended"), "%s: %s", format, &text)
	}
}

// TestStackOfOther verifies that addresses are a change where they are those of another
// process, and places in files are not.
func TestStackOfOther(t *testing.T) {
	inFile := words(1, 0, 0, 0x10)
	for _, tc := range []struct {
		data  []byte
		pids  []uint32
		lines int // that show the stack
	}{
		{frameAt(0x10), []uint32{7, 7}, 1},
		{frameAt(0x10), []uint32{7, 77}, 2},
		{append(bytes.Clone(inFile), frameAt(0x10)...), []uint32{7, 77}, 2},
		{inFile, []uint32{7, 77}, 1},
	} {
		unit, event := followEvents()
		p, err := New(unit, Options{Format: "json", Stacks: stacksOf()})
		require.NoError(t, err)
		for i, pid := range tc.pids {
			ev := event(i, 1, 1000, 5)
			ev.PID, ev.Values = pid, []runtime.Value{{Value: ustack, Data: tc.data}}
			require.NoError(t, p.Event(ev))
		}
		var text strings.Builder
		require.NoError(t, p.Flush(&text))
		require.Equal(t, tc.lines, strings.Count(text.String(), `"values":{"$ustack":`), "%v: %s", tc, &text)
	}
}
