package cgroup

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// Table finds the containers of cgroups. The names are those of the time when the cgroup
// was first seen, and stay known when it has gone.
type Table struct {
	root   string // of the files that have the names of containers
	mounts func() []string
	now    func() time.Time

	mu     sync.Mutex
	known  map[uint64]Container // by cgroup id; those in no container, too
	walked time.Time            // when all cgroups were last searched, or zero
}

// NewTable returns the containers of the running system. Where no cgroup v2 is mounted,
// there are none.
func NewTable() *Table {
	return &Table{root: "/", now: time.Now, mounts: sync.OnceValue(func() []string {
		mounts, _ := Mounts("/proc/self/mountinfo") // without procfs, there are none
		return mounts
	})}
}

const (
	// pause is the least time between two searches of all cgroups.
	pause = time.Second
	// mostKnown bounds the memory for cgroups that have gone.
	mostKnown = 1 << 16
)

// Of returns the container that a cgroup is in. A cgroup that has come and gone within a
// second may not be found.
func (t *Table) Of(id uint64) (c Container, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c, found := t.known[id]
	if now := t.now(); !found && (t.walked.IsZero() || now.Sub(t.walked) >= pause) {
		t.read()
		t.walked = now
		c = t.known[id]
	}
	return c, c != Container{}
}

// read adds the cgroups that there are now.
func (t *Table) read() {
	if t.known == nil || len(t.known) > mostKnown {
		t.known = map[uint64]Container{}
	}
	names := map[Container]string{} // a container may have many cgroups
	for _, m := range t.mounts() {
		walk(m, func(dir string, id uint64) bool {
			if _, ok := t.known[id]; !ok {
				c, ok := Parse(below(m, dir))
				if ok {
					c = t.named(c, names)
				}
				t.known[id] = c
			}
			return true
		})
	}
}

func below(mount, dir string) string { return strings.TrimPrefix(dir, strings.TrimSuffix(mount, "/")) }

// named returns a container with its name, if that is known.
func (t *Table) named(c Container, names map[Container]string) Container {
	if c.Name != "" {
		return c
	}
	name, ok := names[c]
	if !ok {
		name = nameOf(t.root, c)
		names[c] = name
	}
	return Container{c.Runtime, c.ID, name}
}

// leastID is the least number of digits of an identifier that stand for it.
const leastID = 4

// Directory returns the directory of the cgroup of a container, by its name or by the
// beginning of its identifier.
func (t *Table) Directory(text string) (string, error) {
	found := map[Container]string{}
	var all []string
	names := map[Container]string{}
	for _, m := range t.mounts() {
		walk(m, func(dir string, _ uint64) bool {
			path := below(m, dir)
			c, ok := parsePart(filepath.Base(filepath.Dir(path)), filepath.Base(path))
			if !ok {
				return true
			}
			c = t.named(c, names)
			all = append(all, c.String())
			if _, have := found[c]; !have && (c.Name == text || len(text) >= leastID && strings.HasPrefix(c.ID, text)) {
				found[c] = dir
			}
			return true
		})
	}
	slices.Sort(all)
	all = slices.Compact(all)
	switch {
	case len(found) == 1:
		for _, dir := range found {
			return dir, nil
		}
	case len(found) > 1:
		return "", fmt.Errorf("%d containers have this name, or an id that begins so: give more digits of the id", len(found))
	case len(t.mounts()) == 0:
		return "", fmt.Errorf("containers are found by a mount of cgroup v2, and there is none")
	case len(all) == 0:
		return "", fmt.Errorf("there is no container now")
	}
	const most = 8
	list := strings.Join(all[:min(len(all), most)], ", ")
	if len(all) > most {
		list += fmt.Sprintf(" and %d more", len(all)-most)
	}
	return "", fmt.Errorf("no container has this name or id now: there are %s", list)
}
