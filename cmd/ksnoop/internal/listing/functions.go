// Package listing prints functions, tracepoints and types, the values of bytes, and
// what specs compile to.
package listing

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/cilium/ebpf/btf"

	"github.com/ksnoop/ksnoop/btfdump"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/target"
	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/resolve"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/runtime/render"
)

// ListOptions selects what to list, and of which kernel.
type ListOptions struct {
	Specs  target.Specs
	Kernel target.Choice
	Takes  []string // only functions with arguments of all these types
	Format string   // one of Formats
	Color  string   // one of term.Colors
}

// Info prints the prototype of each function that it finds, and the definition of each
// type. It also looks up the values that a spec names after a function, or after a glob,
// of which at least one function must have them.
func Info(o *ListOptions, stdout io.Writer) error {
	out := o.output(stdout)
	words, traces, err := o.asked()
	if err != nil {
		return err
	}
	var kernel *compiler.Target
	_, err = o.Kernel.Open(traces, func(k *compiler.Target) bool {
		kernel = k
		fits := func(a asked) bool { return a.trace != nil && info(out, a.trace, k) == nil }
		all := !slices.ContainsFunc(words, func(a asked) bool { return !fits(a) })
		out.text.Reset()
		return all
	})
	if err != nil {
		return err
	}
	// Unless all was found, the target has the whole kernel now.
	var errs []error
	for _, a := range words {
		if a.trace == nil {
			errs = append(errs, infoTypes(out, a.word, kernel))
			continue
		}
		err := info(out, a.trace, kernel)
		// What is said of a function is not hidden behind a type of its name.
		if err != nil && isBareName(a.trace) && !isFunction(a.word, kernel) {
			err = infoType(out, a.word, kernel, err)
		}
		errs = append(errs, err)
	}
	return errors.Join(append([]error{out.flush(stdout, "the prototypes")}, errs...)...)
}

// infoType prints the types that a word names. If it names none, infoType returns reason,
// the error about the word as a function, with the nearest name of a type as its hint,
// unless it has a hint.
func infoType(out *output, word string, kernel *compiler.Target, reason error) error {
	if found, err := findTypes(word, kernel); err == nil && len(found) > 0 {
		return printTypes(out, found)
	}
	var e *spec.Error
	if errors.As(reason, &e) && e.Hint == "" {
		if near, ok := resolve.NearestType(kernel, word); ok {
			return e.WithMeant("%s", near)
		}
	}
	return reason
}

// isFunction reports whether the kernel itself has the type of a function of this name,
// with or without code.
func isFunction(name string, kernel *compiler.Target) bool {
	var f *btf.Func
	return kernel.Kernel.TypeByName(name, &f) == nil
}

// asked is something that info explains: a function or an event, or a type.
type asked struct {
	word  string
	trace *spec.Trace // or nil if it can only be a type
}

// asked returns what files and words ask for, in their order, and the traces of these.
func (o *ListOptions) asked() (all []asked, traces []*spec.Trace, err error) {
	words := o.Specs.Texts
	specs := o.Specs
	specs.Texts = slices.DeleteFunc(slices.Clone(words), asksType)
	if len(specs.Texts)+len(specs.Files) > 0 {
		if traces, err = specs.Parse(); err != nil {
			return nil, nil, err
		}
	}
	rest := traces
	next := func(word string) {
		all = append(all, asked{word, rest[0]})
		rest = rest[1:]
	}
	for len(rest) > len(specs.Texts) { // those of files come first
		next("")
	}
	for _, word := range words {
		if asksType(word) {
			all = append(all, asked{word, nil})
		} else {
			next(word)
		}
	}
	return all, traces, nil
}

// isBareName reports whether a trace may have been meant as a type.
func isBareName(t *spec.Trace) bool {
	return t.Line == nil && !t.Tracepoint && !t.Iterator && t.AllItems() == nil && !spec.IsGlob(t.Func.Name)
}

// List prints what can be traced.
func List(o *ListOptions, stdout io.Writer) error {
	out := o.output(stdout)
	if len(o.Specs.Texts)+len(o.Specs.Files) == 0 {
		o.Specs.Texts = everywhere(o.Kernel)
	}
	traces, err := o.Specs.Parse()
	if err != nil {
		return err
	}
	var errs []error
	_, err = o.Kernel.Open(traces, func(kernel *compiler.Target) bool {
		out.text.Reset()
		errs = nil
		all := true
		for _, t := range traces {
			fit, err := list(out, t, kernel, o.Takes)
			all = all && fit
			errs = append(errs, err)
		}
		if len(o.Takes) > 0 && out.text.Len() == 0 && errors.Join(errs...) == nil {
			errs = append(errs, noneTakes(o.Takes, kernel))
		}
		return all
	})
	if err != nil {
		return err
	}
	return errors.Join(append([]error{out.flush(stdout, "the list")}, errs...)...)
}

// info prints the prototypes of the functions of a trace, or the event of a line.
func info(out *output, t *spec.Trace, kernel *compiler.Target) error {
	if t.Line != nil {
		return infoLine(out, t, kernel)
	}
	functions, err := findFunctions(t, kernel)
	if err == nil && len(functions) > 0 && t.AllItems() != nil {
		err = fitsOne(t, functions, kernel)
	}
	if err != nil {
		return t.Locate(err)
	}
	for _, fn := range functions {
		out.line(declaration(fn)+";", 4, newFunctionObject(fn))
	}
	return nil
}

// fitsOne returns nil if at least one of the functions of a trace has the values that the
// spec names. Otherwise it returns the error for one of them: if there are several, for the
// one with the nearest name.
func fitsOne(t *spec.Trace, functions []*compiler.Function, kernel *compiler.Target) error {
	var misfit *spec.Error
	for _, fn := range functions {
		err := resolve.Fits(named(t, fn.Name), kernel)
		var e *spec.Error
		if len(functions) == 1 || !errors.As(err, &e) {
			return err
		}
		if misfit == nil || e.Meant != "" && misfit.Meant == "" {
			misfit = e
		}
	}
	misfit.Msg = fmt.Sprintf("none of the %d functions that match '%s' has what the spec names: %s", len(functions), t.Func.Name, misfit.Msg)
	if misfit.Meant == "" {
		misfit.Hint = "" // it is about one function of many
	}
	return misfit
}

// infoLine prints the fields of a kprobe_events line's event, whether or not the
// kernel can trace it.
func infoLine(out *output, t *spec.Trace, kernel *compiler.Target) error {
	features := target.FeaturesOf("", kernel.Kernel, kernel.Arch)
	able := *kernel
	able.Features = features
	able.Features.ConsistentBTF = kernel.Features.ConsistentBTF // as this decides how far BTF can be trusted
	p, err := resolve.One(t, &able)
	if err != nil {
		return t.Locate(err)
	}
	format := render.EventFormat(p)
	out.block(format, newEventObject(t, format))
	return nil
}

// findFunctions returns the function of a trace, or those that its glob matches.
func findFunctions(t *spec.Trace, target *compiler.Target) ([]*compiler.Function, error) {
	if !spec.IsGlob(t.Func.Name) {
		fn, err := resolve.FindFunction(t, target)
		if err != nil {
			return nil, err
		}
		return []*compiler.Function{fn}, nil
	}
	names, err := globNames(t, target)
	if err != nil {
		return nil, err
	}
	var functions []*compiler.Function
	for _, name := range names {
		// Functions that their name does not identify are left out: list shows why.
		if fn, err := resolve.FindFunction(named(t, name), target); err == nil {
			functions = append(functions, fn)
		}
	}
	return functions, nil
}

// globNames returns the functions that a glob matches, or an error if there are none.
func globNames(t *spec.Trace, target *compiler.Target) ([]string, error) {
	names, err := resolve.Names(t, target)
	if err == nil && len(names) == 0 {
		return nil, resolve.NoMatch(t)
	}
	return names, err
}

// named returns a trace of one function of a glob.
func named(t *spec.Trace, name string) *spec.Trace {
	one := *t
	one.Func.Name = name
	return &one
}

// declaration returns the prototype of a function, a tracepoint or an iterator.
func declaration(fn *compiler.Function) string {
	text := btfdump.Decl(fn.Type, fn.Name)
	switch {
	case fn.Tracepoint:
		return "tp:" + strings.TrimPrefix(text, "void ")
	case fn.Iterator:
		return "iter:" + strings.TrimPrefix(text, "void ")
	}
	return text
}

// prototype returns what BTF has of a function that may be impossible to trace, or nil.
func prototype(t *spec.Trace, target *compiler.Target) *compiler.Function {
	if t.Iterator || t.Tracepoint {
		if fn, err := resolve.FindFunction(t, target); err == nil {
			return fn
		}
		return nil
	}
	types := target.Kernel
	if m := t.Module.Name; m != "" && target.Module != nil {
		if of, err := target.Module(m); err == nil {
			types = of
		}
	}
	found, err := types.AnyTypesByName(t.Func.Name)
	if err != nil {
		return nil
	}
	for _, typ := range found {
		if f, ok := typ.(*btf.Func); ok {
			return &compiler.Function{Name: f.Name, Module: t.Module.Name, Type: f}
		}
	}
	return nil
}

// list lists one function, or all that a glob matches. With takes, it lists only those
// with arguments of all these types. It reports whether all of them can be traced.
func list(out *output, t *spec.Trace, target *compiler.Target, takes []string) (fit bool, err error) {
	all := *target
	all.Symbols, all.Hookable = nil, nil // include functions that cannot be traced
	names := []string{t.Func.Name}
	if spec.IsGlob(t.Func.Name) {
		if names, err = globNames(t, &all); err != nil {
			return false, err
		}
	}
	if len(takes) > 0 {
		if names, err = taking(names, takes, t, target); err != nil {
			return false, err
		}
	}
	fit = true
	for _, name := range names {
		one := listOne(named(t, name), target)
		if one.probe == nil && one.fn == nil && len(names) == 1 {
			_, err := resolve.FindFunction(t, target)
			return false, err
		}
		fit = fit && one.Reason == ""
		out.line(one.text(), 18, one.object())
	}
	return fit, nil
}

// listed is a function of the list.
type listed struct {
	trace  *spec.Trace
	probe  *compiler.Probe    // or nil if it cannot be traced
	fn     *compiler.Function // if it cannot be traced: its name and type, or nil if the kernel has no such function
	Reason string             // why it cannot be traced
}

// listOne finds out how a function would be attached, or why it cannot be.
func listOne(t *spec.Trace, target *compiler.Target) *listed {
	p, err := resolve.One(t, target)
	if err == nil && (t.Tracepoint || t.Iterator || target.Hookable == nil || target.Hookable(t.Func.Name)) {
		return &listed{trace: t, probe: p}
	}
	l := &listed{trace: t, fn: prototype(t, target)}
	l.Reason = "the kernel has no hook in it: it is marked notrace, or was inlined everywhere"
	var refused *spec.Error
	switch {
	case errors.As(err, &refused):
		l.Reason = refused.Msg
	case err != nil:
		l.Reason = err.Error()
	}
	return l
}

func (l *listed) text() string {
	if l.probe != nil {
		return fmt.Sprintf("%-17s %s;", chosenKinds(l.probe), declaration(l.probe.Func))
	}
	proto := l.trace.Func.Name
	if l.fn != nil {
		proto = declaration(l.fn)
	}
	return fmt.Sprintf("%-17s %s;  // %s", "-", proto, render.PlainName(l.Reason))
}

func (l *listed) object() *functionObject {
	if l.probe != nil {
		o := newFunctionObject(l.probe.Func)
		o.Attach = chosenKinds(l.probe)
		return o
	}
	o := newPrototypeObject(l.trace.Func.Name, nil)
	o.Module = btfdump.JSONString(l.trace.Module.Name)
	if l.fn != nil {
		o = newFunctionObject(l.fn)
	}
	o.Reason = btfdump.JSONString(l.Reason)
	return o
}

// chosenKinds returns the attach kinds of the sides of a probe that do something.
func chosenKinds(p *compiler.Probe) string {
	entry, ret := p.OnEntry || p.Stash, p.OnReturn
	switch {
	case entry && ret && p.Attach.Entry != p.Attach.Return:
		return string(p.Attach.Entry + "+" + p.Attach.Return)
	case ret:
		return string(p.Attach.Return)
	}
	return string(p.Attach.Entry)
}
