package main

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/ksnoop/ksnoop/compiler"
)

func compileCommand() *subcommand {
	return &subcommand{
		name:     "compile",
		usage:    "show what specs compile to: attach kinds, records, maps, annotated programs",
		operands: "SPEC...",
		description: `Any user may do this, for the running kernel or for another one:

   ksnoop compile 'vfs_read(file->f_flags & 2, return < 0)'
   ksnoop compile --btf vmlinux --kernel-features 6.12 -s vfs_read ext4_file_read_iter

The test that leaves out ksnoop itself is not shown.`,
		flags: []flags{programFlags, fileFlag, typesFlag, featuresFlag},
		run:   compile,
	}
}

// compile prints what a unit is made of.
func compile(c *invocation) error {
	traces, target, err := openSpecs(c)
	if err != nil {
		return err
	}
	unit, err := compileTraces(c, traces, target, nil)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	describe(&text, unit)
	if _, err := text.WriteTo(c.stdout); err != nil {
		return fmt.Errorf("write the programs: %w", err)
	}
	return nil
}

// describe prints how each function is traced and why, then the records, maps
// and programs.
func describe(w io.Writer, unit *compiler.Unit) {
	var choices groups
	kinds := attachKinds(unit)
	for _, p := range unit.Probes() {
		choices.add(strings.Join(kinds[p], " and ")+": "+p.Attach.Reason, functionName(p.Func))
	}
	for _, choice := range choices.keys {
		fmt.Fprintf(w, "%s: %s\n", some(choices.names[choice]), choice)
	}
	layouts(w, unit)
	mapTable(w, unit)
	programs(w, unit)
}

// attachKinds names the attach kinds that each probe uses, entry first.
func attachKinds(unit *compiler.Unit) map[*compiler.Probe][]string {
	kinds := map[*compiler.Probe][]string{}
	for _, a := range slices.Backward(unit.Attachments) { // returns are attached first
		for _, place := range a.Places {
			if have := kinds[place.Probe]; !slices.Contains(have, string(a.Kind)) {
				kinds[place.Probe] = append(have, string(a.Kind))
			}
		}
	}
	return kinds
}

// groups are names by what they have in common, in the order of the first of
// each.
type groups struct {
	keys  []string
	names map[string][]string
}

func (g *groups) add(key, name string) {
	if g.names == nil {
		g.names = map[string][]string{}
	}
	if g.names[key] == nil {
		g.keys = append(g.keys, key)
	}
	g.names[key] = append(g.names[key], name)
}

// mostNames is how many names one line has room for.
const mostNames = 5

// some are the first of many names.
func some(names []string) string {
	if more := len(names) - mostNames; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:mostNames], ", "), more)
	}
	return strings.Join(names, ", ")
}
