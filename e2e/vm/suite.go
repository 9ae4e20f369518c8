// Package vm boots Debian's kernels under QEMU, with an initramfs that holds
// nothing but the given files. It uses apt to fetch the kernels and QEMU's
// software emulation, so it needs neither root nor hardware virtualisation once
// QEMU is installed.
//
//	qemu, err := vm.QEMU(ctx, vm.AMD64)
//	kernel, err := vm.NewCache().Kernel(ctx, vm.Matrix(vm.AMD64)[0])
//	err = vm.Machine{QEMU: qemu, Kernel: kernel, Files: files}.Run(ctx, os.Stdout)
package vm

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A Suite is a Debian suite and the kernel line to take from it.
type Suite struct {
	Name string // as in sources.list
	Line string // the version's first two numbers; empty for the newest
	Arch Arch
}

// Matrix returns the kernels that every test runs on: those that Debian supports,
// the last long-term line, and the newest kernel.
func Matrix(a Arch) []Suite {
	return []Suite{
		{"bullseye", "5.10", a},
		{"bookworm", "6.1", a},
		{"trixie", "6.12", a},
		{"trixie-backports", "6.18", a},
		{"sid", "", a},
	}
}

// String returns the line, or "newest".
func (s Suite) String() string {
	if s.Line == "" {
		return "newest"
	}
	return s.Line
}

// choice returns the name of the cache's file about the suite.
func (s Suite) choice() string {
	return s.Name + "-" + string(s.Arch)
}

// imagePackage matches the packages that represent one kernel. Cloud kernels
// are the smallest that Debian builds, and boot fastest.
var imagePackage = regexp.MustCompile(`^linux-image-(\d.*-cloud-(?:amd64|arm64))$`)

// newest returns the release of the newest of the suite's kernels among
// packages.
func (s Suite) newest(packages []string) (string, error) {
	var releases []string
	for _, p := range packages {
		m := imagePackage.FindStringSubmatch(p)
		if m != nil && strings.HasSuffix(m[1], "-"+string(s.Arch)) && (s.Line == "" || strings.HasPrefix(m[1], s.Line+".")) {
			releases = append(releases, m[1])
		}
	}
	if len(releases) == 0 {
		return "", fmt.Errorf("find a %s kernel in %s: none among %d packages", s, s.Name, len(packages))
	}
	return slices.MaxFunc(releases, compareReleases), nil
}

// compareReleases compares the numbers of two kernel releases, so that 6.18.15
// is newer than 6.18.9.
func compareReleases(a, b string) int {
	return slices.Compare(numbers(a), numbers(b))
}

var (
	digits  = regexp.MustCompile(`\d+`)
	flavour = regexp.MustCompile(`-cloud-[a-z0-9]+$`)
)

func numbers(release string) []int {
	var ns []int
	for _, d := range digits.FindAllString(flavour.ReplaceAllString(release, ""), -1) {
		n, _ := strconv.Atoi(d) // digits only
		ns = append(ns, n)
	}
	return ns
}
