package runtime

import (
	"errors"
	"fmt"
	"os"
	"path"
	goruntime "runtime"
	"slices"
	"sync"

	"github.com/cilium/ebpf/btf"
	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/btfdump/rawbtf"
	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/resolve"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/kallsyms"
)

// Kernel holds the running kernel's types and symbols, read once and shared by
// resolving, loading and printing.
type Kernel struct {
	types   *btf.Spec
	part    *rawbtf.Part // the part of the types that was read, or nil if all were
	needs   resolve.Needs
	cache   *btf.Cache
	symbols func() (*kallsyms.Table, error)
	asked   *kallsyms.Table // the symbols of the next Target, if they are known before
	finder  func() (kallsyms.Finder, error)
	text    func() (uint64, error) // address of the kernel's text
	modules map[string]uint64      // loaded instances of the modules whose symbols were read, see moduleID

	targeted    *kallsyms.Table // the symbols of the last Target
	targetedAll bool            // it has all symbols
}

// OpenKernel reads the types of the running kernel. Any user may do this. It returns an
// error with the cure if there is no /sys/kernel/btf/vmlinux, or none that can be used.
func OpenKernel() (*Kernel, error) {
	cache := btf.NewCache()
	types, err := cache.Kernel()
	if err != nil {
		return nil, noTypes(err, os.Stat)
	}
	rawbtf.CorrectSigns(types)
	// Where the kernel cannot map its types into memory (before 6.16), reading
	// them leaves as much garbage again. Without this collection, that would be
	// the peak of ksnoop's memory.
	goruntime.GC()
	return newKernel(types, cache), nil
}

func newKernel(types *btf.Spec, cache *btf.Cache) *Kernel {
	k := &Kernel{types: types, cache: cache}
	k.symbols = sync.OnceValues(func() (*kallsyms.Table, error) { return k.readSymbols(kallsyms.Wanted{}) })
	k.text = sync.OnceValues(k.readText)
	k.finder = sync.OnceValues(k.openFinder)
	return k
}

// Types returns the types of vmlinux, or the part of them that was read.
func (k *Kernel) Types() *btf.Spec { return k.types }

// Symbols returns the whole symbol table, some 20 MB. The first call reads it. It returns
// an error if there is no /proc/kallsyms.
func (k *Kernel) Symbols() (*kallsyms.Table, error) { return k.symbols() }

// Target describes the running kernel, with the symbols that want selects. Their
// names have the compiler's suffixes (see [kallsyms.Base]). It returns an error if the
// symbols cannot be read, if the part of the types that was read does not suit the
// modules, or on another architecture than amd64 and arm64.
func (k *Kernel) Target(want kallsyms.Wanted) (*compiler.Target, error) {
	target, err := k.describe()
	if err != nil {
		return nil, err
	}
	if err := k.addSymbols(target, want); err != nil {
		return nil, err
	}
	return target, nil
}

// addSymbols adds the symbols that want selects to a description of the kernel.
func (k *Kernel) addSymbols(target *compiler.Target, want kallsyms.Wanted) error {
	symbols, err := k.wantedSymbols(want)
	if err != nil {
		return err
	}
	k.targeted, k.targetedAll = symbols, want.Keep == nil && symbols != k.asked
	if k.part != nil && slices.ContainsFunc(k.needs.Variables, func(name string) bool { return inModule(symbols, name) }) {
		return errors.New("a module has other types than the part of the kernel's that was read")
	}
	k.rememberModules(symbols)
	target.Symbols = symbols
	return nil
}

// describe describes the running kernel without its symbols.
func (k *Kernel) describe() (*compiler.Target, error) {
	features, err := k.Features()
	if err != nil {
		return nil, err
	}
	arch, err := compiler.NativeArch()
	if err != nil {
		return nil, err
	}
	target := &compiler.Target{
		Kernel:   k.types,
		Partial:  k.part != nil,
		Module:   k.module,
		Modules:  LoadedModules,
		Features: features,
		Arch:     arch,
	}
	if target.Partial && len(k.needs.Globs) == 0 { // globs mean what the part has
		target.TypeNames = placeNames
	}
	if !target.Partial { // a part has other names and ids
		target.TypeNames = TypeNames
		target.FuncsTaking = finding((*rawbtf.Types).Taking)
		target.FuncsNamed = finding(functionsNamed)
		target.EnumsWith = finding((*rawbtf.Types).WithEnumerator)
		target.AllSymbols = k.Symbols
	}
	return target, nil
}

func (k *Kernel) wantedSymbols(want kallsyms.Wanted) (*kallsyms.Table, error) {
	if k.part != nil {
		k.asked, _ = k.askSymbols()
	}
	if k.asked != nil {
		return k.asked, nil
	}
	if want.Keep == nil {
		return k.Symbols()
	}
	return k.readSymbols(want)
}

// inModule reports whether a symbol with a name is in a module.
func inModule(symbols *kallsyms.Table, name string) bool {
	return slices.ContainsFunc(symbols.Lookup(name), func(s kallsyms.Symbol) bool { return s.Module != "" })
}

func (k *Kernel) module(name string) (*btf.Spec, error) {
	if base, err := k.cache.Kernel(); err == nil {
		rawbtf.CorrectSigns(base) // if only a part of the kernel's types was read, it is another one
	}
	types, err := k.cache.Module(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil, compiler.ErrNoModuleBTF
	}
	return types, err
}

// readSymbols reads the wanted symbols. All users may read names; addresses may
// be hidden.
func (k *Kernel) readSymbols(want kallsyms.Wanted) (*kallsyms.Table, error) {
	if table, err := k.iterateSymbols(want); err == nil {
		return table, nil
	}
	return readSymbolFile(want)
}

// openSymbolFile opens /proc/kallsyms.
func openSymbolFile() (*os.File, error) {
	f, err := os.Open("/proc/kallsyms")
	if errors.Is(err, os.ErrNotExist) {
		return nil, noSymbolFile("/proc")
	}
	if err != nil {
		return nil, fmt.Errorf("read the symbol table: %w", err)
	}
	return f, nil
}

// noSymbolFile returns an error that explains why procfs, which is mounted at a
// directory if at all, has no symbol table. With subset=pid it has only processes.
func noSymbolFile(proc string) error {
	_, processes := os.Stat(proc + "/self")
	_, others := os.Stat(proc + "/version")
	if processes == nil && errors.Is(others, os.ErrNotExist) {
		return errors.New("read the symbol table: there is no /proc/kallsyms, as /proc is mounted with subset=pid: mount it without (mount -t proc proc /proc)")
	}
	return errors.New("read the symbol table: there is no /proc/kallsyms: mount procfs (mount -t proc proc /proc), or boot a kernel built with CONFIG_KALLSYMS=y")
}

// readSymbolFile reads the wanted symbols from /proc/kallsyms.
func readSymbolFile(want kallsyms.Wanted) (*kallsyms.Table, error) {
	f, err := openSymbolFile()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	table, err := kallsyms.Read(f, want.Keep)
	if err != nil {
		return nil, fmt.Errorf("read /proc/kallsyms: %w", err)
	}
	return table, nil
}

// OpenFor opens the running kernel for traces, describes it and calls fit, which
// binds the traces and reports whether they fit, or why not is settled
// ([resolve.Settled]). If the traces need few types, it reads only a part of the types,
// which includes those with the given names. If they need more, or do not fit that part,
// it reads all types and calls fit again, which may then find why a trace does not fit.
// Its errors are those of [OpenKernel] and [Kernel.TargetFor].
func OpenFor(traces []*spec.Trace, types []string, fit func(*compiler.Target) bool) (*Kernel, error) {
	var part *Kernel
	if needs, ok := resolve.FewNeeds(traces); ok {
		needs.Types = append(needs.Types, types...)
		part, _ = OpenPart(needs) // nil with an error: then all types are read
	}
	if part != nil {
		if target, err := part.TargetFor(traces); err == nil && fit(target) {
			return part, nil
		}
	}
	k, err := OpenKernel()
	if err != nil {
		return nil, err
	}
	if part != nil {
		k.asked = part.targeted // reading them takes as long as reading all types
	}
	target, err := k.TargetFor(traces)
	k.asked = nil // other traces may need others
	if err != nil {
		return nil, err
	}
	fit(target)
	return k, nil
}

// TargetFor describes the running kernel, with the symbols that traces need. Its errors
// are those of [Kernel.Target].
func (k *Kernel) TargetFor(traces []*spec.Trace) (*compiler.Target, error) {
	want := resolve.Symbols(traces)
	target, err := k.Target(want)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(traces, func(t *spec.Trace) bool { return spec.IsGlob(t.Func.Name) }) {
		target.Hookable = k.hookable(want.Keep, target.Symbols)
	}
	return target, nil
}

// TargetFollowing describes the running kernel for [resolve.Follow]. Its errors are those
// of [Kernel.Target].
func (k *Kernel) TargetFollowing(t *spec.Trace, f resolve.Following) (*compiler.Target, error) {
	target, err := k.describe()
	if err != nil {
		return nil, err
	}
	want := f.Symbols(t, target)
	if err := k.addSymbols(target, want); err != nil {
		return nil, err
	}
	target.Hookable = k.hookable(want.Keep, target.Symbols)
	return target, nil
}

// hookable returns a function that reports whether ftrace has a hook in a given
// function for which keep is true, or in any function if keep is nil. Where addresses
// or ftrace's records are hidden, it reads the names of functions with a hook. It
// returns nil if the kernel does not show these either; attaching then finds the
// functions without one.
func (k *Kernel) hookable(keep func(string) bool, symbols *kallsyms.Table) func(function string) bool {
	if list := k.readHooks(); list != nil && !symbols.Hidden() {
		return func(function string) bool {
			return slices.ContainsFunc(symbols.Lookup(function), func(s kallsyms.Symbol) bool { return list.has(s.Addr) })
		}
	}
	hooks := map[string]bool{}
	err := k.Hooks(func(function, _ []byte) {
		if name := string(function); keep == nil || keep(name) {
			hooks[name] = true
		}
	})
	if err != nil {
		return nil
	}
	return func(function string) bool { return hooks[function] }
}

// FindProcesses replaces the process and thread ids of o, which are numbers in
// this process's pid namespace, by the kernel's ids, and excludes this process
// from the trace. Its errors are those of [Self], [Kernel.Process] and [Kernel.Thread].
func (k *Kernel) FindProcesses(o *compiler.Options) (err error) {
	if o.Self, err = Self(); err != nil {
		return err
	}
	if o.PID != 0 {
		if o.PID, err = k.Process(o.PID); err != nil {
			return err
		}
	}
	if o.TID != 0 {
		o.TID, err = k.Thread(o.TID)
	}
	return err
}

// moduleID returns a number that identifies the loaded instance of a module, or 0
// if no module of this name is loaded.
func moduleID(name string) uint64 {
	var st unix.Stat_t
	if unix.Stat("/sys/module/"+name, &st) != nil {
		return 0
	}
	return st.Ino
}

// LoadedModules returns the loaded modules that have types.
func LoadedModules() (modules []string) {
	entries, _ := os.ReadDir(typesDir) // what cannot be read has no types
	for _, e := range entries {
		if e.Name() != path.Base(typesFile) {
			modules = append(modules, e.Name())
		}
	}
	return modules
}

// rememberModules stores which instances of modules the symbols are of.
func (k *Kernel) rememberModules(symbols *kallsyms.Table) {
	k.modules = map[string]uint64{}
	for _, name := range symbols.Modules() {
		k.modules[name] = moduleID(name)
	}
}

// reloaded returns the places whose addresses are those of a module that has been
// unloaded since its symbols were read: another function may be there by now.
func (k *Kernel) reloaded(places []compiler.Place) (bad []badPlace) {
	ids := map[string]uint64{}
	for _, p := range places {
		module := p.Probe.Func.Module
		before, known := k.modules[module]
		if p.Addr == 0 || !known {
			continue
		}
		if _, ok := ids[module]; !ok {
			ids[module] = moduleID(module)
		}
		if ids[module] != before {
			bad = append(bad, badPlace{p, fmt.Errorf("module %s was unloaded after its functions were looked up: start again", module)})
		}
	}
	return bad
}
