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

// kernelOf returns the kernel of a line. It skips the test if the kernel
// cannot be fetched.
func kernelOf(t *testing.T, line string) vm.Kernel {
	i := slices.IndexFunc(vm.Matrix, func(s vm.Suite) bool { return s.String() == line })
	kernel, err := fetchKernel(vm.Matrix[i])
	if err != nil {
		t.Skip(err)
	}
	return kernel
}

// longestFirst returns the matrix in the order in which the machines boot:
// oneKernel, which runs the most, and then the others.
func longestFirst() []vm.Suite {
	all := slices.Clone(vm.Matrix)
	i := slices.IndexFunc(all, func(s vm.Suite) bool { return s.String() == oneKernel })
	return slices.Insert(slices.Delete(slices.Clone(all), i, i+1), 0, all[i])
}
