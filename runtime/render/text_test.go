package render

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/btfdump"
	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/kallsyms"
	"github.com/ksnoop/ksnoop/runtime"
)

// TestText covers the text of events of every shape, byte by byte.
func TestText(t *testing.T) {
	number := plain("n", intType)
	for _, tc := range []struct {
		name   string
		values []runtime.Value
		want   string
	}{
		{"none", nil, ""},
		{"number", []runtime.Value{{Value: number, Data: []byte{0xfe, 0xff, 0xff, 0xff}}}, `
                                   n = 
                                    (int)-2`},
		{"record", []runtime.Value{{Value: pointerTo("p", pairType), Addr: 0xffff8880, Data: []byte{1, 0, 0, 0, 2, 0, 0, 0}}}, `
                                   p = *(0xffff8880)
                                    (struct pair){
                                     .a = (int)1,
                                     .b = (int)2,
                                    }`},
		{"diff", diffs(), `
                                   diff(n) = 
                                    (int)1 -> 2,
                                   diff(x) = 
                                    (int)0x1 -> 0x2,
                                   diff(p) = 
                                    b = 2 -> 3,
                                   diff(q) = 
                                    /* no difference */
                                    ... /* 4 bytes of 8 */,
                                   diff(r) = 
                                     /* Cannot show 'r' as 'struct pair' at return: NULL pointer */,
                                   diff(s) = 
                                    /* no difference */`},
		{"string and number", []runtime.Value{
			{Value: pointerTo("s", charType), Addr: 0xffff8880, Data: []byte("a\x1b[31m\"")}, {Value: number, Data: make([]byte, 4)},
		}, `
                                   s = *(0xffff8880)
                                    (char *)"a\033[31m\"",
                                   n = 
                                    (int)0`},
		{"cut string", []runtime.Value{{Value: pointerTo("s", charType), Addr: 1, Data: []byte("abc"), Cut: true}}, `
                                   s = *(0x1)
                                    (char *)"abc"
                                    ... /* 3 bytes of a longer string */`},
		{"cut record", []runtime.Value{{Value: pointerTo("p", pairType), Addr: 1, Data: []byte{1, 0, 0, 0}, Full: 8, Cut: true}}, `
                                   p = *(0x1)
                                    (struct pair){
                                     .a = (int)1,
                                     /* 4 bytes cut */
                                    }
                                    ... /* 4 bytes of 8 */`},
		{"stack", []runtime.Value{{Value: kstack, Data: words(0xffffffff81000005, 0xffffffff81000200, 0xffffffffc0000010, 0xffff)}}, `
                                   $kstack = 
                                    vfs_read+0x5
                                    exit_now+0x100
                                    dummy_xmit+0x10 [dummy]
                                    0xffff`},
		{"user stack", []runtime.Value{{Value: ustack, Data: userFrames}}, `
                                   $ustack = 
                                    build id 0a00000000000000+0x1234
                                    0x7f00`},
		{"duration", []runtime.Value{{Value: duration, Data: words(1234567)}}, `
                                   $duration = 
                                    (u64)1234567 /* 1.234567ms */`},
		{"format", []runtime.Value{{Value: formatted("n", intType, "x"), Data: []byte{0x1f, 0, 0, 0}}, {Value: number, Data: make([]byte, 4)}}, `
                                   n = 
                                    (int)0x1f,
                                   n = 
                                    (int)0`},
		{"unreadable pointee", []runtime.Value{{Value: pointerTo("p", pairType), Fault: compiler.PointeeFault}}, `
                                   p = *(0x0)
                                     /* Cannot show 'p' as 'struct pair *': NULL pointer */`},
		{"unreadable value", []runtime.Value{{Value: number, Fault: compiler.ValueFault, Addr: 0x1234}}, `
                                   n = 
                                     /* Cannot show 'n' as 'int': 0x1234 is a user-space address */`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := newPrinter(Options{Values: dumpDefaults, Symbols: symbolsOf(namedSymbols)}, &compiler.Unit{})
			require.NoError(t, p.Event(newEvent(compiler.EntryEvent, tc.values...)))
			want := "       123456789    2       77 f(" + tc.want + "\n                               );\n\n"
			require.Equal(t, want, string(p.text))
		})
	}
}

// TestZeroOptions verifies that the zero value of Options prints as the command does, but
// for text in arrays of char.
func TestZeroOptions(t *testing.T) {
	out, err := New(&compiler.Unit{}, Options{})
	require.NoError(t, err)
	record := runtime.Value{Value: pointerTo("p", pairType), Addr: 0xffff8880, Data: []byte{1, 0, 0, 0, 2, 0, 0, 0}}
	require.NoError(t, out.Event(newEvent(compiler.EntryEvent, record)))
	var text strings.Builder
	require.NoError(t, out.Flush(&text))
	require.Equal(t, `            TIME  CPU      PID FUNCTION/ARGS
       123456789    2       77 f(
                                   p = *(0xffff8880)
                                    (struct pair){
                                     .a = (int)1,
                                     .b = (int)2,
                                    }
                               );

`, text.String())
}

func TestHeaderText(t *testing.T) {
	p := newPrinter(Options{Values: dumpDefaults}, &compiler.Unit{})
	p.begin()
	require.Equal(t, "            TIME  CPU      PID FUNCTION/ARGS\n", string(p.text))
}

// words returns numbers of 8 bytes as in memory.
func words(numbers ...uint64) []byte {
	var data []byte
	for _, n := range numbers {
		data = binary.LittleEndian.AppendUint64(data, n)
	}
	return data
}

const namedSymbols = `ffffffff81000000 T vfs_read
ffffffff81000100 T exit_now
ffffffff81000200 T next_to_it
ffffffff81000300 T last
ffffffffc0000000 t dummy_xmit	[dummy]
ffffffffc0000100 t dummy_free	[dummy]
`

func symbolsOf(text string) *Symbols {
	return NewSymbols(func() (kallsyms.Finder, error) {
		table, err := kallsyms.Read(strings.NewReader(text), nil)
		if err != nil {
			return nil, err
		}
		return table.Finder()
	}, func(error) {})
}

func namesOf(text string) *names { return &names{symbols: symbolsOf(text)} }

// TestHiddenSymbols verifies that the reason is reported once if there are no
// addresses.
func TestHiddenSymbols(t *testing.T) {
	var said []string
	s := symbolsOf("0000000000000000 T vfs_read\n")
	s.warn = func(err error) { said = append(said, err.Error()) }
	require.Empty(t, s.at(0xffffffff81000005))
	require.Empty(t, s.caller(0xffffffff81000005))
	require.Equal(t, []string{"addresses are shown without names: " + kallsyms.ErrHidden.Error()}, said)
}

// TestNames verifies that a tracepoint is named as in a spec, and that in a chain
// deeper calls are indented further.
func TestNames(t *testing.T) {
	p := newPrinter(Options{Values: btfdump.Options{}}, &compiler.Unit{})
	tracepoint := &compiler.Probe{Func: &compiler.Function{Name: "tick", Tracepoint: true}}
	inner := &compiler.Probe{Func: &compiler.Function{Name: "inner"}, Chain: &compiler.Chain{Level: 2}}
	for probe, want := range map[*compiler.Probe]string{
		tracepoint: "               0    0        0 tp:tick(\n                               );\n\n",
		inner:      "               0    0        0     inner(\n                               );\n\n",
	} {
		p.text = nil
		require.NoError(t, p.Event(&runtime.Event{EventType: &compiler.EventType{Probe: probe}}))
		require.Equal(t, want, string(p.text))
	}
}

// TestHostileSymbols covers symbols of a module with any name.
func TestHostileSymbols(t *testing.T) {
	s := symbolsOf("ffffffffc0000000 t evil\x9b2J\u202e\u009b\x7f\t[mod\u009b\xff]\n")
	require.Equal(t, "evil?2J???+0x5 [mod??]", s.at(0xffffffffc0000005))
}
