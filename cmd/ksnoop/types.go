package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/cilium/ebpf/btf"
)

// openTypes reads a BTF file, which may be raw or in an ELF file; without a file
// it reads those of the running kernel.
func openTypes(file string) (*btf.Spec, error) {
	if file == "" {
		k, err := openKernel()
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

// readTypes reads all types, so that whatever is wrong with one of them is said
// now.
func readTypes(f *os.File) (types *btf.Spec, err error) {
	defer func() { // package debug/elf says of itself that broken files may make it panic
		if broken := recover(); broken != nil {
			types, err = nil, fmt.Errorf("it is broken: %v", broken)
		}
	}()
	raw, object, err := readSection(f)
	if err != nil {
		return nil, err
	}
	if err := checkTypes(raw); err != nil {
		return nil, err
	}
	var file io.ReaderAt = bytes.NewReader(raw)
	if object {
		file = f // its sections of data have their sizes from its symbols
	}
	types, err = btf.LoadSpecFromReader(file)
	if err != nil {
		return nil, err
	}
	for _, err := range types.All() {
		if err != nil {
			return nil, err
		}
	}
	return types, nil
}

// readSection reads the BTF of a file as it is, and says whether the file is an
// object of BPF programs.
func readSection(f *os.File) (raw []byte, object bool, err error) {
	if isELF(f) {
		return readELF(f)
	}
	raw, err = readBounded(f)
	return raw, false, err
}

// readRaw reads the BTF of a file that may be anything.
func readRaw(name string) (raw []byte, err error) {
	defer func() { // as in readTypes
		if broken := recover(); broken != nil {
			err = fmt.Errorf("it is broken: %v", broken)
		}
	}()
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	raw, _, err = readSection(f)
	return raw, err
}

func readBounded(r io.Reader) ([]byte, error) {
	raw, err := io.ReadAll(io.LimitReader(r, maxTypes+1))
	if err == nil && len(raw) > maxTypes {
		err = fmt.Errorf("there are more than %d MB", maxTypes>>20)
	}
	return raw, err
}
