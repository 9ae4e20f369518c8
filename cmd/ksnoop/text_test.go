package main

import (
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/btfdump"
	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/runtime"
)

// The text of events of every shape, to the byte.
func TestText(t *testing.T) {
	char := &btf.Int{Name: "char", Size: 1, Encoding: btf.Signed}
	integer := &btf.Int{Name: "int", Size: 4, Encoding: btf.Signed}
	pair := &btf.Struct{Name: "pair", Size: 8, Members: []btf.Member{{Name: "a", Type: integer}, {Name: "b", Type: integer, Offset: 32}}}
	pointer := func(name string, to btf.Type) *compiler.Value {
		v := &compiler.Value{Name: name, Type: &btf.Pointer{Target: to}, Pointee: to}
		v.String = to == char
		return v
	}
	number := &compiler.Value{Name: "n", Type: integer}
	for _, tc := range []struct {
		name   string
		values []runtime.Value
		want   string
	}{
		{"none", nil, ""},
		{"number", []runtime.Value{{Value: number, Data: []byte{0xfe, 0xff, 0xff, 0xff}}}, `
                                   n = 
                                    (int)-2`},
		{"record", []runtime.Value{{Value: pointer("p", pair), Addr: 0xffff8880, Data: []byte{1, 0, 0, 0, 2, 0, 0, 0}}}, `
                                   p = *(0xffff8880)
                                    (struct pair){
                                     .a = (int)1,
                                     .b = (int)2,
                                    }`},
		{"string and number", []runtime.Value{
			{Value: pointer("s", char), Addr: 0xffff8880, Data: []byte("a\x1b[31m\"")}, {Value: number, Data: make([]byte, 4)},
		}, `
                                   s = *(0xffff8880)
                                    (char *)"a\033[31m\"",
                                   n = 
                                    (int)0`},
		{"cut string", []runtime.Value{{Value: pointer("s", char), Addr: 1, Data: []byte("abc"), Cut: true}}, `
                                   s = *(0x1)
                                    (char *)"abc"
                                    ... /* 3 bytes of a longer string */`},
		{"cut record", []runtime.Value{{Value: pointer("p", pair), Addr: 1, Data: []byte{1, 0, 0, 0}, Full: 8, Cut: true}}, `
                                   p = *(0x1)
                                    (struct pair){
                                     .a = (int)1,
                                     /* 4 bytes cut */
                                    }
                                    ... /* 4 bytes of 8 */`},
		{"unreadable pointee", []runtime.Value{{Value: pointer("p", pair), Fault: compiler.PointeeFault}}, `
                                   p = *(0x0)
                                     /* Cannot show 'p' as 'struct pair *': NULL pointer */`},
		{"unreadable value", []runtime.Value{{Value: number, Fault: compiler.ValueFault, Addr: 0x1234}}, `
                                   n = 
                                     /* Cannot show 'n' as 'int': 0x1234 is a user-space address */`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ev := &runtime.Event{
				Event: &compiler.Event{Probe: &compiler.Probe{Func: &compiler.Function{Name: "f"}}},
				CPU:   2, PID: 77, Time: 123456789, Values: tc.values,
			}
			p := newPrinter(btfdump.Options{EmitStrings: true, Indent: " "})
			require.NoError(t, p.event(ev))
			want := "       123456789    2       77 f(" + tc.want + "\n                               );\n\n"
			require.Equal(t, want, string(p.text))
		})
	}
}

func TestHeaderText(t *testing.T) {
	p := newPrinter(btfdump.Options{EmitStrings: true, Indent: " "})
	p.header()
	require.Equal(t, "            TIME  CPU      PID FUNCTION/ARGS\n", string(p.text))
}
