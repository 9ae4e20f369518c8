package render

import (
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/runtime"
)

// TestCompact covers the lines of events of every shape, byte by byte.
func TestCompact(t *testing.T) {
	number := plain("n", intType)
	result := plain("return", intType)
	for _, tc := range []struct {
		name   string
		kind   compiler.EventKind
		values []runtime.Value
		want   string
	}{
		{"none", compiler.EntryEvent, nil, "-> f()"},
		{"entry", compiler.EntryEvent, []runtime.Value{{Value: number, Data: []byte{0xfe, 0xff, 0xff, 0xff}}, {Value: plain("colour", colour), Data: []byte{1, 0, 0, 0}}},
			"-> f(n=-2, colour=BLUE)"},
		{"return", compiler.ReturnEvent, []runtime.Value{{Value: result, Data: []byte{1, 0, 0, 0}}}, "<- f() = 1"},
		{"call", compiler.CallEvent, []runtime.Value{{Value: number, Data: make([]byte, 4)}, {Value: result, Data: []byte{1, 0, 0, 0}}, {Value: duration, Data: words(1500)}},
			"<> f(n=0, $duration=1500 /* 1.5µs */) = 1"},
		{"return twice", compiler.ReturnEvent, []runtime.Value{{Value: result, Data: []byte{1, 0, 0, 0}}, {Value: formatted("return", intType, "x"), Data: []byte{1, 0, 0, 0}}},
			"<- f(return=0x1) = 1"},
		{"record", compiler.EntryEvent, []runtime.Value{{Value: pointerTo("p", pairType), Addr: 0xffff8880, Data: []byte{1, 0, 0, 0, 2, 0, 0, 0}}},
			"-> f(p=*(0xffff8880){.a = (int)1,.b = (int)2,})"},
		{"cut record", compiler.EntryEvent, []runtime.Value{{Value: pointerTo("p", pairType), Addr: 1, Data: []byte{1, 0, 0, 0}, Full: 8, Cut: true}},
			"-> f(p=*(0x1){.a = (int)1,/* 4 bytes cut */} /* 4 bytes of 8 */)"},
		{"string", compiler.EntryEvent, []runtime.Value{{Value: pointerTo("s", charType), Addr: 1, Data: []byte("a\n\x1b[31m\"\xff")}},
			`-> f(s="a\n\033[31m\"\377")`},
		{"cut string", compiler.EntryEvent, []runtime.Value{{Value: pointerTo("s", charType), Addr: 1, Data: []byte("abc"), Cut: true}},
			`-> f(s="abc" /* 3 bytes of a longer string */)`},
		{"array", compiler.EntryEvent, []runtime.Value{{Value: plain("s", &btf.Array{Type: charType, Nelems: 8}), Data: []byte("eth0\x00\x00\x00\x00")}},
			`-> f(s="eth0")`},
		{"formats", compiler.EntryEvent, []runtime.Value{{Value: formatted("n", intType, "x"), Data: []byte{0x1f, 0, 0, 0}}, {Value: formatted("c", intType, "c"), Data: []byte{10, 0, 0, 0}}, {Value: formatted("a", bytes4, "ip4"), Data: []byte{127, 0, 0, 1}}},
			`-> f(n=0x1f, c='\n', a=127.0.0.1)`},
		{"stack", compiler.EntryEvent, []runtime.Value{{Value: kstack, Data: words(0xffffffff81000005, 0xffffffff81000200, 0xffff)}},
			"-> f($kstack=[vfs_read+0x5, exit_now+0x100, 0xffff])"},
		{"user stack", compiler.EntryEvent, []runtime.Value{{Value: ustack, Data: userFrames}, {Value: ustack}},
			"-> f($ustack=[build id 0a00000000000000+0x1234, 0x7f00], $ustack=[])"},
		{"diff", compiler.CallEvent, diffs(), "<> f(diff(n)=1 -> 2, diff(x)=0x1 -> 0x2, diff(p)={b=2 -> 3}, diff(q)=/* no difference */ /* 4 bytes of 8 */, diff(r)=/* NULL pointer at return */, diff(s)=/* no difference */)"},
		{"unreadable pointee", compiler.EntryEvent, []runtime.Value{{Value: pointerTo("p", pairType), Fault: compiler.PointeeFault}},
			"-> f(p=*(0x0) /* NULL pointer */)"},
		{"unreadable value", compiler.ReturnEvent, []runtime.Value{{Value: result, Fault: compiler.ValueFault, Addr: 0x1234}},
			"<- f() = /* 0x1234 is a user-space address */"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := newCompact(Options{Values: dumpDefaults, Symbols: symbolsOf(namedSymbols)})
			require.NoError(t, p.Event(newEvent(tc.kind, tc.values...)))
			require.Equal(t, "       123456789    2       77 cat              "+tc.want+"\n", string(p.text))
		})
	}
}

// TestCompactNames verifies that in a chain, a call is indented further than its
// caller; that a tracepoint is named as in a spec; and that the name of a thread may
// be anything.
func TestCompactNames(t *testing.T) {
	p := newCompact(Options{Values: dumpDefaults})
	p.begin(&compiler.Unit{})
	ev := newEvent(compiler.EntryEvent)
	ev.Probe.Chain = &compiler.Chain{Level: 2}
	ev.Comm = []byte("\x1b[2J\n")
	require.NoError(t, p.Event(ev))
	ev = newEvent(compiler.EntryEvent)
	ev.Probe.Func.Tracepoint = true
	ev.Comm = []byte("фоновый поток 1")
	require.NoError(t, p.Event(ev))
	ev.Comm = []byte("漢字 あ")
	require.NoError(t, p.Event(ev))
	require.Equal(t, `            TIME  CPU      PID COMM             FUNCTION(ARGS) = RETURN
       123456789    2       77 \033[2J\n        ->     f()
       123456789    2       77 фоновый поток 1  -> tp:f()
       123456789    2       77 漢字 あ          -> tp:f()
`, string(p.text))
}
