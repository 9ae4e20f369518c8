package check

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cilium/ebpf/btf"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/exit"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/target"
	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/resolve"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/kallsyms"
	"github.com/ksnoop/ksnoop/runtime"
)

// kernel is a kernel to check against.
type kernel struct {
	name     string
	types    string // file, or "" for those of the running kernel
	symbols  string // file, or "" for none or those of the running kernel
	features string // version, or "" for the newest or what the running kernel can do
	release  string // "" if unknown
}

// openKernels returns the kernels that the options select. It fails for files that
// do not exist, before there are results.
func openKernels(o *Options) ([]*kernel, error) {
	types, symbols, features := o.Types, o.Symbols, o.Features
	if len(types) == 0 && len(symbols) == 0 && len(features) <= 1 {
		k, err := runningKernel(features)
		return []*kernel{k}, err
	}
	switch {
	case len(symbols) > 0 && len(symbols) != len(types):
		return nil, exit.Usagef("--symbols and --btf are given %d and %d times: give one for each kernel, in the same order", len(symbols), len(types))
	case len(features) > 1 && len(features) != len(types):
		return nil, exit.Usagef("--kernel-features and --btf are given %d and %d times: give the first once, or once for each kernel", len(features), len(types))
	}
	var all []*kernel
	for i, name := range fileNames(types) {
		k := &kernel{name: name, types: types[i]}
		if slices.ContainsFunc(all, func(k *kernel) bool { return k.name == name }) {
			return nil, exit.Usagef("--btf %s is given twice: once is enough", k.types)
		}
		if len(symbols) > 0 {
			k.symbols = symbols[i]
		}
		if len(features) > 0 {
			k.features = features[min(i, len(features)-1)]
			k.release = k.features
		}
		if err := k.verify(); err != nil {
			return nil, err
		}
		all = append(all, k)
	}
	return all, nil
}

func runningKernel(features []string) (*kernel, error) {
	release, err := runtime.Release()
	k := &kernel{name: release, release: release}
	if err == nil && len(features) > 0 {
		k.features = features[0]
	}
	return k, err
}

// verify returns an error unless the files exist.
func (k *kernel) verify() error {
	for _, file := range []string{k.types, k.symbols} {
		if file == "" {
			continue
		}
		f, err := os.Open(file)
		if err != nil {
			return exit.Misuse(err)
		}
		f.Close()
	}
	return nil
}

// fileNames returns a short distinct name for each file: it leaves out the path
// elements that all have at the end, and takes as many before them as needed.
func fileNames(files []string) []string {
	var paths [][]string
	for _, f := range files {
		parts := strings.Split(filepath.Clean(f), string(filepath.Separator))
		slices.Reverse(parts)
		paths = append(paths, parts)
	}
	same := func(n int) bool { // all end with the same n elements, and have more
		return !slices.ContainsFunc(paths, func(p []string) bool {
			return len(p) <= n || !slices.Equal(p[:n], paths[0][:n])
		})
	}
	skip := 0
	for len(files) > 1 && same(skip+1) {
		skip++
	}
	names := make([]string, len(files))
	for take := 1; ; take++ {
		longer := false
		for i, p := range paths {
			part := slices.Clone(p[skip:min(skip+take, len(p))])
			slices.Reverse(part)
			names[i] = strings.Join(part, "/")
			longer = longer || skip+take < len(p)
		}
		if !longer || len(slices.Compact(slices.Sorted(slices.Values(names)))) == len(names) {
			return names
		}
	}
}

// errVmlinuxAlone is the reason why nothing is known of modules.
var errVmlinuxAlone = errors.New("--btf has only the types of vmlinux")

// open reads the description of the kernel.
func (k *kernel) open(subjects []*subject) (*compiler.Target, error) {
	var traces []*spec.Trace
	for _, s := range subjects {
		traces = append(traces, s.traces()...)
	}
	traces = append(traces, target.ObjectEnds(traces)...)
	kernel, err := target.Describe(k.types, traces)
	if err != nil {
		return nil, err
	}
	if k.types != "" {
		kernel.Module = func(string) (*btf.Spec, error) { return nil, errVmlinuxAlone }
	}
	if k.types != "" || k.features != "" {
		kernel.Features = target.FeaturesOf(k.features, kernel.Kernel, kernel.Arch)
	}
	if k.symbols != "" {
		kernel.Symbols, err = readSymbolFile(k.symbols, resolve.Symbols(traces).Keep)
		kernel.AllSymbols = func() (*kallsyms.Table, error) { return readSymbolFile(k.symbols, nil) }
	}
	return kernel, err
}

// readSymbolFile reads those symbols of a file for which keep returns true.
func readSymbolFile(name string, keep func(string) bool) (*kallsyms.Table, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	empty := true
	table, err := kallsyms.Read(f, func(name string) bool {
		empty = false
		return keep == nil || keep(name)
	})
	if err == nil && empty { // a copy has failed; every function would be one without code
		err = errors.New("there are no symbols in it: copy /proc/kallsyms of a machine that runs the kernel")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return table, nil
}
