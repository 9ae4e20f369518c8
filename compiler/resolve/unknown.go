package resolve

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/cilium/ebpf/btf"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/kallsyms"
)

// noModule returns an error that explains why a module has no types.
func (c *candidates) noModule(module string, symbols []kallsyms.Symbol) error {
	inModule := func(s kallsyms.Symbol) bool { return s.Module == module }
	if c.target.Symbols != nil && !slices.ContainsFunc(symbols, inModule) {
		err := c.trace.Errorf(c.trace.Module.At, "module %s is not loaded, or has no function %s", module, c.subject())
		if hint := notInModule(c.target, c.trace); hint != "" {
			return err.WithHint("%s", hint)
		}
		return err
	}
	if c.target.Symbols == nil {
		err := c.trace.Errorf(c.trace.Module.At, "the types of module %s are not known", module)
		if hasTracepoint(c.target, c.trace.Func.Name) {
			return err.WithHint("%s", withoutGroup(c.trace))
		}
		return err.WithHint("--btf has only those of vmlinux: without it, those of the running kernel's modules are used")
	}
	return c.errorf("%s is in module %s, which has no BTF, so its arguments are not known", c.subject(), module).
		WithHint("the kernel must be built with CONFIG_DEBUG_INFO_BTF_MODULES (5.11 and later)")
}

// notInIt returns an error for a function that is not in the module before its name, where
// that has types, or nil if there is none or the function has no type there.
func (c *candidates) notInIt(symbols []kallsyms.Symbol) error {
	module, name := c.trace.Module.Name, c.trace.Func.Name
	where := "module " + module
	if module == vmlinux {
		module, where = "", "the kernel itself"
	} else if module == "" {
		return nil
	}
	if c.target.Symbols == nil || slices.ContainsFunc(symbols, func(s kallsyms.Symbol) bool { return s.Module == module }) || len(c.target.Symbols.Suffixed(name)) > 0 {
		return nil
	}
	symbols = slices.DeleteFunc(slices.Clone(symbols), func(s kallsyms.Symbol) bool { return !s.Text() })
	err := c.errorf("there is no function %s in %s", c.subject(), where)
	switch {
	case len(symbols) > 0 && symbols[0].Module == "":
		return err.WithHint("%s is a function of the kernel itself: leave out the module", name)
	case len(symbols) > 0:
		return err.WithHint("it is in module %s: %[1]s:%s", symbols[0].Module, name)
	case module == "" || c.from == nil:
		return nil
	}
	if near, ok := spec.Nearest(name, untilError(typeNames(c.target, c.from, FuncKind))); ok {
		return err.WithMeant("%s", near)
	}
	return err
}

func (c *candidates) onlyCopies(copies []kallsyms.Symbol) error {
	return c.errorf("this kernel has %s only as %s, with arguments that may differ from its type", c.subject(), copies[0].Name).
		WithHint("to trace it anyway, use this name: %s", copies[0].Name)
}

// notInModule returns a hint for a name with a wrong module before it: a
// function of vmlinux, a glob of such functions, or a tracepoint with its
// group. It returns "" for other names.
func notInModule(t *compiler.Target, trace *spec.Trace) string {
	module, name := trace.Module.Name, trace.Func.Name
	if hint := syscallHint(t, name); hint != "" && module == "syscalls" {
		return hint
	}
	if hasTracepoint(t, name) {
		return withoutGroup(trace)
	}
	isOf := func(f string) bool { return f == name }
	if spec.IsGlob(name) {
		// The module's functions mostly begin with its name, which the glob may
		// leave out.
		isOf = func(f string) bool { return strings.HasPrefix(f, module+"_") && spec.Matches(name, f) }
	}
	for f := range typeNames(t, t.Kernel, FuncKind) {
		if isOf(f) {
			switch {
			case strings.HasPrefix(name, module):
			case spec.IsGlob(name):
				name = module + "_" + name
			default:
				return name + " is a function of the kernel itself: leave out the module"
			}
			return "functions of the kernel itself have no module before them: " + name
		}
	}
	return ""
}

// withoutGroup returns the hint for a tracepoint with a group, or tp, in place of a module.
func withoutGroup(trace *spec.Trace) string {
	return "a tracepoint is named without its group: " + asTracepoint(trace, trace.Func.Name)
}

// asTracepoint returns the spec or the line for a tracepoint that a spec or a line has in
// place of a function.
func asTracepoint(trace *spec.Trace, name string) string {
	at := &spec.Trace{Func: spec.Ident{Name: name}, Tracepoint: true}
	if line := trace.Line; line != nil {
		at.Line = &spec.Line{Kind: spec.Tracepoint, Group: line.Group, Event: line.Event}
	}
	return at.String()
}

// hasTracepoint reports whether the kernel itself has a tracepoint.
func hasTracepoint(t *compiler.Target, name string) bool {
	var typedef *btf.Typedef
	return t.Kernel.TypeByName(tracepointType+name, &typedef) == nil
}

// otherWord sets the hint of an error about a name that is not a function but that C or
// other tracers use for something that can be traced. It reports whether the name is one.
func otherWord(err *spec.Error, t *compiler.Target, trace *spec.Trace) bool {
	name := trace.Func.Name
	err.Hint = cmp.Or(syscallHint(t, name), spec.FunctionHabit(name))
	if err.Hint == "" && hasTracepoint(t, name) {
		err.Hint = "it is a tracepoint: " + asTracepoint(trace, name)
	}
	if err.Hint != "" {
		return true
	}
	call := syscallFunction(t.Arch, name)
	if len(funcsByName(t.Kernel, call)) > 0 {
		_ = err.WithMeant("%s", call)
	}
	return err.Meant != ""
}

// syscallFunction returns the name of the function that is a system call with this name.
func syscallFunction(arch *compiler.Arch, name string) string {
	return arch.SyscallPrefix + "sys_" + strings.TrimPrefix(name, "sys_")
}

// syscallHint returns a hint for the name of a system call's tracepoint in
// tracefs, or "" for other names.
func syscallHint(t *compiler.Target, name string) string {
	call, enter := strings.CutPrefix(name, "sys_enter_")
	if !enter {
		var exit bool
		if call, exit = strings.CutPrefix(name, "sys_exit_"); !exit {
			return ""
		}
	}
	n, ok := spec.SyscallNumber(call, t.Arch.Name)
	switch {
	case !ok:
		return fmt.Sprintf("all system calls are two tracepoints: tp:sys_enter(%s) and tp:sys_exit(%s)",
			tracepointArg(t, "sys_enter", 2), tracepointArg(t, "sys_exit", 2))
	case enter:
		return fmt.Sprintf("all system calls are one tracepoint, and %s is number %d: tp:sys_enter(%s == %d)",
			call, n, tracepointArg(t, "sys_enter", 2), n)
	}
	return fmt.Sprintf("all system calls are one tracepoint, and %s is number %d: tp:sys_exit(%s) if %s->%s == %d",
		call, n, tracepointArg(t, "sys_exit", 2), tracepointArg(t, "sys_exit", 1), t.Arch.Syscall, n)
}

// syscallNumberHint returns a hint for a macro of C that is the number of a system call,
// or "" for other names.
func syscallNumberHint(t *compiler.Target, name string) string {
	_, call, ok := strings.Cut(name, "_NR_")
	if !ok {
		call, ok = strings.CutPrefix(name, "SYS_")
	}
	if n, known := spec.SyscallNumber(call, t.Arch.Name); ok && known {
		return fmt.Sprintf("macros of C are not in BTF: write %d, the number of %s on %s", n, call, t.Arch.Name)
	}
	return ""
}

// tracepointArg returns the name of argument n of a tracepoint in a spec,
// counted from 1. Old kernels have no names for some.
func tracepointArg(t *compiler.Target, tracepoint string, n int) string {
	var typedef *btf.Typedef
	if t.Kernel.TypeByName(tracepointType+tracepoint, &typedef) == nil {
		if proto := protoOf(typedef); proto != nil && n < len(proto.Params) {
			if named := nameParams(t.Kernel, tracepoint, proto.Params[1:]); named[n-1].Name != "" {
				return named[n-1].Name
			}
		}
	}
	return fmt.Sprintf("$arg%d", n)
}

// unknownFunction returns an error that explains why a name is not a traceable
// function.
func unknownFunction(t *compiler.Target, trace *spec.Trace, symbols []kallsyms.Symbol) error {
	name := trace.Func.Name
	fail := func(format string, args ...any) *spec.Error {
		return trace.Errorf(trace.Func.At, format, args...)
	}
	switch {
	case slices.ContainsFunc(symbols, kallsyms.Symbol.Text):
		return fail("%s has no type in BTF, so its arguments are not known (it is not written in C, or BTF left it out)", spec.Subject(name))
	case len(symbols) > 0:
		err := fail("%s is data, not a function", spec.Subject(name))
		if trace.Line != nil {
			return err.WithHint("write ksnoop print '@%s'", name)
		}
		return err.WithHint("its content is '@%s' in the list of a function", name)
	}
	if t.Symbols != nil {
		if copies := t.Symbols.Suffixed(name); len(copies) > 0 {
			return fail("this kernel has %s only as %s, with arguments that may differ from its type", name, copies[0].Name)
		}
	}
	err := fail("there is no function %s in this kernel", name).WithKind(spec.NoFunction)
	if otherWord(err, t, trace) {
		return err
	}
	longer := false
	near, ok := spec.Nearest(name, func(yield func(string) bool) {
		for f := range untilError(typeNames(t, t.Kernel, FuncKind)) {
			longer = longer || strings.HasPrefix(f, name+"_")
			if !yield(f) {
				return
			}
		}
	})
	// What looks like a line may be gdb's command p, which prints a variable.
	bare := trace.Line != nil && trace.Line.Kind == spec.Kprobe && trace.Line.Event.Name == "" && trace.Items == nil
	switch {
	case ok && bare:
		_ = err.WithMeant("%s", near)
		err.Hint += fmt.Sprintf(" a variable is shown by ksnoop print '@%s'", name)
		return err
	case bare:
		return err.WithHint("a variable is shown by ksnoop print '@%s'", name)
	case ok:
		return err.WithMeant("%s", near)
	case longer:
		return err.WithHint("functions whose names begin with it: '%s_*'", name)
	}
	return err
}
