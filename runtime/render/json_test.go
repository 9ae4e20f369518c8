package render

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/runtime"
)

// TestJSON covers the JSON of events of every shape, byte by byte.
func TestJSON(t *testing.T) {
	number := plain("n", intType)
	result := plain("return", intType)
	hiddenPointer := pointerTo("h", pairType) // as a recording may have
	hiddenPointer.Hidden = true
	one := []byte{1, 0, 0, 0}
	lines := strictSchema(t, "trace")
	for _, tc := range []struct {
		name   string
		kind   compiler.EventKind
		values []runtime.Value
		want   string
	}{
		{"none", compiler.EntryEvent, nil, `"args":{}`},
		{"entry", compiler.EntryEvent, []runtime.Value{{Value: number, Data: []byte{0xfe, 0xff, 0xff, 0xff}}, {Value: plain("colour", colour), Data: one}, {Value: plain("on", boolType), Data: []byte{1}}},
			`"args":{"n":-2,"colour":"BLUE","on":true}`},
		{"all digits", compiler.EntryEvent, []runtime.Value{{Value: plain("u", u64Type), Data: words(1<<64 - 1)}, {Value: plain("s", longType), Data: words(1 << 63)}},
			`"args":{"u":18446744073709551615,"s":-9223372036854775808}`},
		{"return", compiler.ReturnEvent, []runtime.Value{{Value: result, Data: one}}, `"args":{},"return":1`},
		{"call", compiler.CallEvent, []runtime.Value{{Value: number, Data: make([]byte, 4)}, {Value: duration, Data: words(1500)}, {Value: result, Data: one}},
			`"args":{"n":0},"duration":1500,"return":1`},
		{"one name", compiler.ReturnEvent, []runtime.Value{
			{Value: number, Data: one}, {Value: formatted("n", intType, "x"), Data: one}, {Value: result, Data: one}, {Value: formatted("return", intType, "u"), Data: one},
			{Value: duration, Data: words(1)}, {Value: &compiler.Value{Name: "$duration", Type: u64Type, Format: "x", Base: duration.Base}, Data: words(31)},
		}, `"args":{"n":1,"n#2":"0x1","return#2":1,"$duration#2":"0x1f"},"return":1,"duration":1`},
		{"names of members", compiler.CallEvent, []runtime.Value{
			{Value: plain("duration", intType), Data: one}, {Value: duration, Data: words(1500)}, {Value: plain("$retval", intType), Data: one},
		}, `"args":{"duration":1},"duration":1500,"return":1`},
		{"record", compiler.EntryEvent, []runtime.Value{{Value: pointerTo("p", pairType), Addr: 0xffff8880, Data: []byte{1, 0, 0, 0, 2, 0, 0, 0}}},
			`"args":{"p":{"a":1,"b":2}},"pointers":{"p":"0xffff8880"}`},
		{"record returned", compiler.ReturnEvent, []runtime.Value{{Value: pointerTo("return", pairType), Addr: 16, Data: []byte{1, 0, 0, 0, 2, 0, 0, 0}}},
			`"args":{},"return":{"a":1,"b":2},"pointers":{"return":"0x10"}`},
		{"cut record", compiler.EntryEvent, []runtime.Value{{Value: pointerTo("p", pairType), Addr: 1, Data: one, Full: 8, Cut: true}},
			`"args":{"p":{"a":1,"$cut":4}},"pointers":{"p":"0x1"},"truncated":{"p":{"shown":4,"of":8}}`},
		{"cut string", compiler.EntryEvent, []runtime.Value{{Value: pointerTo("s", charType), Addr: 1, Data: []byte("abc"), Cut: true}},
			`"args":{"s":"abc"},"pointers":{"s":"0x1"},"truncated":{"s":{"shown":3}}`},
		{"diff", compiler.CallEvent, append(diffs(), runtime.Value{Value: number, Data: one}),
			`"args":{"n":1},"diff":{"n":[{"before":1,"after":2}],"x":[{"before":"0x1","after":"0x2"}],"p":[{"member":"b","before":2,"after":3}],"q":[],"s":[]},` +
				`"truncated":{"diff(q)":{"shown":4,"of":8}},"faults":{"diff(r)":"NULL pointer at return"}`},
		{"diffs of one name", compiler.CallEvent, slices.Concat(diffs()[:2], diffs()[:2]),
			`"args":{},"diff":{"n":[{"before":1,"after":2}],"n#2":[{"before":1,"after":2}]}`},
		{"hidden", compiler.EntryEvent, []runtime.Value{{Value: hiddenPointer, Addr: 1, Data: one}, {Value: number, Data: one}}, `"args":{"n":1}`},
		{"strings", compiler.EntryEvent, []runtime.Value{
			{Value: plain("s", &btf.Array{Type: charType, Nelems: 8}), Data: []byte("eth0\x00\x00\x00\x00")},
			{Value: plain("b", bytes4), Data: []byte{0, 1, 2, 0xff}},
			{Value: formatted("c", bytes4, "string"), Data: []byte("a\x1b\x00c")},
			{Value: commItem, Data: []byte("a\"\\\n\x7f\xff\x00junk")},
		}, `"args":{"s":"eth0","b":"000102ff","c":"a\u001b","$comm":"a\"\\\n\u007f\ufffd"}`},
		{"formats", compiler.EntryEvent, []runtime.Value{
			{Value: formatted("x", intType, "x"), Data: []byte{0xff, 0xff, 0xff, 0xff}},
			{Value: formatted("d", u64Type, "d"), Data: words(1<<64 - 2)},
			{Value: formatted("u", intType, "u"), Data: []byte{0xff, 0xff, 0xff, 0xff}},
			{Value: formatted("c", intType, "c"), Data: []byte{'\n', 0, 0, 0}},
			{Value: formatted("q", charType, "c"), Data: []byte{'\''}},
			{Value: formatted("many", intType, "c"), Data: []byte{0, 1, 0, 0}},
			{Value: formatted("ip", bytes4, "ip4"), Data: []byte{127, 0, 0, 1}},
			{Value: formatted("mac", &btf.Array{Type: charType, Nelems: 6}, "mac"), Data: []byte{2, 0, 0, 0, 0, 0xff}},
			{Value: formatted("at", u64Type, "symbol"), Data: words(0xffffffff81000005)},
		}, `"args":{"x":"0xffffffff","d":-2,"u":4294967295,"c":"\\n","q":"\\'","many":"256","ip":"127.0.0.1","mac":"02:00:00:00:00:ff","at":"0xffffffff81000005 <vfs_read+0x5>"}`},
		{"stack", compiler.EntryEvent, []runtime.Value{{Value: kstack, Data: words(0xffffffff81000005, 0xffffffff81000200, 0xffff)}},
			`"args":{"$kstack":["vfs_read+0x5","exit_now+0x100","0xffff"]}`},
		{"user stack", compiler.EntryEvent, []runtime.Value{{Value: ustack, Data: userFrames}},
			`"args":{"$ustack":[{"build_id":"0a00000000000000","offset":"0x1234"},{"address":"0x7f00"}]}`},
		{"faults", compiler.ReturnEvent, []runtime.Value{
			{Value: pointerTo("p", pairType), Fault: compiler.PointeeFault},
			{Value: number, Fault: compiler.ValueFault, Addr: 0x1234},
			{Value: pointerTo("return", pairType), Fault: compiler.PointeeFault, Addr: 1<<64 - 2},
		}, `"args":{"p":null,"n":null},"return":null,"pointers":{"p":"0x0","return":"0xfffffffffffffffe"},` +
			`"faults":{"p":"NULL pointer","n":"0x1234 is a user-space address","return":"error pointer -ENOENT"}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ev := newEvent(tc.kind, tc.values...)
			p := newJSON(Options{Values: dumpDefaults, Symbols: symbolsOf(namedSymbols)}, nil)
			require.NoError(t, p.Event(ev))
			require.Equal(t, `{"type":"event","time":123456789,"cpu":2,"pid":77,"tid":78,"comm":"cat","func":"f","kind":"`+
				tc.kind.String()+`","call":"0xffffc90000123f58",`+tc.want+"}\n", string(p.text))
			require.NoError(t, lines.Lines(string(p.text)))
		})
	}
}

// TestJSONNames covers the caller in a chain, modules and tracepoints; names may be
// anything.
func TestJSONNames(t *testing.T) {
	ev := newEvent(compiler.ReturnEvent)
	ev.Caller, ev.Comm = 0xffffc90000123fa8, []byte("\x1b[2J\"")
	ev.Probe.Func = &compiler.Function{Name: "tick\"\n", Module: "m\x01", Tracepoint: true}
	p := newJSON(Options{Values: dumpDefaults}, nil)
	require.NoError(t, p.Event(ev))
	require.Equal(t, `{"type":"event","time":123456789,"cpu":2,"pid":77,"tid":78,"comm":"\u001b[2J\"","func":"tp:tick\"\n","module":"m\u0001",`+
		`"kind":"return","call":"0xffffc90000123f58","caller":"0xffffc90000123fa8","args":{}}`+"\n", string(p.text))
	require.NoError(t, strictSchema(t, "trace").Lines(string(p.text)))
}

// TestJSONRun verifies that the first line names what the events will have.
func TestJSONRun(t *testing.T) {
	probe := &compiler.Probe{Func: &compiler.Function{Name: "f", Module: "m"}}
	tick := &compiler.Probe{Func: &compiler.Function{Name: "tick\x7f", Tracepoint: true}}
	unit := &compiler.Unit{
		Events: []*compiler.EventType{
			{Probe: probe, Kind: compiler.EntryEvent, Items: []*compiler.Value{pointerTo("p->q", pairType), formatted("p->q", u64Type, "x")}},
			{Probe: probe, Kind: compiler.ReturnEvent, Items: []*compiler.Value{plain("return", intType), duration}},
			{Probe: tick, Kind: compiler.EntryEvent},
		},
		Attachments: []compiler.Attachment{
			{Kind: compiler.Fexit, Places: []compiler.Place{{Probe: probe}}},
			{Kind: compiler.Fentry, Places: []compiler.Place{{Probe: probe}}},
			{Kind: compiler.TpBTF, Places: []compiler.Place{{Probe: tick}}},
		},
	}
	p := newJSON(Options{Values: dumpDefaults, Version: "v1", System: testSystem, Look: testClock}, unit)
	p.begin()
	require.Equal(t, `{"type":"run","version":1,"ksnoop":"v1","kernel":"6.12.0\u001b","host":"box\u001b","boot":"cafe","realtime":1795388222000000001,"probes":[`+
		`{"func":"f","module":"m","kind":"entry","attach":"fentry","items":[{"name":"p->q","type":"struct pair *"},{"name":"p->q#2","type":"u64","format":"x"}]},`+
		`{"func":"f","module":"m","kind":"return","attach":"fexit","items":[{"name":"return","type":"int"},{"name":"$duration","type":"u64"}]},`+
		`{"func":"tp:tick\u007f","kind":"entry","attach":"tp_btf","items":[]}]}`+"\n", string(p.text))
	require.NoError(t, strictSchema(t, "trace").Lines(string(p.text)))

	probe.Paired, unit.Events[1].Kind = true, compiler.CallEvent
	require.Equal(t, "fentry+fexit", newProbeName(unit.Events[1], AttachKinds(unit)[probe]).Attach)
}

// FuzzEvents verifies that any bytes of an event give one line of JSON that matches
// the schema, and one line of compact text, both without control characters.
func FuzzEvents(f *testing.F) {
	lines := strictSchema(f, "trace")
	f.Add([]byte("\x1b[2J\n\x00\xff\"\\"), []byte("\x1b[2J\n\"\\\xff\xc3\x28\x00\x01\x02"), "vfs\x1b\"_read", uint8(0), uint64(0))
	f.Add([]byte("cat"), words(0xffffffff81000005, 1, 2), "vfs_read", uint8(0xff), uint64(1<<64-2))
	f.Fuzz(func(t *testing.T, comm, data []byte, symbol string, how uint8, addr uint64) {
		values := []*compiler.Value{
			pointerTo("s", charType), pointerTo("p", pairType), plain("return", longType), kstack, duration, commItem,
			plain("name", &btf.Array{Type: charType, Nelems: 8}), plain("b", bytes4), plain("e", colour), plain("t", boolType),
		}
		for _, format := range spec.Formats {
			values = append(values, formatted("v", u64Type, format))
		}
		ev := newEvent(compiler.EntryEvent + compiler.EventKind(how%3))
		ev.Comm, ev.Call, ev.Caller, ev.PID = comm, addr, addr/2, uint32(addr)
		for i, v := range values {
			ev.Items = append(ev.Items, v)
			ev.Values = append(ev.Values, runtime.Value{
				Value: v, Addr: addr + uint64(i), Data: data, Full: 2*len(data) + 1,
				Cut: how&4 != 0, Fault: compiler.Fault(int(how>>3) * i % 3),
			})
			if v == duration { // a duration is not read from memory
				ev.Values[i] = runtime.Value{Value: v, Data: words(addr)}
			}
		}
		names := symbolsOf("ffffffff81000000 T " + symbol + "\n")
		options := dumpDefaults
		options.EmitStrings, options.EmitZeroes = how&8 == 0, how&16 != 0
		require.NoError(t, lines.Lines(oneLine(t, newJSON(Options{Values: options, Symbols: names}, nil), ev)))
		oneLine(t, newCompact(Options{Values: options, Symbols: names}), ev)
	})
}

// oneLine returns the output for an event, which must be one line that is safe to
// show.
func oneLine(t *testing.T, out Printer, ev *runtime.Event) string {
	var text strings.Builder
	require.NoError(t, out.Event(ev))
	require.NoError(t, out.Flush(&text))
	line, ended := strings.CutSuffix(text.String(), "\n")
	require.True(t, ended)
	for _, r := range line {
		require.True(t, r != utf8.RuneError && strconv.IsPrint(r), "%q", line)
	}
	return line
}
