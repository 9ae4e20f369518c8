package runtime

import (
	"fmt"
	"maps"
	"os"
	"path"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/kallsyms"
)

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

// rememberModules stores the modules of the attached functions. Kprobes do not
// keep a module from being unloaded; they are removed with it.
func (s *Session) rememberModules() {
	s.modules = map[string]uint64{}
	for _, at := range s.attached {
		for _, p := range at.Places {
			if name := p.Probe.Func.Module; name != "" {
				s.modules[name] = moduleID(name)
			}
		}
	}
}

// Unloaded returns a sentence for the user about each module that was unloaded
// since [Session.Attach], with the probes in it.
func (s *Session) Unloaded() (notes []string) {
	for _, name := range slices.Sorted(maps.Keys(s.modules)) {
		if moduleID(name) != s.modules[name] {
			notes = append(notes, fmt.Sprintf("module %s was unloaded while its functions were traced: what they did from then on is not shown, nor if it was loaded again", name))
		}
	}
	return notes
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
