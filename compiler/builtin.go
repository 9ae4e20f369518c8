package compiler

import (
	"strconv"
	"strings"

	"github.com/cilium/ebpf/btf"

	"github.com/ksnoop/ksnoop/compiler/spec"
)

// builtins is the builtins that are values of their own, with their types.
var builtins = map[string]struct {
	is   Builtin
	side Side
	typ  btf.Type
}{

	"comm":     {Comm, AnySide, &btf.Array{Type: intType("char", 1, btf.Signed), Nelems: 16}},
	"pid":      {PID, AnySide, &btf.Typedef{Name: "pid_t", Type: intType("int", 4, btf.Signed)}},
	"tid":      {TID, AnySide, &btf.Typedef{Name: "pid_t", Type: intType("int", 4, btf.Signed)}},
	"cpu":      {CPU, AnySide, intType("unsigned int", 4, btf.Unsigned)},
	"uid":      {UID, AnySide, &btf.Typedef{Name: "uid_t", Type: intType("unsigned int", 4, btf.Unsigned)}},
	"cgroup":   {CgroupID, AnySide, &btf.Typedef{Name: "u64", Type: intType("long long unsigned int", 8, btf.Unsigned)}},
	"duration": {Duration, AtReturn, &btf.Typedef{Name: "u64", Type: intType("long long unsigned int", 8, btf.Unsigned)}},
	"kstack":   {KernelStack, AnySide, &btf.Array{Type: &btf.Pointer{Target: &btf.Void{}}, Nelems: stackFrames}},
}

func intType(name string, size uint32, encoding btf.IntEncoding) *btf.Int {
	return &btf.Int{Name: name, Size: size, Encoding: encoding}
}

// stackFrames is how many callers a stack shows.
const stackFrames = 64

func (b *binder) builtin(e *spec.Builtin) (operand, error) {
	name := e.Name.Name
	if name == "retval" {
		return b.result(e.Span())
	}
	if number, ok := strings.CutPrefix(name, "arg"); ok {
		n, err := strconv.Atoi(number)
		if err == nil && b.fn.Untyped {
			return b.untypedArg(e, n), nil
		}
		if err != nil || n < 1 || n > len(b.fn.Params) {
			return operand{}, b.errorf(e.Span(), "%s has no $%s: it takes %d", b.fn.Name, name, len(b.fn.Params)).
				WithHint("arguments count from $arg1")
		}
		return argument(&b.fn.Params[n-1], AtEntry), nil
	}
	known := builtins[name]
	if known.is == Duration && b.fn.Tracepoint {
		return operand{}, b.errorf(e.Span(), "%s is a tracepoint, which takes no time", b.fn.Name)
	}
	return operand{Value: Value{Type: known.typ, Side: known.side, Base: Base{Builtin: known.is}}}, nil
}
