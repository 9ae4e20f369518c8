//go:build linux

package script

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"

	"golang.org/x/sys/unix"
)

// A version is the first two numbers of a kernel's.
type version struct{ major, minor int }

func (v version) String() string {
	return fmt.Sprintf("%d.%d", v.major, v.minor)
}

func (v version) compare(w version) int {
	return cmp.Or(cmp.Compare(v.major, w.major), cmp.Compare(v.minor, w.minor))
}

func runningKernel() (version, error) {
	var uts unix.Utsname
	if err := unix.Uname(&uts); err != nil {
		return version{}, err
	}
	var v version
	release := unix.ByteSliceToString(uts.Release[:])
	if _, err := fmt.Sscanf(release, "%d.%d", &v.major, &v.minor); err != nil {
		return version{}, fmt.Errorf("read kernel version of %s: %w", release, err)
	}
	return v, nil
}

var kernelCondition = regexp.MustCompile(`^kernel([<>=!]+)(\d+)\.(\d+)$`)

// condition evaluates kernel>=6.1 and the like.
func (v version) condition(text string) (bool, error) {
	m := kernelCondition.FindStringSubmatch(text)
	if m == nil {
		return false, fmt.Errorf("unknown condition %q, want kernel>=6.1 or the like", text)
	}
	var w version
	w.major, _ = strconv.Atoi(m[2]) // digits only
	w.minor, _ = strconv.Atoi(m[3])
	return compare(v.compare(w), m[1])
}

// compare tells whether an order, as of cmp.Compare, satisfies a C operator.
func compare(order int, operator string) (bool, error) {
	switch operator {
	case "<":
		return order < 0, nil
	case "<=":
		return order <= 0, nil
	case ">":
		return order > 0, nil
	case ">=":
		return order >= 0, nil
	case "==":
		return order == 0, nil
	case "!=":
		return order != 0, nil
	}
	return false, fmt.Errorf("unknown operator %q", operator)
}
