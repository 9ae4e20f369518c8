package kprobe

import "github.com/ksnoop/ksnoop/compiler/spec"

// checkArg refuses an item with a type that its value cannot have.
func (p *parser) checkArg(item *spec.Item) error {
	t := item.Type
	if t == nil {
		return nil
	}
	fail := func(format string, args ...any) *spec.Error { return p.errorf(t.At, format, args...) }
	name := item.Value.String()
	_, all := item.Value.(*spec.AllArgs)
	switch {
	case all:
		return fail("'$arg*' has no type").WithHint("the arguments have their own")
	case spec.FetchesText(item.Value):
		if t.Name != "string" || t.Count > 0 {
			return fail("%s is a string, not %s", spec.Quote(name), t).WithHint("its type is string, and can be left out")
		}
	case t.Count > 0 && (t.Name == "symstr" || t.Name == "%pd" || t.Name == "%pD"):
		return fail("there are no arrays of %s", t.Name)
	case t.Count > 0 && !inMemory(item.Value):
		return fail("%s is not in memory, and so no array", spec.Quote(name)).WithHint("what it points to is +0(%s)", name)
	case t.Name == "symstr" && !holdsAddress(item.Value):
		return fail("%s is not the address of a symbol", spec.Quote(name))
	case (t.Name == "string" || t.Name == "ustring") && inRegister(item.Value):
		return fail("%s is a number, not a string", spec.Quote(name)).WithHint("the string that it points to is +0(%s):%s", name, t.Name)
	}
	return nil
}

// inMemory reports whether a value is read from memory.
func inMemory(x spec.Expr) bool {
	switch x.(type) {
	case *spec.Memory, *spec.Member:
		return true
	}
	return false
}

// inRegister reports whether a value is a number without a type in BTF. With a type
// in BTF it could be a string.
func inRegister(x spec.Expr) bool {
	switch x.(type) {
	case *spec.Register, *spec.StackSlot, *spec.StackPointer:
		return true
	}
	return false
}

// holdsAddress reports whether a value may be the address of a symbol.
func holdsAddress(x spec.Expr) bool {
	switch x.(type) {
	case *spec.Immediate, *spec.StackPointer:
		return false
	}
	return true
}
