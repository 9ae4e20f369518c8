package runtime

import (
	"errors"
	"fmt"
	"os"
	goruntime "runtime"

	"github.com/cilium/ebpf/btf"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/kallsyms"
)

// Kernel is the running kernel's types, read once and shared by resolving and
// loading.
type Kernel struct {
	types *btf.Spec
	cache *btf.Cache
}

// OpenKernel reads the types of the running kernel. Any user may.
func OpenKernel() (*Kernel, error) {
	cache := btf.NewCache()
	types, err := cache.Kernel()
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, btf.ErrNotFound) || errors.Is(err, btf.ErrNotSupported) {
		return nil, errors.New("this kernel has no type information (/sys/kernel/btf/vmlinux): it must be built with CONFIG_DEBUG_INFO_BTF=y")
	}
	if err != nil {
		return nil, fmt.Errorf("read the kernel's types: %w", err)
	}
	// Where the kernel cannot map its types into memory (before 6.16), reading
	// them has left as much garbage: the peak of ksnoop's memory, unless it goes
	// before more is needed.
	goruntime.GC()
	return &Kernel{types: types, cache: cache}, nil
}

// Types is the types of vmlinux.
func (k *Kernel) Types() *btf.Spec { return k.types }

// Target describes the running kernel for functions of the given names. Only
// their symbols are kept.
func (k *Kernel) Target(functions []string) (*compiler.Target, error) {
	symbols, err := readSymbols(functions)
	if err != nil {
		return nil, err
	}
	version, build, err := release()
	if err != nil {
		return nil, err
	}
	return &compiler.Target{
		Kernel:   k.types,
		Module:   k.module,
		Symbols:  symbols,
		Features: features(version, preemptible(version, build, os.ReadFile)),
		Arch:     compiler.AMD64,
	}, nil
}

func (k *Kernel) module(name string) (*btf.Spec, error) {
	types, err := k.cache.Module(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil, compiler.ErrNoModuleBTF
	}
	return types, err
}

// readSymbols reads the symbols of functions, with their suffixed copies, from
// /proc/kallsyms. Names are readable to all users; addresses may be hidden.
func readSymbols(functions []string) (*kallsyms.Table, error) {
	f, err := os.Open("/proc/kallsyms")
	if err != nil {
		return nil, fmt.Errorf("read the symbol table: %w", err)
	}
	defer f.Close()
	names := map[string]bool{}
	for _, name := range functions {
		names[name] = true
	}
	table, err := kallsyms.Read(f, func(name string) bool { return names[kallsyms.Base(name)] })
	if err != nil {
		return nil, fmt.Errorf("read /proc/kallsyms: %w", err)
	}
	return table, nil
}
