package resolve

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/cilium/ebpf/btf"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
)

// builtins has the builtins that are values of their own, with their types.
var builtins = [...]struct {
	name string
	is   compiler.Builtin
	side compiler.Side
	typ  btf.Type
}{
	{"comm", compiler.Comm, compiler.AnySide, &btf.Array{Type: intType("char", 1, btf.Signed), Nelems: 16}},
	{"pid", compiler.PID, compiler.AnySide, pidType},
	{"tid", compiler.TID, compiler.AnySide, pidType},
	{"cpu", compiler.CPU, compiler.AnySide, intType("unsigned int", 4, btf.Unsigned)},
	{"uid", compiler.UID, compiler.AnySide, &btf.Typedef{Name: "uid_t", Type: intType("unsigned int", 4, btf.Unsigned)}},
	{"cgroup", compiler.CgroupID, compiler.AnySide, &btf.Typedef{Name: "u64", Type: intType("long long unsigned int", 8, btf.Unsigned)}},
	{"duration", compiler.Duration, compiler.AtReturn, &btf.Typedef{Name: "u64", Type: intType("long long unsigned int", 8, btf.Unsigned)}},
	{"kstack", compiler.KernelStack, compiler.AnySide, &btf.Array{Type: &btf.Pointer{Target: &btf.Void{}}, Nelems: stackFrames}},
	{"ustack", compiler.UserStack, compiler.AnySide, &btf.Array{Type: &btf.Struct{Name: "bpf_stack_build_id", Size: 32}, Nelems: stackFrames}},
}

// pidType is the type of $pid, $tid and $ppid.
var pidType = &btf.Typedef{Name: "pid_t", Type: intType("int", 4, btf.Signed)}

func intType(name string, size uint32, encoding btf.IntEncoding) *btf.Int {
	return &btf.Int{Name: name, Size: size, Encoding: encoding}
}

// stackFrames is the number of callers that a stack shows.
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
			return operand{}, b.errorf(e.Span(), "%s has no $%s: it takes %d", b.subject(), name, len(b.fn.Params)).
				WithHint("arguments count from $arg1")
		}
		return argument(&b.fn.Params[n-1], compiler.AtEntry), nil
	}
	if b.fn.Iterator {
		return operand{}, b.ownBuiltin(e)
	}
	if name == containerName { // alone, it is bound by value
		return operand{}, b.asNumber(&compiler.Value{Format: compiler.ContainerFormat}, e.Span())
	}
	switch name {
	case "task":
		return b.task(e)
	case "ppid":
		return b.parent(e)
	}
	known := builtins[0]
	for _, v := range builtins {
		if v.name == name {
			known = v
		}
	}
	switch {
	case known.is != compiler.Duration:
	case b.end:
		known.side = compiler.AnySide
	case b.trace.Ending != nil:
		return operand{}, b.errorf(e.Span(), "$duration is known when the span ends, and %s is its beginning", b.subject()).
			WithHint("it belongs behind '=>'")
	case b.fn.Tracepoint:
		return operand{}, b.errorf(e.Span(), "%s is a tracepoint, which takes no time", b.subject())
	}
	return operand{Value: compiler.Value{Type: known.typ, Side: known.side, Base: compiler.Base{Builtin: known.is}}}, nil
}

// task binds the task_struct of the thread that makes the call.
func (b *binder) task(e *spec.Builtin) (operand, error) {
	var t *btf.Struct
	if b.target.Kernel.TypeByName("task_struct", &t) != nil {
		return operand{}, b.errorf(e.Span(), "this kernel has no struct task_struct")
	}
	v := compiler.Value{Type: &btf.Pointer{Target: t}, Base: compiler.Base{Builtin: compiler.Task}}
	return operand{Value: v, known: b.target.Features.CurrentTask}, nil
}

// parent binds the id of the process that has created this one, or has adopted it.
func (b *binder) parent(e *spec.Builtin) (operand, error) {
	var x spec.Expr = &spec.Builtin{Name: spec.Ident{Name: "task", At: e.Span()}}
	for _, name := range parentMembers {
		x = &spec.Member{X: x, Name: spec.Ident{Name: name, At: e.Span()}}
	}
	o, err := b.bind(x)
	o.Type = pidType
	return o, err
}

// parentMembers leads from a task_struct to the id of the parent's process. Unlike
// parent, real_parent does not change while a debugger is attached.
var parentMembers = []string{"real_parent", "tgid"}

// DefaultStackSize is THREAD_SIZE of x86-64 and arm64 without KASAN.
const DefaultStackSize = 16 << 10

// findStacks determines the size and the place of stacks from a kernel's types.
func findStacks(kernel *btf.Spec) *compiler.Stacks {
	s := &compiler.Stacks{Size: DefaultStackSize, Task: -1}
	var union *btf.Union
	if kernel.TypeByName("thread_union", &union) == nil {
		s.Size = int(union.Size)
	}
	if at, ok := compiler.MemberOffset(kernel, "task_struct", "stack"); ok {
		s.Task = at
	}
	return s
}

// FindComm returns the offset of a thread's name in its task_struct, or 0 if
// programs cannot load it from there.
func FindComm(target *compiler.Target) int {
	var task *btf.Struct
	if !target.Features.CurrentTask || target.Kernel.TypeByName("task_struct", &task) != nil {
		return 0
	}
	at, ok := compiler.FindMember(task, "comm")
	if !ok || at.InUnion || at.Offset.Bytes()+compiler.CommSize > compiler.MaxStore {
		return 0
	}
	if size, err := btf.Sizeof(at.Member.Type); err != nil || size != compiler.CommSize {
		return 0
	}
	return int(at.Offset.Bytes())
}

// FindTasks looks up the offsets of [compiler.Tasks] in the types of a kernel.
func FindTasks(kernel *btf.Spec) (*compiler.Tasks, error) {
	t := &compiler.Tasks{}
	for name, off := range map[string]*int{"pid": &t.PID, "tgid": &t.TGID, "signal": &t.Signal} {
		at, ok := compiler.MemberOffset(kernel, "task_struct", name)
		if !ok {
			return nil, fmt.Errorf("follow processes: struct task_struct of this kernel has no member %s", name)
		}
		*off = at
	}
	return t, nil
}

// containerName is the builtin that stands for the container of the thread's cgroup. The
// kernel knows only the cgroup, and ksnoop finds the container when it shows the value.
const containerName = "container"

// container binds $container: the id of the cgroup, with a format of its own.
func (b *binder) container(e *spec.Builtin, format spec.Ident) (*compiler.Value, error) {
	if format.Name != "" {
		return nil, b.errorf(format.At, "'$container' is shown as the name of a container, or its id: it has no other format").
			WithHint("$cgroup is the number of its cgroup")
	}
	v, err := b.value(&spec.Builtin{Name: spec.Ident{Name: "cgroup", At: e.Name.At}}, spec.Ident{})
	if err == nil {
		v.Name, v.Format = e.String(), compiler.ContainerFormat
	}
	return v, err
}

// asNumber returns an error for $container where a number is needed.
func (b *binder) asNumber(v *compiler.Value, at spec.Span) error {
	if v.Format != compiler.ContainerFormat {
		return nil
	}
	return b.errorf(at, "which container '$container' is becomes known when it is shown, and not in the kernel").
		WithHint("--container NAME traces one of them; $cgroup is a number")
}
