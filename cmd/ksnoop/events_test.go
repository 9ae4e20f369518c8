package main

import (
	"github.com/cilium/ebpf/btf"

	"github.com/ksnoop/ksnoop/btfdump"
	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/runtime"
)

// Types and values that events of tests are made of.
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

// pointerTo is a followed pointer.
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
	duration = builtin("$duration", u64Type, compiler.Duration)
	commItem = builtin("$comm", &btf.Array{Type: charType, Nelems: 16}, compiler.Comm)
)

// newEvent is an event of function f with these values.
func newEvent(kind compiler.EventKind, values ...runtime.Value) *runtime.Event {
	ev := &compiler.Event{Probe: &compiler.Probe{Func: &compiler.Function{Name: "f"}}, Kind: kind}
	for _, v := range values {
		ev.Items = append(ev.Items, v.Value)
	}
	return &runtime.Event{
		Event: ev, CPU: 2, PID: 77, TID: 78, Time: 123456789, Call: 0xffffc90000123f58,
		Comm: []byte("cat"), Values: values,
	}
}

// dumpDefaults is how values look if the command line says nothing.
var dumpDefaults = btfdump.Options{EmitStrings: true, Indent: " "}
