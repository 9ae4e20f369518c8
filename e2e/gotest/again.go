package main

import (
	"regexp"
	"slices"
	"strings"
)

// flags are those flags of a run that a command needs to repeat one test of it.
type flags struct {
	build  []string // of go test
	custom []string // of the tests
}

// A kind of flag decides if a value follows the flag, and if a command
// that repeats one test keeps it.
type kind int

const (
	custom kind = iota // not a flag of go test
	keptSwitch
	keptValue
	droppedSwitch
	droppedValue
)

// flagNames lists the flags of go test by their kind.
var flagNames = map[kind]string{
	keptSwitch:    "a asan linkshared modcacherw msan race short trimpath work x buildvcs fullpath",
	keptValue:     "C asmflags buildmode compiler cpu exec gccgoflags gcflags installsuffix ldflags mod modfile overlay pgo pkgdir tags toolexec",
	droppedSwitch: "artifacts benchmem c cover failfast i json n v",
	droppedValue: "bench benchtime blockprofile blockprofilerate count covermode coverpkg coverprofile cpuprofile fuzz fuzzminimizetime fuzztime " +
		"list memprofile memprofilerate mutexprofile mutexprofilefraction o outputdir p parallel run shuffle skip timeout trace vet",
}

// kindOf returns the kind of a flag, and reports whether its value is the next
// argument.
func kindOf(arg string) (k kind, next bool) {
	name, _, hasValue := strings.Cut(strings.TrimLeft(arg, "-"), "=")
	name = strings.TrimPrefix(name, "test.")
	for k, names := range flagNames {
		if slices.Contains(strings.Fields(names), name) {
			return k, !hasValue && (k == keptValue || k == droppedValue)
		}
	}
	return custom, false
}

// keptFlags returns the flags to keep among the arguments of go test. Like go test,
// it takes all that follows the first flag that go test does not know for arguments
// of the tests, except for flags that go test knows.
func keptFlags(args []string) (f flags) {
	for len(args) > 0 {
		arg, taken := args[0], 1
		if arg == "-args" || arg == "--args" {
			f.custom = append(f.custom, args...)
			break
		}
		k, next := custom, false
		if strings.HasPrefix(arg, "-") {
			k, next = kindOf(arg)
		} else if len(f.custom) == 0 { // a package
			args = args[1:]
			continue
		}
		if next && len(args) > 1 {
			taken = 2
		}
		switch k {
		case custom:
			f.custom = append(f.custom, args[:taken]...)
		case keptSwitch, keptValue:
			f.build = append(f.build, args[:taken]...)
		}
		args = args[taken:]
	}
	return f
}

// again returns the command that repeats a failure.
func (f flags) again(what failure) string {
	if what.again != "" {
		return what.again
	}
	args := slices.Concat([]string{"go", "test"}, f.build, []string{what.pkg})
	switch pattern := runPattern(what.test); {
	case what.test == "":
	case strings.HasPrefix(what.test, "Benchmark"):
		args = append(args, "-run", "^$", "-bench", pattern)
	default:
		args = append(args, "-run", pattern)
	}
	if what.seed != "" && !f.hasSeed() {
		args = append(args, "-seed", what.seed)
	}
	args = append(args, f.custom...)
	for i, arg := range args {
		args[i] = quote(arg)
	}
	return strings.Join(args, " ")
}

func (f flags) hasSeed() bool {
	return slices.ContainsFunc(f.custom, func(arg string) bool {
		name, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		return name == "seed"
	})
}

// runPattern returns the value of -run that selects a test. A dot is left as it
// is, to be readable.
func runPattern(test string) string {
	levels := strings.Split(test, "/")
	for i, level := range levels {
		levels[i] = "^" + strings.ReplaceAll(regexp.QuoteMeta(level), `\.`, ".") + "$"
	}
	return strings.Join(levels, "/")
}

// plain matches what means itself in a shell.
var plain = regexp.MustCompile(`^[\w./:,=@%+-]+$`)

// quote returns arg as it is to be written in a shell.
func quote(arg string) string {
	if plain.MatchString(arg) {
		return arg
	}
	return "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
}
