package render

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec/kprobe"
	"github.com/ksnoop/ksnoop/runtime"
)

// eventOf returns an event of a kprobe_events line, whose arguments have these
// values.
func eventOf(t testing.TB, line string, values ...runtime.Value) *runtime.Event {
	trace, err := kprobe.Parse(line)
	require.NoError(t, err)
	names := trace.ItemNames()
	for i := range values {
		if last := len(names) - 1; trace.Items[min(i, last)].Type != nil && i >= last && len(values) > len(names) { // strings of an array
			values[i].Value.Name = fmt.Sprintf("%s[%d]", names[last], i-last)
			continue
		}
		values[i].Value.Name = names[i]
	}
	ev := newEvent(compiler.EntryEvent, values...)
	ev.Probe.Trace = trace
	ev.Probe.Offset = trace.Line.Offset
	ev.Probe.Func.Name, ev.Probe.Func.Symbol = trace.Func.Name, trace.Func.Name
	ev.Probe.Func.Module = trace.Module.Name
	return ev
}

func value(format string, data ...byte) runtime.Value {
	return runtime.Value{Value: &compiler.Value{Type: u64Type, Format: format}, Data: data, Full: len(data)}
}

func text(s string) runtime.Value {
	return runtime.Value{Value: &compiler.Value{Type: &btf.Pointer{Target: charType}, Pointee: charType, Text: compiler.KernelText}, Data: []byte(s)}
}

func unreadable(v runtime.Value) runtime.Value {
	v.Fault = compiler.ValueFault
	return v
}

func cut(v runtime.Value) runtime.Value {
	v.Cut = true
	return v
}

// TestFtrace covers the lines of events of every shape, byte by byte.
func TestFtrace(t *testing.T) {
	ff := []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	symbol := words(0xffffffff81000105)
	constant := runtime.Value{Value: &compiler.Value{Type: &btf.Array{Type: charType, Nelems: 6}, Base: compiler.Base{Const: []byte("ab\"cd\x00")}}, Data: []byte("ab\"cd\x00")}
	for _, tc := range []struct {
		line   string
		values []runtime.Value
		want   string
	}{
		{"p vfs_read", nil, "p_vfs_read_0: (vfs_read+0x0/0x100)"},
		{"p:g/mine vfs_read+16", nil, "mine: (vfs_read+0x10/0x100)"},
		{"p:m dummy:dummy_xmit", nil, "m: (dummy_xmit+0x0/0x100 [dummy])"},
		{"p:last last", nil, "last: (last+0x0)"},
		{"p:x no_symbol", nil, "x: (no_symbol+0x0)"},
		{"r:ret vfs_read", nil, "ret: (<- vfs_read)"},
		{"f vfs_read%return", nil, "vfs_read__exit: (<- vfs_read)"},
		{"p:n f $arg1:u8 $arg2:s8 $arg3:x8 a=$arg4:s64 $arg5:u64 $arg6:x64", []runtime.Value{
			value("u8", 255), value("s8", 255), value("x8", 255), value("s64", ff...), value("u64", ff...), value("x64", ff...)},
			"n: (f+0x0) arg1=255 arg2=-1 arg3=0xff a=-1 arg5=18446744073709551615 arg6=0xffffffffffffffff"},
		{"p:n f $arg1:u16 $arg2:s16 $arg3:x16 $arg4:u32 $arg5:s32 $arg6:x32", []runtime.Value{
			value("u16", 1, 1), value("s16", 0, 128), value("x16", 1, 1), value("u32", 0, 0, 0, 128), value("s32", 0, 0, 0, 128), value("x32", 0, 0, 0, 128)},
			"n: (f+0x0) arg1=257 arg2=-32768 arg3=0x101 arg4=2147483648 arg5=-2147483648 arg6=0x80000000"},
		{"p:bits f $arg1:b4@2/8 $arg2:char $arg3:char", []runtime.Value{value("u", 9), value("c", 'x'), value("c", '\n')},
			`bits: (f+0x0) arg1=9 arg2='x' arg3='\n'`},
		{"p:btf f count file", []runtime.Value{value("s32", 0xfe, 0xff, 0xff, 0xff), value("x64", words(0xffff8880)...)},
			"btf: (f+0x0) count=-2 file=0xffff8880"},
		{"p:sym f $arg1:symbol $arg2:symstr $arg3:symbol $arg4:symbol", []runtime.Value{
			value("symbol", symbol...), value("symbol", symbol...), value("symbol", words(0xffffffffc0000010)...), value("symbol", words(0x1234)...)},
			`sym: (f+0x0) arg1=exit_now+0x5/0x100 arg2="exit_now+0x5/0x100" arg3=dummy_xmit+0x10/0x100 [dummy] arg4=0x1234`},
		{"p:text f a=+0($arg1):string b=+0($arg2):ustring c=$arg3:%pd d=$arg4:%pD $comm", []runtime.Value{
			text("eth0"), text("a\"\n\x1b[2J"), text(""), text("zero"), {Value: builtin("", commItem.Type, compiler.Comm), Data: []byte("cat\x00\x00")}},
			`text: (f+0x0) a="eth0" b="a\"\n\033[2J" c="" d="zero" arg5="cat"`},
		{`p:imm f \5 t=\"ab"`, []runtime.Value{value("x64", words(5)...), constant}, `imm: (f+0x0) arg1=0x5 t="ab\"cd"`},
		{"p:arr f a=+0($arg1):u8[3] b=+0($arg2):s16[2] c=+0($arg3):symbol[1] d=+0($arg4):char[2] e=+0($arg5):x32[4]", []runtime.Value{
			value("u8", 1, 2, 3), value("s16", 255, 255, 1, 0), value("symbol", symbol...), value("char", 'a', 0),
			cut(runtime.Value{Value: &compiler.Value{Type: u64Type}, Data: []byte{1, 0, 0, 0, 2, 0, 0, 0}, Full: 16})},
			`arr: (f+0x0) a={1,2,3} b={-1,1} c={exit_now+0x5/0x100} d={'a','\0'} e={0x1,0x2,...}`},
		{"p:arr f a=+0($arg1):b3@1/16[3] s=+0($arg2):string[3]", []runtime.Value{
			value("u", 0xff, 0xff, 6, 0, 1, 0), text("ls"), unreadable(text("")), cut(text("-")),
		}, `arr: (f+0x0) a={7,3,0} s={"ls",(fault),"-"...}`},
		{"r:ret f rv ra:symbol", []runtime.Value{value("x64", words(5)...), value("symbol", symbol...)},
			"ret: (exit_now+0x5/0x100 <- f) rv=0x5 ra=exit_now+0x5/0x100"},
		{"r:ret f ra", []runtime.Value{unreadable(value("x64"))}, "ret: (<- f) ra=(fault)"},
		{"p:fault f a=+0($arg1):string b=+0($arg2):u8[3] c=+0($arg3) d=+0($arg4):string", []runtime.Value{
			unreadable(text("")), unreadable(value("u8")), unreadable(value("x64")), cut(text("long"))},
			`fault: (f+0x0) a=(fault) b=(fault) c=(fault) d="long"...`},
	} {
		t.Run(tc.line, func(t *testing.T) {
			p := newPrinter(Options{Values: dumpDefaults, Symbols: symbolsOf(namedSymbols)}, &compiler.Unit{})
			require.NoError(t, p.Event(eventOf(t, tc.line, tc.values...)))
			require.Equal(t, "             cat-78      [002]      0.123456: "+tc.want+"\n", string(p.text))
		})
	}
}

// TestFtraceOrder verifies that arguments are in the order of the line, on either
// side of the call; and that without symbols no size is printed.
func TestFtraceOrder(t *testing.T) {
	ev := eventOf(t, "r:ret f $retval:s32 $arg1:u8", value("s32", 0xff, 0xff, 0xff, 0xff), value("u8", 7))
	ev.Values[0], ev.Values[1] = ev.Values[1], ev.Values[0]
	ev.Items[0], ev.Items[1] = ev.Items[1], ev.Items[0]
	p := newPrinter(Options{Values: dumpDefaults, Symbols: symbolsOf("")}, &compiler.Unit{})
	require.NoError(t, p.Event(ev))
	require.Contains(t, string(p.text), ": ret: (<- f) arg1=-1 arg2=7\n")
	p.text = nil
	require.NoError(t, p.Event(eventOf(t, "p:a vfs_read+5 %di:symbol", value("symbol", words(0xffff1234)...))))
	require.Contains(t, string(p.text), ": a: (vfs_read+0x5) arg1=0xffff1234\n")
}

// TestFtraceColumns verifies that the columns are those of the kernel for any name
// of a thread.
func TestFtraceColumns(t *testing.T) {
	for _, tc := range []struct {
		comm      string
		tid, cpu  int
		time      time.Duration
		wantFirst string
	}{
		{"cat", 1, 0, 0, "             cat-1       [000]      0.000000: e: (f+0x0)\n"},
		{"a long name 1234", 4194304, 1023, 1234567_890123_999, "a long name 1234-4194304 [1023] 1234567.890123: e: (f+0x0)\n"},
		{"\x1b[2J\n", 12, 7, 999_999, "       \\033[2J\\n-12      [007]      0.000999: e: (f+0x0)\n"},
		{"фоновый", 12, 12, 1e9, "         фоновый-12      [012]      1.000000: e: (f+0x0)\n"},
	} {
		ev := eventOf(t, "p:e f")
		ev.Comm, ev.TID, ev.CPU = []byte(tc.comm), uint32(tc.tid), tc.cpu
		ev.Time = tc.time
		p := newPrinter(Options{Values: dumpDefaults, Symbols: symbolsOf("")}, &compiler.Unit{})
		require.NoError(t, p.Event(ev))
		require.Equal(t, tc.wantFirst, string(p.text))
	}
}

// TestHeaders verifies that each style has its header, and only if there are events
// of it.
func TestHeaders(t *testing.T) {
	line, call := eventOf(t, "p f").EventType, newEvent(compiler.EntryEvent).EventType
	const classic = "            TIME  CPU      PID FUNCTION/ARGS\n"
	require.Equal(t, ftraceHeader, headers(&compiler.Unit{Events: []*compiler.EventType{line}}))
	require.Equal(t, classic, headers(&compiler.Unit{Events: []*compiler.EventType{call}}))
	require.Equal(t, classic+ftraceHeader, headers(&compiler.Unit{Events: []*compiler.EventType{line, call}}))
}

// TestFtraceAllocates verifies that the second event of a type allocates nothing,
// unless it names a symbol.
func TestFtraceAllocates(t *testing.T) {
	ev := eventOf(t, "p:e f n=$arg1:u64 x=$arg2:x32 s=+0($arg3):string a=+0($arg4):u8[3] c=$arg5:char $comm",
		value("u64", words(4321)...), value("x32", 1, 2, 3, 4), text("eth0"), value("u8", 1, 2, 3), value("c", 'x'),
		runtime.Value{Value: builtin("", commItem.Type, compiler.Comm), Data: []byte("cat\x00")})
	p := newPrinter(Options{Values: dumpDefaults, Symbols: symbolsOf(namedSymbols)}, &compiler.Unit{})
	require.Zero(t, testing.AllocsPerRun(100, func() {
		p.text = p.text[:0]
		_ = p.Event(ev)
	}))
}

// TestFtraceOfSpecs covers the lines of a spec's events in the format ftrace: all kinds
// of events and of values.
func TestFtraceOfSpecs(t *testing.T) {
	point := &btf.Struct{Name: "point", Size: 8, Members: []btf.Member{{Name: "x", Type: intType}, {Name: "y", Type: intType, Offset: 32}}}
	number := func(name string, n byte) runtime.Value {
		return runtime.Value{Value: &compiler.Value{Name: name, Type: intType}, Data: []byte{n, 0, 0, 0}, Full: 4}
	}
	record := runtime.Value{Value: &compiler.Value{Name: "p", Type: &btf.Pointer{Target: point}, Pointee: point}, Addr: 0xffff8880, Data: []byte{1, 0, 0, 0, 2, 0, 0, 0}, Full: 8}
	name := text("eth0")
	name.Value.Name = "dev->name"
	secret := number("secret", 1)
	secret.Value = &compiler.Value{Name: "secret", Type: intType, Hidden: true}
	changed, was := number("n", 2), number("n", 1)
	changed.Format, was.Format, changed.Was = "d", "d", &was
	span := newEvent(compiler.SpanEvent, number("n", 1))
	span.Probe.Span = &compiler.Span{Begin: &compiler.Probe{Func: &compiler.Function{Name: "open"}}}
	tracepoint := newEvent(compiler.EntryEvent, number("n", 1))
	tracepoint.Probe.Func.Tracepoint = true
	objects := newEvent(compiler.RowEvent, number("n", 1))
	objects.Probe.Func.Iterator = true
	module := newEvent(compiler.EntryEvent)
	module.Probe.Func.Module = "mod"
	for _, tc := range []struct {
		ev   *runtime.Event
		want string
	}{
		{newEvent(compiler.EntryEvent, number("n", 5), record, name, secret), `f__entry: (f+0x0) n=5 p=*(0xffff8880){.x = (int)1,.y = (int)2,} dev->name="eth0"`},
		{newEvent(compiler.ReturnEvent, number("return", 5)), "f__exit: (<- f) return=5"},
		{newEvent(compiler.CallEvent, number("n", 5), number("return", 6)), "f: (<- f) n=5 return=6"},
		{newEvent(compiler.EntryEvent, unreadable(number("n", 5)), cut(record)), "f__entry: (f+0x0) n=(fault) p=*(0xffff8880){.x = (int)1,.y = (int)2,}..."},
		{newEvent(compiler.CallEvent, changed), "f: (<- f) n=1 -> 2"},
		{module, "f__entry: (f+0x0 [mod])"},
		{tracepoint, "f: (tp:f) n=1"},
		{objects, "f: (iter:f) n=1"},
		{span, "f__span: (open => f) n=1"},
	} {
		fn := tc.ev.Probe.Func
		fn.Symbol = fn.Name
		out, err := New(&compiler.Unit{Events: []*compiler.EventType{tc.ev.EventType}}, Options{Format: "ftrace", Values: dumpDefaults, Look: Look{NoHeader: true}})
		require.NoError(t, err)
		require.NoError(t, out.Event(tc.ev))
		var text strings.Builder
		require.NoError(t, out.Flush(&text))
		require.Equal(t, "             cat-78      [002]      0.123456: "+tc.want+"\n", text.String())
	}
}

// TestFtraceComments verifies that in the format ftrace, whatever is not an event is a
// comment, and that nothing that is followed has this format.
func TestFtraceComments(t *testing.T) {
	n := func(n uint64) *uint64 { return &n }
	out, err := New(&compiler.Unit{}, Options{Format: "ftrace", Values: dumpDefaults})
	require.NoError(t, err)
	lost := ProbeSummary{ProbeName{Func: "f", Kind: "entry"}, Counts{Lost: n(3), NoRoom: n(0), Missed: n(2)}}
	out.Loss(Loss{Time: 123456789, ProbeSummary: lost})
	shared := []SharedMissed{{"kprobe.multi", []string{"g", "h"}, 7}}
	out.Loss(Loss{Time: 2e9, Shared: shared})
	out.Again()
	out.End(Summary{Probes: []ProbeSummary{lost, {ProbeName{Func: "g", Kind: "call"}, Counts{Lost: n(0)}}}, Shared: shared})
	var text strings.Builder
	require.NoError(t, out.Flush(&text))
	require.Equal(t, ftraceHeader+`# 0.123456: f (entry): 3 lost 2 missed
# 2.000000: the 2 functions by kprobe.multi that begin with g missed 7 in all
#
# end: f (entry): 3 lost 2 missed
# end: the 2 functions by kprobe.multi that begin with g missed 7 in all
`, text.String())
	ev := newEvent(compiler.WriteEvent)
	_, err = New(&compiler.Unit{Events: []*compiler.EventType{ev.EventType}}, Options{Format: "ftrace"})
	require.EqualError(t, err, `events cannot be shown as "ftrace"`)
}

// FuzzFtrace verifies that an event is one line that is safe to show and can be
// parsed, for any bytes of its values and any name of its thread.
func FuzzFtrace(f *testing.F) {
	whole := regexp.MustCompile(`^ *(?:[^\n]*)-\d+ +\[\d{3,}\] +\d+\.\d{6}: e: \(f\+0x0\)( a\d=([^\n]*))*\n$`)
	types := strings.Fields("u8 s16 x32 u64 char symbol symstr b3@1/8 u8[3] char[5] symbol[2] s64[2]")
	f.Add([]byte("\n\x1b[2J\"\\ a1=\xff\x9b"), []byte("comm\n\x00"), uint64(1))
	f.Add([]byte("plain"), []byte("cat"), uint64(2))
	f.Fuzz(func(t *testing.T, data, comm []byte, seed uint64) {
		random := rand.New(rand.NewPCG(seed, 0))
		line, values := "p:e f", []runtime.Value(nil)
		for i := range 4 {
			name := " a" + string(rune('0'+i)) + "=+0($arg1):"
			if i == 0 {
				line += name + "string"
				values = append(values, text(string(data)))
				continue
			}
			typ := types[random.IntN(len(types))]
			line += name + typ
			v := value("", data...)
			v.Cut, v.Fault = random.IntN(3) == 0, compiler.Fault(random.IntN(2)*random.IntN(2))
			values = append(values, v)
		}
		ev := eventOf(t, line, values...)
		ev.Comm = comm
		p := newPrinter(Options{Values: dumpDefaults, Symbols: symbolsOf(namedSymbols)}, &compiler.Unit{})
		require.NoError(t, p.Event(ev))
		require.Regexp(t, safe, string(p.text))
		require.Regexp(t, whole, string(p.text))
		require.Equal(t, 1, strings.Count(string(p.text), "\n"))
	})
}

// TestLineJSON verifies that in JSON an event of a line has the names of the line.
func TestLineJSON(t *testing.T) {
	ev := eventOf(t, "r:net/done f ret=$retval:s32 $arg1:x8", value("s32", 0xff, 0xff, 0xff, 0xff), value("x8", 16))
	ev.Values[0].Value.Type = intType
	unit := &compiler.Unit{Events: []*compiler.EventType{ev.EventType}, Collection: &ebpf.CollectionSpec{}}
	p := newJSON(Options{Values: dumpDefaults, Symbols: symbolsOf(namedSymbols), System: testSystem, Look: testClock}, unit)
	require.NoError(t, p.Event(ev))
	require.Equal(t, `{"type":"event","time":123456789,"cpu":2,"pid":77,"tid":78,"comm":"cat","func":"f","kind":"entry","group":"net","event":"done",`+
		`"call":"0xffffc90000123f58","args":{"ret":-1,"arg2":"0x10"}}`+"\n", string(p.text))
	p.text = nil
	p.begin()
	require.Contains(t, string(p.text), `"probes":[{"func":"f","kind":"entry","attach":"","group":"net","event":"done","items":[`)
	p.text = nil
	p.End(NewSummary(unit, runtime.SessionCounts{Events: []runtime.Counts{{EventType: ev.EventType}}}))
	require.Contains(t, string(p.text), `"group":"net","event":"done"`)
}
