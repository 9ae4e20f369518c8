// Package target determines what a command works on: the specs, and the kernel with
// its types and features.
package target

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/cilium/ebpf/btf"

	"github.com/ksnoop/ksnoop/btfdump/rawbtf"
	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/resolve"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/runtime"
)

// Choice selects the kernel: the running one, unless types or features of another
// one are given.
type Choice struct {
	Types    string // a file
	Features string // one of Versions
}

// Open describes the running kernel for the functions of traces, or the kernel that
// --btf and --kernel-features select, and calls fit as [runtime.OpenFor] does. It
// returns the running kernel, or nil for another one.
func (c Choice) Open(traces []*spec.Trace, fit func(*compiler.Target) bool) (*runtime.Kernel, error) {
	if c == (Choice{}) {
		return runtime.OpenFor(traces, nil, fit)
	}
	target, err := Describe(c.Types, traces)
	if err != nil {
		return nil, err
	}
	target.Features = FeaturesOf(c.Features, target.Kernel, target.Arch)
	fit(target)
	return nil, nil
}

// Describe describes the running kernel or, if file is not "", a kernel of which only
// the types are known.
func Describe(file string, traces []*spec.Trace) (*compiler.Target, error) {
	if file != "" {
		types, err := OpenTypes(file)
		if err != nil {
			return nil, err
		}
		arch, err := resolve.ArchOf(types)
		return &compiler.Target{Kernel: types, Module: NoModule, Arch: arch}, err
	}
	k, err := runtime.OpenKernel()
	if err != nil {
		return nil, err
	}
	return k.TargetFor(traces)
}

// NoModule returns no types: it stands for the modules of a kernel of which only
// one file is known.
func NoModule(string) (*btf.Spec, error) { return nil, compiler.ErrNoModuleBTF }

// OpenTypes reads a BTF file, which may be raw or in an ELF file; if file is "" it
// reads the types of the running kernel.
func OpenTypes(file string) (*btf.Spec, error) {
	if file == "" {
		k, err := runtime.OpenKernel()
		if err != nil {
			return nil, err
		}
		return k.Types(), nil
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("read the types: %w", err)
	}
	defer f.Close()
	types, err := readTypes(f)
	if errors.Is(err, btf.ErrNotFound) {
		return nil, fmt.Errorf("%s has no type information: give a file of raw BTF, or an ELF file with a .BTF section", file)
	}
	if err != nil {
		return nil, fmt.Errorf("read the types of %s: %w", file, err)
	}
	return types, nil
}

// readTypes reads all types, so that an error in any of them is reported now.
func readTypes(f *os.File) (types *btf.Spec, err error) {
	defer func() { // according to package debug/elf, broken files may make it panic
		if broken := recover(); broken != nil {
			types, err = nil, fmt.Errorf("it is broken: %v", broken)
		}
	}()
	raw, object, err := rawbtf.Read(f)
	if err != nil {
		return nil, err
	}
	var file io.ReaderAt = bytes.NewReader(raw)
	if object {
		file = f // the sizes of its data sections come from its symbols
	}
	return rawbtf.Load(raw, file)
}

// ReadRaw reads the BTF of a file of any content.
func ReadRaw(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	raw, _, err := rawbtf.Read(f)
	return raw, err
}
