package runtime

import (
	"errors"
	"fmt"
	"os"
	goruntime "runtime"
	"sync"

	"github.com/cilium/ebpf/btf"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/kallsyms"
	"github.com/ksnoop/ksnoop/runtime/btfpart"
)

// Kernel is the running kernel's types and symbols, read once and shared by
// resolving, loading and printing.
type Kernel struct {
	types   *btf.Spec
	part    *btfpart.Part // what types are of; nil: they are all
	needs   compiler.Needs
	cache   *btf.Cache
	symbols func() (*kallsyms.Table, error)
	text    func() (uint64, error) // where the kernel's text begins
}

// OpenKernel reads the types of the running kernel. Any user may.
func OpenKernel() (*Kernel, error) {
	cache := btf.NewCache()
	types, err := cache.Kernel()
	if err != nil {
		return nil, noTypes(err, os.Stat)
	}
	// Where the kernel cannot map its types into memory (before 6.16), reading
	// them has left as much garbage: the peak of ksnoop's memory, unless it goes
	// before more is needed.
	goruntime.GC()
	return newKernel(types, cache), nil
}

func newKernel(types *btf.Spec, cache *btf.Cache) *Kernel {
	k := &Kernel{types: types, cache: cache}
	k.symbols = sync.OnceValues(func() (*kallsyms.Table, error) { return k.readSymbols(kallsyms.Wanted{}) })
	k.text = sync.OnceValues(k.readText)
	return k
}

// Types is the types of vmlinux, or the part of them that was read.
func (k *Kernel) Types() *btf.Spec { return k.types }

// Symbols is the whole symbol table, some 20 MB. It is read when first asked
// for.
func (k *Kernel) Symbols() (*kallsyms.Table, error) { return k.symbols() }

// Target describes the running kernel. Of the symbols it has those that are
// wanted. Their names have the compiler's suffixes (see [kallsyms.Base]).
func (k *Kernel) Target(want kallsyms.Wanted) (*compiler.Target, error) {
	symbols, err := k.wantedSymbols(want)
	if err != nil {
		return nil, err
	}
	features, err := k.Features()
	if err != nil {
		return nil, err
	}
	arch, err := compiler.NativeArch()
	if err != nil {
		return nil, err
	}
	return &compiler.Target{
		Kernel:    k.types,
		Module:    k.module,
		Symbols:   symbols,
		TypeNames: typeNames,
		Features:  features,
		Arch:      arch,
	}, nil
}

func (k *Kernel) wantedSymbols(want kallsyms.Wanted) (*kallsyms.Table, error) {
	if k.part != nil {
		if table, ok := k.askSymbols(); ok {
			return table, nil
		}
	}
	if want.Keep == nil {
		return k.Symbols()
	}
	return k.readSymbols(want)
}

func (k *Kernel) module(name string) (*btf.Spec, error) {
	types, err := k.cache.Module(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil, compiler.ErrNoModuleBTF
	}
	return types, err
}

// readSymbols reads the wanted symbols. Names are readable to all users;
// addresses may be hidden.
func (k *Kernel) readSymbols(want kallsyms.Wanted) (*kallsyms.Table, error) {
	if table, err := k.iterateSymbols(want); err == nil {
		return table, nil
	}
	return readSymbolFile(want)
}

// readSymbolFile reads them from /proc/kallsyms.
func readSymbolFile(want kallsyms.Wanted) (*kallsyms.Table, error) {
	f, err := os.Open("/proc/kallsyms")
	if errors.Is(err, os.ErrNotExist) {
		return nil, errors.New("read the symbol table: there is no /proc/kallsyms: mount procfs (mount -t proc proc /proc), or boot a kernel built with CONFIG_KALLSYMS=y")
	}
	if err != nil {
		return nil, fmt.Errorf("read the symbol table: %w", err)
	}
	defer f.Close()
	table, err := kallsyms.Read(f, want.Keep)
	if err != nil {
		return nil, fmt.Errorf("read /proc/kallsyms: %w", err)
	}
	return table, nil
}
