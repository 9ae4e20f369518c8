package main

import (
	"regexp"
	"slices"
	"strings"
)

var (
	// crash matches the first line of a crash of a Go program. One that a test
	// repeats in its log is indented.
	crash = regexp.MustCompile(`^ *((?:panic|fatal error): .*|SIGQUIT: quit)$`)
	// goroutineLine matches the first line of the stack of a goroutine.
	goroutineLine = regexp.MustCompile(`^ *goroutine \d+.* \[.*\]:$`)
	// position matches the second line of a frame.
	position = regexp.MustCompile(`^ *\t(\S+\.go:\d+)(?: \+0x[0-9a-f]+)?$`)
)

// A frame is a function on the stack of a goroutine.
type frame struct {
	function string
	position string
}

// trace returns the first line of a crash and the place in this module where it
// happened, or nil if the lines have none. If the tests ran out of time, the
// place is that of the test at that time.
func trace(lines []string, pkg, test string) []line {
	at := slices.IndexFunc(lines, crash.MatchString)
	if at < 0 || !slices.ContainsFunc(lines[at:], goroutineLine.MatchString) {
		return nil
	}
	text := crash.FindStringSubmatch(lines[at])[1]
	excerpt := []line{{text: text}}
	stacks := goroutines(lines[at:])
	if strings.HasPrefix(text, "panic: test timed out") || strings.HasPrefix(text, "SIGQUIT") {
		stacks = stacksOf(stacks, pkg, test)
	}
	for _, f := range slices.Concat(stacks...) {
		if f.inModuleOf(pkg) {
			return append(excerpt, line{"at " + base(f.position) + " in " + f.function, 1})
		}
	}
	return excerpt
}

// goroutines returns the stacks of the goroutines that a crash prints.
func goroutines(lines []string) (all [][]frame) {
	name := ""
	for _, l := range lines {
		if goroutineLine.MatchString(l) {
			all, name = append(all, nil), ""
			continue
		}
		if m := position.FindStringSubmatch(l); m != nil && name != "" && len(all) > 0 {
			last := &all[len(all)-1]
			*last = append(*last, frame{name, m[1]})
		}
		name = functionOf(l)
	}
	return all
}

// functionOf returns the function that the first line of a frame names, or "".
func functionOf(l string) string {
	if !strings.HasSuffix(l, ")") {
		return ""
	}
	return strings.TrimSpace(l[:max(strings.LastIndex(l, "("), 0)])
}

// stacksOf returns the stacks that the function of a test is on. Those of a
// subtest have a function within that of its test, if there is any.
func stacksOf(stacks [][]frame, pkg, test string) [][]frame {
	top, _, sub := strings.Cut(test, "/")
	var within, all [][]frame
	for _, stack := range stacks {
		for _, f := range stack {
			name := strings.TrimPrefix(strings.TrimPrefix(f.function, pkg), "_test")
			rest, ok := strings.CutPrefix(name, "."+top)
			switch {
			case !ok || rest != "" && rest[0] != '.':
				continue
			case rest != "":
				within = append(within, stack)
			}
			all = append(all, stack)
			break
		}
	}
	if sub && within != nil {
		return within
	}
	return all
}

// inModuleOf reports whether the frame is of the module that a package is in, or
// one beside it, and not of the standard library or a dependency.
func (f frame) inModuleOf(pkg string) bool {
	return firstElement(f.function) == firstElement(pkg) &&
		!strings.Contains(f.position, "@") && !strings.Contains(f.position, "/vendor/")
}

// firstElement returns the start of an import path, or of the name of a function
// in it.
func firstElement(name string) string {
	if first, _, ok := strings.Cut(name, "/"); ok {
		return first
	}
	first, _, _ := strings.Cut(name, ".")
	return first
}
