package main

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/cilium/ebpf/btf"

	"github.com/ksnoop/ksnoop/btfdump"
	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
)

func infoCommand() *subcommand {
	return &subcommand{
		name:     "info",
		usage:    "show the prototypes of functions and tracepoints, and the fields of events",
		operands: "FUNCTION...",
		description: `A FUNCTION may have a module before it, and wildcards:

   ksnoop info vfs_read
   ksnoop info 'tcp_*' tp:sched_switch nf_conntrack:nf_conntrack_in

Of a kprobe_events line it shows what the event's file format in tracefs would say:

   ksnoop info 'p:read vfs_read count=$arg3'`,
		flags: []flags{hidden(programFlags, talkFlags), fileFlag, typesFlag, colorFlag},
		run:   info,
	}
}

// info prints the prototype of each function that it finds.
func info(c *invocation) error {
	traces, target, err := openSpecs(c)
	if err != nil {
		return err
	}
	if err := setColor(c); err != nil {
		return err
	}
	width := widthOf(c.stdout)
	var text bytes.Buffer
	var errs []error
	for _, t := range traces {
		if t.Probe != nil {
			errs = append(errs, infoLine(&text, t, target))
			continue
		}
		functions, err := findFunctions(t, target)
		errs = append(errs, located(err, t))
		for _, fn := range functions {
			fmt.Fprintln(&text, wrap(declaration(fn)+";", width, 4))
		}
	}
	if _, err := text.WriteTo(c.stdout); err != nil {
		return fmt.Errorf("write the prototypes: %w", err)
	}
	return errors.Join(errs...)
}

// infoLine prints what the event of a kprobe_events line has, whether or not the
// kernel can trace it.
func infoLine(text *bytes.Buffer, t *spec.Trace, target *compiler.Target) error {
	features, err := featuresOf("", target.Kernel, target.Arch)
	if err != nil {
		return err
	}
	able := *target
	able.Features = features
	able.Features.ConsistentBTF = target.Features.ConsistentBTF // says what BTF is worth
	p, err := compiler.Resolve(t, &able)
	if err != nil {
		return located(err, t)
	}
	if text.Len() > 0 {
		text.WriteByte('\n')
	}
	text.WriteString(eventFormat(p))
	return nil
}

// located says of an error in a trace of a file where that is.
func located(err error, t *spec.Trace) error {
	if refusal := (*spec.Error)(nil); errors.As(err, &refusal) {
		refusal.From = t.From
	}
	return err
}

// findFunctions is the function of a trace, or those that its glob means.
func findFunctions(t *spec.Trace, target *compiler.Target) ([]*compiler.Function, error) {
	if !spec.IsGlob(t.Func.Name) {
		fn, err := compiler.FindFunction(t, target)
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
		// What cannot be told apart by its name is left out: list says why.
		if fn, err := compiler.FindFunction(named(t, name), target); err == nil {
			functions = append(functions, fn)
		}
	}
	return functions, nil
}

// globNames is what a glob means, which must be something.
func globNames(t *spec.Trace, target *compiler.Target) ([]string, error) {
	names, err := compiler.Names(t, target)
	if err == nil && len(names) == 0 {
		return nil, compiler.NoMatch(t)
	}
	return names, err
}

// named is one function of a glob.
func named(t *spec.Trace, name string) *spec.Trace {
	one := *t
	one.Func.Name = name
	return &one
}

// declaration is the prototype of a function, or of a tracepoint.
func declaration(fn *compiler.Function) string {
	if !fn.Tracepoint {
		return btfdump.Decl(fn.Type, fn.Name)
	}
	return "tp:" + strings.TrimPrefix(btfdump.Decl(fn.Type, fn.Name), "void ")
}

// prototype is what BTF says of a function that may not be one to trace.
func prototype(t *spec.Trace, target *compiler.Target) (string, bool) {
	types := target.Kernel
	if m := t.Module.Name; m != "" && target.Module != nil {
		if of, err := target.Module(m); err == nil {
			types = of
		}
	}
	found, err := types.AnyTypesByName(t.Func.Name)
	if err != nil {
		return t.Func.Name, false
	}
	for _, typ := range found {
		if f, ok := typ.(*btf.Func); ok {
			return btfdump.Decl(f, f.Name), true
		}
	}
	return t.Func.Name, false
}
