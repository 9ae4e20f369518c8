//go:build linux

package e2e

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/ksnoop/ksnoop/e2e/vm"
)

// oneKernel is the kernel for tests that need only one.
const oneKernel = "6.12"

// fetched maps each vm.Suite to a function that fetches its kernel once.
var fetched sync.Map

func fetchKernel(s vm.Suite) (vm.Kernel, error) {
	fetch, _ := fetched.LoadOrStore(s, sync.OnceValues(func() (vm.Kernel, error) {
		return vm.NewCache().Kernel(context.Background(), s)
	}))
	return fetch.(func() (vm.Kernel, error))()
}

// fetchBusybox fetches a shell for the guest, once.
var fetchBusybox = sync.OnceValues(func() (string, error) { return vm.NewCache().Busybox(context.Background()) })

// fetchAll starts to fetch kernels, all at once, because most of the time is
// waiting. Its caller also calls fetchKernel for each of them.
func fetchAll(suites []vm.Suite) {
	for _, suite := range suites {
		go fetchKernel(suite)
	}
}

// kernelOf returns the amd64 kernel of a line. It skips the test if the kernel
// cannot be fetched.
func kernelOf(t *testing.T, line string) vm.Kernel { return kernelFor(t, vm.AMD64, line) }

// kernelFor returns the kernel of a line for an architecture, as kernelOf does.
func kernelFor(t *testing.T, a vm.Arch, line string) vm.Kernel {
	kernel, err := fetchKernel(suiteOf(a, line))
	if err != nil {
		t.Logf("missing: %s for %s: %s", line, t.Name(), oneLine(err))
		t.SkipNow()
	}
	return kernel
}

func suiteOf(a vm.Arch, line string) vm.Suite {
	all := vm.Matrix(a)
	return all[slices.IndexFunc(all, func(s vm.Suite) bool { return s.String() == line })]
}

// longestFirst returns the matrix in the order in which the machines boot: first
// oneKernel, which runs the most without -full.
func longestFirst(a vm.Arch) []vm.Suite {
	all := vm.Matrix(a)
	slices.Reverse(all)
	one := suiteOf(a, oneKernel)
	return slices.Insert(slices.DeleteFunc(all, func(s vm.Suite) bool { return s == one }), 0, one)
}
