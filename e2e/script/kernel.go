//go:build linux

package script

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/e2e/feature"
)

// A version is the first two numbers of a kernel's version.
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

// traceable reports whether ftrace allows a probe on a function. The kernel takes
// long to print all, so it is asked again only if modules have come or gone.
func traceable(name string) (bool, error) {
	modules, err := os.ReadFile("/proc/modules")
	if err != nil {
		return false, err
	}
	hooks.Lock()
	defer hooks.Unlock()
	if hooks.names == nil || hooks.modules != string(modules) {
		text, err := os.ReadFile("/sys/kernel/tracing/available_filter_functions")
		if err != nil {
			return false, err
		}
		hooks.modules, hooks.names = string(modules), map[string]bool{}
		for field := range strings.FieldsSeq(string(text)) {
			hooks.names[field] = true
		}
	}
	return hooks.names[name], nil
}

// hooks holds the functions that ftrace allowed a probe on with these modules.
var hooks struct {
	sync.Mutex
	modules string
	names   map[string]bool
}

// variables reports whether the kernel lists variables among its symbols
// (CONFIG_KALLSYMS_ALL).
var variables = sync.OnceValues(func() (bool, error) {
	symbols, err := os.ReadFile("/proc/kallsyms")
	return bytes.Contains(symbols, []byte(" init_task\n")), err
})

// has reports whether the kernel attaches programs of a kind.
func has(kind string) (bool, error) {
	if !slices.Contains(feature.Names, kind) {
		return false, fmt.Errorf("unknown kind %q, want one of %v", kind, feature.Names)
	}
	return feature.Has(kind), nil
}

// hasIterator reports whether the kernel has an iterator: its types have the name of
// its programs.
func hasIterator(name string) (bool, error) {
	types, err := os.ReadFile("/sys/kernel/btf/vmlinux")
	return bytes.Contains(types, []byte("\x00bpf_iter_"+name+"\x00")), err
}

// ofArch returns the variables whose values depend on the architecture.
func ofArch() map[string]string {
	if runtime.GOARCH == "arm64" {
		return map[string]string{"SYS": "__arm64_", "R1": "%x0", "R2": "%x1", "R3": "%x2", "LARGE": "0x20000", "READ": "63"}
	}
	return map[string]string{"SYS": "__x64_", "R1": "%di", "R2": "%si", "R3": "%dx", "LARGE": "0x8000", "READ": "0"}
}

var kernelCondition = regexp.MustCompile(`^kernel([<>=!]+)(\d+)\.(\d+)$`)

// condition evaluates a condition such as kernel>=6.1.
func (v version) condition(text string) (bool, error) {
	m := kernelCondition.FindStringSubmatch(text)
	if m == nil {
		return false, fmt.Errorf("unknown condition %q, want full, image, variables, func:NAME, has:KIND, iter:NAME, or kernel>=6.1 or the like", text)
	}
	var w version
	w.major, _ = strconv.Atoi(m[2]) // digits only
	w.minor, _ = strconv.Atoi(m[3])
	return compare(v.compare(w), m[1])
}

// compare reports whether an order, as returned by cmp.Compare, satisfies a C
// operator.
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
