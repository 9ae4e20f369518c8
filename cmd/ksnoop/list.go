package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
)

func listCommand() *subcommand {
	return &subcommand{
		name:     "list",
		usage:    "list what can be traced, how, and what cannot and why",
		operands: "GLOB...",
		description: `A line for each function: how it would be attached, and its prototype.

   ksnoop list 'tcp_*'             functions of the kernel, and of modules that are named alone
   ksnoop list 'nf_conntrack:*'    all of a module
   ksnoop list 'tp:sched_*'        tracepoints`,
		flags: []flags{typesFlag, featuresFlag, colorFlag},
		run:   list,
	}
}

// list prints what can be traced.
func list(c *invocation) error {
	traces, target, err := openSpecs(c)
	if err != nil {
		return err
	}
	if err := setColor(c); err != nil {
		return err
	}
	width := widthOf(c.stdout)
	out := bufio.NewWriterSize(c.stdout, 64<<10)
	var errs []error
	for _, t := range traces {
		errs = append(errs, listTrace(out, t, target, width))
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write the list: %w", err)
	}
	return errors.Join(errs...)
}

// listTrace lists one function, or all that a glob means.
func listTrace(w io.Writer, t *spec.Trace, target *compiler.Target, width int) error {
	all := *target
	all.Symbols, all.Hookable = nil, nil // those too that cannot be traced
	names := []string{t.Func.Name}
	if spec.IsGlob(t.Func.Name) {
		var err error
		if names, err = globNames(t, &all); err != nil {
			return err
		}
	}
	for _, name := range names {
		line, known := listLine(named(t, name), target)
		if !known && len(names) == 1 {
			_, err := compiler.FindFunction(t, target)
			return err
		}
		fmt.Fprintln(w, wrap(line, width, 18))
	}
	return nil
}

// listLine is how a function would be attached, or why it cannot be. known says
// that there is a function of that name.
func listLine(t *spec.Trace, target *compiler.Target) (line string, known bool) {
	p, err := compiler.Resolve(t, target)
	if err == nil && (t.Tracepoint || target.Hookable == nil || target.Hookable(t.Func.Name)) {
		return fmt.Sprintf("%-17s %s;", chosenKinds(p), declaration(p.Func)), true
	}
	reason := "the kernel has no hook in it: it is marked notrace, or was inlined everywhere"
	var refused *spec.Error
	switch {
	case errors.As(err, &refused):
		reason = refused.Msg
	case err != nil:
		reason = err.Error()
	}
	proto, known := prototype(t, target)
	return fmt.Sprintf("%-17s %s;  // %s", "-", proto, plainName(reason)), known
}

// chosenKinds is the attach kinds of the sides of a probe that do something.
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
