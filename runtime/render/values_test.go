package render

import (
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/btfdump"
	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/kallsyms"
	"github.com/ksnoop/ksnoop/runtime"
	"github.com/ksnoop/ksnoop/runtime/userstack"
)

var (
	valueInt    = &btf.Int{Name: "int", Size: 4, Encoding: btf.Signed}
	valueRecord = &btf.Struct{Name: "s", Size: 12, Members: []btf.Member{
		{Name: "a", Type: valueInt}, {Name: "b", Type: &btf.Array{Type: valueInt, Nelems: 2}, Offset: 32},
	}}
)

// TestValues covers readings of values in each format: the first, and what has changed since.
func TestValues(t *testing.T) {
	number := &compiler.Value{Name: "@n", Type: valueInt, Scalar: &compiler.Scalar{Size: 4, Signed: true}}
	record := &compiler.Value{Name: "@s", Type: valueRecord}
	pointer := &compiler.Value{Name: "p", Type: &btf.Pointer{Target: valueRecord}, Pointee: valueRecord, Scalar: &compiler.Scalar{Size: 8}}
	array := &compiler.Value{Name: "@s.b", Type: valueRecord.Members[1].Type}
	data := func(bytes ...byte) []byte { return append(bytes, make([]byte, 12-len(bytes))...) }
	for _, tc := range []struct {
		name                string
		of                  *compiler.Value
		was, is             runtime.Value
		cpu                 int
		text, compact, json []string // the first reading, then the second
	}{
		{"number", number, runtime.Value{Data: data(5)[:4]}, runtime.Value{Data: data(6)[:4]}, 2,
			[]string{"CPU 2: @n = (int)5\n", "               7 CPU 2: @n = 5 -> 6\n"},
			[]string{"CPU 2: @n = 5\n", "               7 CPU 2: @n = 5 -> 6\n"},
			[]string{`"cpu":2,"name":"@n","ctype":"int","value":5}`, `"cpu":2,"name":"@n","ctype":"int","value":6,"changes":[{"member":"","before":5,"after":6}]}`}},
		{"no change", number, runtime.Value{Data: data(5)[:4]}, runtime.Value{Data: data(5)[:4]}, -1,
			[]string{"@n = (int)5\n", ""}, []string{"@n = 5\n", ""},
			[]string{`"name":"@n","ctype":"int","value":5}`, `"name":"@n","ctype":"int","value":5,"changes":[]}`}},
		{"members", record, runtime.Value{Data: data(1, 0, 0, 0, 2)}, runtime.Value{Data: data(1, 0, 0, 0, 3, 0, 0, 0, 4)}, -1,
			[]string{"@s = (struct s){\n .a = (int)1,\n .b = (int[2])[\n  2,\n ],\n}\n", "               7 @s.b[0] = 2 -> 3\n               7 @s.b[1] = 0 -> 4\n"},
			[]string{"@s = {.a = (int)1,.b = (int[2])[2,],}\n", "               7 @s.b[0] = 2 -> 3\n               7 @s.b[1] = 0 -> 4\n"},
			[]string{`"name":"@s","ctype":"struct s","value":{"a":1,"b":[2]}}`, `"value":{"a":1,"b":[3,4]},"changes":[{"member":"b[0]","before":2,"after":3},{"member":"b[1]","before":0,"after":4}]}`}},
		{"elements", array, runtime.Value{Data: data(1)[:8]}, runtime.Value{Data: data(2)[:8]}, -1,
			[]string{"@s.b = (int[2])[\n 1,\n]\n", "               7 @s.b[0] = 1 -> 2\n"},
			[]string{"@s.b = [1,]\n", "               7 @s.b[0] = 1 -> 2\n"}, nil},
		{"behind a pointer", pointer, runtime.Value{Addr: 0xff10, Data: data(1)}, runtime.Value{Addr: 0xff10, Data: data(2)}, -1,
			[]string{"p = *(0xff10) (struct s){\n .a = (int)1,\n}\n", "               7 p->a = 1 -> 2\n"},
			[]string{"p = *(0xff10){.a = (int)1,}\n", "               7 p->a = 1 -> 2\n"},
			[]string{`"ctype":"struct s *","pointer":"0xff10","value":{"a":1}}`, `"pointer":"0xff10","value":{"a":2},"changes":[{"member":"a","before":1,"after":2}]}`}},
		{"another pointer", pointer, runtime.Value{Addr: 0xff10, Data: data(1)}, runtime.Value{Addr: 0xff20, Data: data(1)}, -1,
			nil, []string{"p = *(0xff10){.a = (int)1,}\n", "               7 p = *(0xff10){.a = (int)1,} -> *(0xff20){.a = (int)1,}\n"}, nil},
		{"unreadable", pointer, runtime.Value{Fault: compiler.PointeeFault}, runtime.Value{Addr: 0xff20, Data: data(1)}, -1,
			[]string{"p = *(0x0) /* Cannot show 'p' as 'struct s *': NULL pointer */\n", "               7 p = *(0x0) /* NULL pointer */ -> *(0xff20){.a = (int)1,}\n"}, nil,
			[]string{`"pointer":"0x0","value":null,"fault":"NULL pointer"}`, `"value":{"a":1},"changes":[{"member":"","before":null,"after":{"a":1}}]}`}},
		{"cut", record, runtime.Value{Data: data(1)[:8], Full: 12, Cut: true}, runtime.Value{Data: data(1)[:8], Full: 12, Cut: true}, -1,
			nil, nil, []string{`"truncated":{"shown":8,"of":12}}`, `"truncated":{"shown":8,"of":12},"changes":[]}`}},
	} {
		for format, want := range map[string][]string{"text": tc.text, "compact": tc.compact, "json": tc.json} {
			if want == nil {
				continue
			}
			p, err := NewValues(Options{Format: format, Look: Look{Time: Mono}, Values: btfdump.Options{Indent: " ", EmitStrings: true}})
			require.NoError(t, err)
			tc.was.Value, tc.is.Value = tc.of, tc.of
			for i, r := range []*Reading{{Value: tc.was, CPU: tc.cpu}, {Value: tc.is, Before: &tc.was, CPU: tc.cpu, Time: 7}} {
				require.NoError(t, p.Value(r))
				var out strings.Builder
				require.NoError(t, p.Flush(&out))
				if format == "json" {
					require.True(t, strings.HasSuffix(out.String(), want[i]+"\n"), "%s: %s does not end with %s", tc.name, out.String(), want[i])
				} else {
					require.Equal(t, want[i], out.String(), "%s as %s", tc.name, format)
				}
			}
		}
	}
}

func TestValuesFormats(t *testing.T) {
	_, err := NewValues(Options{Format: "xml"})
	require.Error(t, err)
}

// TestValuesWall verifies that readings have the time of day that the options give.
func TestValuesWall(t *testing.T) {
	number := &compiler.Value{Name: "@n", Type: valueInt, Scalar: &compiler.Scalar{Size: 4, Signed: true}}
	p, err := NewValues(Options{Format: "json", Look: Look{Time: Wall}, Wall: func() time.Duration { return 24 * time.Hour }})
	require.NoError(t, err)
	require.NoError(t, p.Value(&Reading{Value: runtime.Value{Value: number, Data: words(5)[:4]}, CPU: -1, Time: time.Second}))
	var out strings.Builder
	require.NoError(t, p.Flush(&out))
	require.Contains(t, out.String(), `"time":1000000000,"wall":"1970-01-02T00:00:01.000000000Z"`)
}

// TestStackWithoutProcess verifies that a stack of a process is shown without an event, too.
func TestStackWithoutProcess(t *testing.T) {
	frame := make([]byte, userstack.FrameSize)
	frame[0], frame[4], frame[24] = 1, 0xab, 0x10 // a build ID, and an offset in its file
	v := plain("$ustack", u64Type)
	v.Base.Builtin = compiler.UserStack
	for _, format := range Formats {
		p, err := NewValues(Options{Format: format, Values: dumpDefaults})
		require.NoError(t, err)
		require.NoError(t, p.Value(&Reading{Value: runtime.Value{Value: v, Data: frame}, Before: &runtime.Value{Value: v}, CPU: -1}))
		var text strings.Builder
		require.NoError(t, p.Flush(&text))
		require.Contains(t, text.String(), "ab00000000000000", format)
	}
}

// TestValuesWait verifies that readings wait for the names of pointers, and that a printer
// of events with the same names goes on without them.
func TestValuesWait(t *testing.T) {
	release := make(chan bool)
	names := NewPointerNames(func() (kallsyms.Finder, error) {
		<-release
		return kallsyms.Read(strings.NewReader(pointerSymbols), nil)
	})
	pointer := plain("p", &btf.Struct{Name: "s", Size: 8, Members: []btf.Member{{Name: "ops", Type: &btf.Pointer{Target: &btf.Void{}}}}})
	value := runtime.Value{Value: pointer, Data: words(0xffffffff82000000)}
	o := Options{Format: "compact", Values: dumpDefaults, Pointers: names}
	values, err := NewValues(o)
	require.NoError(t, err)
	events, err := New(&compiler.Unit{}, o)
	require.NoError(t, err)
	require.NoError(t, events.Event(newEvent(compiler.EntryEvent, value)))
	close(release)
	require.NoError(t, values.Value(&Reading{Value: value, CPU: -1}))
	var text strings.Builder
	require.NoError(t, events.Flush(&text))
	require.Contains(t, text.String(), "p={.ops = (void *)0xffffffff82000000,}")
	text.Reset()
	require.NoError(t, values.Flush(&text))
	require.Equal(t, "p = {.ops = (void *)0xffffffff82000000 <file_ops>,}\n", text.String())
}
