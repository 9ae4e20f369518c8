// Package vm boots Debian's kernels under QEMU, with an initramfs that holds
// nothing but the given files. It needs apt for the kernels and QEMU's software
// emulation, so no root and no hardware virtualisation once QEMU is there.
//
//	qemu, err := vm.QEMU(ctx)
//	kernel, err := vm.NewCache().Kernel(ctx, vm.Matrix[0])
//	err = vm.Machine{QEMU: qemu, Kernel: kernel, Files: files}.Run(ctx, os.Stdout)
package vm

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A Suite is a Debian suite and the kernel line that is taken from it.
type Suite struct {
	Name string // as in sources.list
	Line string // the version's first two numbers; empty for the newest
}

// Matrix lists the kernels that every test runs on: the ones that Debian
// supports, the last long-term line, and the newest there is.
var Matrix = []Suite{
	{"bullseye", "5.10"},
	{"bookworm", "6.1"},
	{"trixie", "6.12"},
	{"trixie-backports", "6.18"},
	{"sid", ""},
}

// String returns the line, or "newest".
func (s Suite) String() string {
	if s.Line == "" {
		return "newest"
	}
	return s.Line
}

// imagePackage matches the packages that stand for one kernel. Cloud kernels
// are the smallest that Debian builds, and boot fastest.
var imagePackage = regexp.MustCompile(`^linux-image-(\d.*-cloud-amd64)$`)

// newest returns the release of the newest of the suite's kernels among packages.
func (s Suite) newest(packages []string) (string, error) {
	var releases []string
	for _, p := range packages {
		m := imagePackage.FindStringSubmatch(p)
		if m != nil && (s.Line == "" || strings.HasPrefix(m[1], s.Line+".")) {
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

var digits = regexp.MustCompile(`\d+`)

func numbers(release string) []int {
	var ns []int
	for _, d := range digits.FindAllString(strings.TrimSuffix(release, "-cloud-amd64"), -1) {
		n, _ := strconv.Atoi(d) // digits only
		ns = append(ns, n)
	}
	return ns
}
