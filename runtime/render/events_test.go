package render

import (
	"regexp"
	"slices"
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/btfdump"
	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/e2e/schema"
	"github.com/ksnoop/ksnoop/runtime"
)

// Types and values of the tests' events.
var (
	charType = &btf.Int{Name: "char", Size: 1, Encoding: btf.Signed}
	intType  = &btf.Int{Name: "int", Size: 4, Encoding: btf.Signed}
	longType = &btf.Int{Name: "long", Size: 8, Encoding: btf.Signed}
	u64Type  = &btf.Int{Name: "u64", Size: 8}
	pairType = &btf.Struct{Name: "pair", Size: 8, Members: []btf.Member{{Name: "a", Type: intType}, {Name: "b", Type: intType, Offset: 32}}}
	colour   = &btf.Enum{Name: "colour", Size: 4, Values: []btf.EnumValue{{Name: "RED"}, {Name: "BLUE", Value: 1}}}
	boolType = &btf.Int{Name: "bool", Size: 1, Encoding: btf.Bool}
	bytes4   = &btf.Array{Type: &btf.Int{Name: "u8", Size: 1}, Nelems: 4}
)

// pointerTo returns a value that is read through a pointer.
func pointerTo(name string, to btf.Type) *compiler.Value {
	v := &compiler.Value{Name: name, Type: &btf.Pointer{Target: to}, Pointee: to}
	if to == charType {
		v.Text = compiler.KernelText
	}
	return v
}

func plain(name string, t btf.Type) *compiler.Value { return &compiler.Value{Name: name, Type: t} }

func formatted(name string, t btf.Type, format string) *compiler.Value {
	return &compiler.Value{Name: name, Type: t, Format: format}
}

func builtin(name string, t btf.Type, is compiler.Builtin) *compiler.Value {
	return &compiler.Value{Name: name, Type: t, Base: compiler.Base{Builtin: is}}
}

var (
	kstack   = builtin("$kstack", &btf.Array{Type: &btf.Pointer{Target: &btf.Void{}}, Nelems: 64}, compiler.KernelStack)
	ustack   = builtin("$ustack", &btf.Array{Type: &btf.Struct{Name: "bpf_stack_build_id", Size: 32}, Nelems: 64}, compiler.UserStack)
	duration = builtin("$duration", u64Type, compiler.Duration)
	commItem = builtin("$comm", &btf.Array{Type: charType, Nelems: 16}, compiler.Comm)
)

// diffs returns values that are compared: numbers, structures, one of them cut, and what
// could not be read, or does not differ.
func diffs() (values []runtime.Value) {
	number := &compiler.Scalar{Size: 4, Signed: true}
	add := func(v *compiler.Value, was, now runtime.Value) {
		before := *v
		before.Hidden = true
		v.Name, v.Before = "diff("+v.Name+")", &before
		was.Value, now.Value, now.Was = &before, v, &was
		values = append(values, was, now)
	}
	one, two, pair := []byte{1, 0, 0, 0}, []byte{2, 0, 0, 0}, []byte{1, 0, 0, 0, 2, 0, 0, 0}
	n, x, s := plain("n", intType), formatted("x", intType, "x"), plain("s", intType)
	n.Scalar, x.Scalar, s.Scalar = number, number, number
	add(n, runtime.Value{Data: one}, runtime.Value{Data: two})
	add(x, runtime.Value{Data: one}, runtime.Value{Data: two})
	add(plain("p", pairType), runtime.Value{Data: pair}, runtime.Value{Data: []byte{1, 0, 0, 0, 3, 0, 0, 0}})
	cut := runtime.Value{Data: one, Cut: true, Full: 8}
	add(plain("q", pairType), cut, cut)
	add(plain("r", pairType), runtime.Value{Data: pair}, runtime.Value{Fault: compiler.ValueFault})
	add(s, runtime.Value{Data: one}, runtime.Value{Data: one})
	return values
}

// userFrames is a user stack of a frame in a file with a build ID, and one elsewhere.
var userFrames = slices.Concat(words(1|0x0a<<32, 0, 0, 0x1234), words(2, 0, 0, 0x7f00), words(0, 0, 0, 0))

// newEvent returns an event of function f with these values.
func newEvent(kind compiler.EventKind, values ...runtime.Value) *runtime.Event {
	ev := &compiler.EventType{Probe: &compiler.Probe{Func: &compiler.Function{Name: "f"}}, Kind: kind}
	for _, v := range values {
		ev.Items = append(ev.Items, v.Value)
	}
	return &runtime.Event{
		EventType: ev, CPU: 2, PID: 77, TID: 78, Time: 123456789, Call: 0xffffc90000123f58,
		Comm: []byte("cat"), Values: values,
	}
}

// dumpDefaults are the command line's defaults for values.
var dumpDefaults = btfdump.Options{EmitStrings: true, Indent: " "}

// safe matches text that may be written to a terminal.
var safe = regexp.MustCompile(`^[\n\t\x20-\x7e\x{a1}-\x{200a}\x{2010}-\x{2027}\x{2030}-\x{205e}\x{2070}-\x{10ffff}]*$`)

// strictSchema returns a schema of the documentation, changed to refuse members that
// it does not name.
func strictSchema(t testing.TB, name string) *schema.Schema {
	s, err := schema.Strict("../../docs/" + name + ".schema.json")
	require.NoError(t, err)
	return s
}
