package compiler

import (
	"slices"

	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/kallsyms"
)

// noModule explains why a module has no types.
func (c *candidates) noModule(module string, symbols []kallsyms.Symbol) error {
	inModule := func(s kallsyms.Symbol) bool { return s.Module == module }
	if c.target.Symbols != nil && !slices.ContainsFunc(symbols, inModule) {
		return c.errorf("module %s is not loaded, or has no function %s", module, c.trace.Func.Name)
	}
	return c.errorf("%s is in module %s, which has no BTF, so its arguments are not known", c.trace.Func.Name, module).
		WithHint("the kernel must be built with CONFIG_DEBUG_INFO_BTF_MODULES (5.11 and later)")
}

func (c *candidates) onlyCopies(copies []kallsyms.Symbol) error {
	return c.errorf("this kernel has %s only as %s, with arguments that may differ from its type", c.trace.Func.Name, copies[0].Name).
		WithHint("to trace it all the same, name it so: %s", copies[0].Name)
}

// unknownFunction explains why a name is no traceable function.
func (t *Target) unknownFunction(trace *spec.Trace, symbols []kallsyms.Symbol) error {
	name := trace.Func.Name
	fail := func(format string, args ...any) *spec.Error {
		return spec.Errorf(trace.Text, trace.Func.At, format, args...)
	}
	switch {
	case slices.ContainsFunc(symbols, kallsyms.Symbol.Text):
		return fail("%s has no type in BTF, so its arguments are not known (it is not written in C, or BTF left it out)", name)
	case len(symbols) > 0:
		return fail("%s is data, not a function", name).WithHint("its content is '@%s' in the list of a function", name)
	}
	if t.Symbols != nil {
		if copies := t.Symbols.Suffixed(name); len(copies) > 0 {
			return fail("this kernel has %s only as %s, with arguments that may differ from its type", name, copies[0].Name)
		}
	}
	err := fail("there is no function %s in this kernel", name)
	if near, ok := spec.Nearest(name, readable(t.typeNames(t.Kernel, FuncKind))); ok {
		return err.WithHint("did you mean '%s'?", near)
	}
	return err
}
