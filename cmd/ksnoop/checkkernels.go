package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cilium/ebpf/btf"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/kallsyms"
	"github.com/ksnoop/ksnoop/runtime"
)

// checkKernel is a kernel to check against.
type checkKernel struct {
	name     string
	types    string // file; "": the running kernel's
	symbols  string // file; "": none, or the running kernel's
	features string // version; "": the newest, or what the running kernel can do
	release  string // "": not known
}

// checkKernels reads the options that say which kernels are meant. Files that
// are not there are found now, before there are results.
func checkKernels(c *invocation) ([]*checkKernel, error) {
	types, symbols, features := c.Strings("btf"), c.Strings("symbols"), c.Strings("kernel-features")
	if len(types) == 0 && len(symbols) == 0 && len(features) <= 1 {
		k, err := runningKernel(features)
		return []*checkKernel{k}, err
	}
	switch {
	case len(symbols) > 0 && len(symbols) != len(types):
		return nil, usagef("--symbols and --btf are given %d and %d times: give one for each kernel, in the same order", len(symbols), len(types))
	case len(features) > 1 && len(features) != len(types):
		return nil, usagef("--kernel-features and --btf are given %d and %d times: give the first once, or once for each kernel", len(features), len(types))
	}
	var all []*checkKernel
	for i, name := range fileNames(types) {
		k := &checkKernel{name: name, types: types[i]}
		if slices.ContainsFunc(all, func(k *checkKernel) bool { return k.name == name }) {
			return nil, usagef("--btf %s is given twice: once is enough", k.types)
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

func runningKernel(features []string) (*checkKernel, error) {
	release, err := runtime.Release()
	k := &checkKernel{name: release, release: release}
	if err == nil && len(features) > 0 {
		k.features = features[0]
		err = k.verify()
	}
	return k, err
}

// verify makes sure that the files are there, and that the version is one.
func (k *checkKernel) verify() error {
	for _, file := range []string{k.types, k.symbols} {
		if err := readable(file); err != nil {
			return err
		}
	}
	_, err := featuresIndex(k.features)
	return err
}

func readable(file string) error {
	if file == "" {
		return nil
	}
	f, err := os.Open(file)
	if err != nil {
		return usageError{err}
	}
	return f.Close()
}

// fileNames tells files apart by as little of their paths as possible: without
// the names that all have at the end, and from there as much as it takes.
func fileNames(files []string) []string {
	var paths [][]string
	for _, f := range files {
		parts := strings.Split(filepath.Clean(f), string(filepath.Separator))
		slices.Reverse(parts)
		paths = append(paths, parts)
	}
	same := func(n int) bool { // all end with the same n names, and have more
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

// errVmlinuxAlone is why nothing is known of modules.
var errVmlinuxAlone = errors.New("--btf has the types of vmlinux alone")

// open reads what is to be known of the kernel.
func (k *checkKernel) open(subjects []*checkSubject) (*compiler.Target, error) {
	var traces []*spec.Trace
	for _, s := range subjects {
		traces = append(traces, s.traces()...)
	}
	target, err := openKernelTarget(k.types, traces)
	if err != nil {
		return nil, err
	}
	if k.types != "" {
		target.Module = func(string) (*btf.Spec, error) { return nil, errVmlinuxAlone }
	}
	if k.types != "" || k.features != "" {
		if target.Features, err = featuresOf(k.features, target.Kernel, target.Arch); err != nil {
			return nil, err
		}
	}
	if k.symbols != "" {
		target.Symbols, err = readSymbolFile(k.symbols, compiler.Symbols(traces).Keep)
	}
	return target, err
}

// readSymbolFile reads those symbols of a file that keep says yes to.
func readSymbolFile(name string, keep func(string) bool) (*kallsyms.Table, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	table, err := kallsyms.Read(f, keep)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return table, nil
}
