package target

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/exit"
	"github.com/ksnoop/ksnoop/compiler/spec"
)

// addConditions adds conditions to those of each trace.
func addConditions(conds []spec.Cond, traces []*spec.Trace) {
	for _, t := range traces {
		for _, cond := range conds {
			if t.Cond != nil {
				cond = &spec.And{X: cond, Y: t.Cond}
			}
			t.Cond = cond
		}
	}
}

// UserCondition returns the condition $uid == ID for a user, who is looked up in the
// file passwd.
func UserCondition(option, text, passwd string) (spec.Cond, error) {
	id, err := findUser(option, text, passwd)
	if err != nil {
		return nil, err
	}
	return builtinItem("uid", spec.Eq, spec.Constant{Kind: spec.Integer, Text: fmt.Sprint(id), Abs: uint64(id)}), nil
}

// builtinItem returns the comparison $name op constant.
func builtinItem(name string, op spec.Op, c spec.Constant) *spec.Item {
	return &spec.Item{
		Value: &spec.Builtin{Name: spec.Ident{Name: name}},
		Pred:  &spec.Predicate{Op: op, Const: c},
	}
}

// longestComm is the maximum length of a thread's name.
const longestComm = 15

// CommCondition returns the condition $comm ~ "glob".
func CommCondition(option, glob string) (spec.Cond, error) {
	elements, err := spec.ParseGlob(glob)
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", option, err)
	}
	least := 0
	for _, e := range elements {
		if !e.Star {
			least++
		}
	}
	if least == 0 && len(elements) == 0 || least > longestComm {
		return nil, exit.Usagef("--%s is %q: no thread can have such a name, which has 1 to %d characters", option, glob, longestComm)
	}
	return builtinItem("comm", spec.Glob, spec.Constant{Kind: spec.String, Text: strconv.Quote(glob), Str: glob}), nil
}

// findUser returns the id of a user, by name or number.
func findUser(option, text, passwd string) (uint32, error) {
	if n, err := strconv.ParseUint(text, 10, 32); err == nil {
		return uint32(n), nil
	}
	users, err := ReadUsers(passwd)
	if err != nil {
		return 0, exit.Usagef("--%s is %q: names need %v; give the number", option, text, err)
	}
	for _, u := range users {
		if u.Name == text {
			return u.Id, nil
		}
	}
	return 0, exit.Usagef("--%s is %q: there is no such user in %s; give the number", option, text, passwd)
}

// user is a line of the file passwd.
type user struct {
	Name string
	Id   uint32
}

// ReadUsers returns the users of the file passwd. Package os/user cannot list them, and
// with it go install would make a binary that needs the C library.
func ReadUsers(passwd string) (users []user, err error) {
	f, err := os.Open(passwd)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.Split(lines.Text(), ":")
		if len(fields) <= 2 {
			continue
		}
		if id, err := strconv.ParseUint(fields[2], 10, 32); err == nil {
			users = append(users, user{fields[0], uint32(id)})
		}
	}
	return users, nil
}
