package main

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/ksnoop/ksnoop/compiler/spec"
)

// filterFlags is whose calls are traced.
func filterFlags(f *pflag.FlagSet) {
	f.StringP("pid", "p", "", "trace only process `PID`, with all its threads")
	f.StringP("tid", "t", "", "trace only thread `TID`")
	f.Bool("tree", false, "trace only the process of -p, or the command behind --, and its descendants")
	f.String("comm", "", "trace only threads whose name matches `GLOB`, as if each spec had 'if $comm ~ \"GLOB\"'")
	f.String("uid", "", "trace only threads of `USER`, a name or a number, as if each spec had 'if $uid == N'")
	f.String("cgroup", "", "trace only threads in the cgroup (v2) with this `DIRECTORY` or id, or below it")
}

// addConditions joins --comm and --uid to the conditions of all specs.
func addConditions(c *invocation, traces []*spec.Trace) error {
	var conds []spec.Cond
	if c.IsSet("comm") {
		cond, err := commCondition(c.String("comm"))
		if err != nil {
			return err
		}
		conds = append(conds, cond)
	}
	if c.IsSet("uid") {
		id, err := findUser(c.String("uid"), "/etc/passwd")
		if err != nil {
			return err
		}
		conds = append(conds, builtinTest("uid", spec.Eq, spec.Constant{Kind: spec.Integer, Text: fmt.Sprint(id), Abs: uint64(id)}))
	}
	for _, t := range traces {
		for _, cond := range conds {
			if t.Cond != nil {
				cond = &spec.And{X: cond, Y: t.Cond}
			}
			t.Cond = cond
		}
	}
	return nil
}

// builtinTest is $name op constant.
func builtinTest(name string, op spec.Op, c spec.Constant) *spec.Item {
	return &spec.Item{
		Value: &spec.Builtin{Name: spec.Ident{Name: name}},
		Pred:  &spec.Predicate{Op: op, Const: c},
	}
}

// longestComm is how long the name of a thread can be.
const longestComm = 15

// commCondition is $comm ~ "glob".
func commCondition(glob string) (spec.Cond, error) {
	elements, err := spec.ParseGlob(glob)
	if err != nil {
		return nil, usagef("--comm: %w", err)
	}
	least := 0
	for _, e := range elements {
		if !e.Star {
			least++
		}
	}
	if least == 0 && len(elements) == 0 || least > longestComm {
		return nil, usagef("--comm is %q: no thread can have such a name, which has 1 to %d characters", glob, longestComm)
	}
	return builtinTest("comm", spec.Glob, spec.Constant{Kind: spec.String, Text: strconv.Quote(glob), Str: glob}), nil
}

// findUser is the id of a user, by name or number. The os/user package would
// ask the C library, which a static program has none of.
func findUser(text, passwd string) (uint32, error) {
	if n, err := strconv.ParseUint(text, 10, 32); err == nil {
		return uint32(n), nil
	}
	f, err := os.Open(passwd)
	if err != nil {
		return 0, usagef("--uid is %q: names need %v; give the number", text, err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if fields := strings.Split(lines.Text(), ":"); len(fields) > 2 && fields[0] == text {
			if n, err := strconv.ParseUint(fields[2], 10, 32); err == nil {
				return uint32(n), nil
			}
		}
	}
	return 0, usagef("--uid is %q: there is no such user in %s; give the number", text, passwd)
}
