package runtime

import (
	"fmt"
	"maps"
	"slices"

	"golang.org/x/sys/unix"
)

// moduleID tells a module from one of its name that is loaded later; 0: it is
// not loaded.
func moduleID(name string) uint64 {
	var st unix.Stat_t
	if unix.Stat("/sys/module/"+name, &st) != nil {
		return 0
	}
	return st.Ino
}

// rememberModules remembers the modules of what is attached. Kprobes do not
// keep a module from being unloaded, and go with it.
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

// Unloaded are sentences for the user on modules that are gone since Attach,
// with the probes in them.
func (s *Session) Unloaded() (notes []string) {
	for _, name := range slices.Sorted(maps.Keys(s.modules)) {
		if moduleID(name) != s.modules[name] {
			notes = append(notes, fmt.Sprintf("module %s was unloaded while its functions were traced: what they did from then on is not shown, nor if it was loaded again", name))
		}
	}
	return notes
}
