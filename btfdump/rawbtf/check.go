package rawbtf

import (
	"bytes"
	"fmt"
	"hash/maphash"
)

// The limits for the types of a file. The types of a Debian kernel take 6 MB.
// Their names take 3 MB if each is counted as often as it is used. References are
// up to 220 levels deep, and up to 200 types have the same name: a tag of
// functions.
const (
	maxBytes     = 32 << 20
	maxNames     = 64 << 20 // bytes
	maxDepth     = 20_000
	maxNamesakes = 2000
)

// Check returns an error if package btf would need too much memory or time to
// read the BTF. That package follows references by recursion and copies each
// name, so a malicious file of a few megabytes could use up the memory or the
// stack, which ends the process. To find a type it looks at all types of the same
// name, without the suffix that begins with "___".
func Check(raw []byte) error {
	w, err := parse(raw)
	if err != nil {
		return err
	}
	if _, err := w.index(nil, nil); err != nil {
		return err
	}
	c := checker{wire: w, tags: map[uint32][]uint32{}, seed: maphash.MakeSeed(), namesakes: map[uint64]int{}}
	for id := uint32(1); id < uint32(len(w.offsets)); id++ {
		if err := c.add(id); err != nil {
			return fmt.Errorf("type #%d: %w", id, err)
		}
	}
	return c.checkDepth()
}

type checker struct {
	*wire
	tags  map[uint32][]uint32 // the tags of each type
	names int                 // bytes of all names so far

	seed      maphash.Seed
	namesakes map[uint64]int // number of types by the hash of their name
}

// add counts the names of a type and, if it is a tag, records the type that it
// belongs to.
func (c *checker) add(id uint32) error {
	t := c.at(id)
	if kindOf(t) == DeclTag {
		of := word(t, 8)
		c.tags[of] = append(c.tags[of], id)
	}
	name, err := c.name(word(t, 0))
	if err == nil && len(name) > 0 {
		err = c.countNamesake(name)
	}
	l, n := shape(t)
	for i := uint32(0); i < n && l.named && err == nil; i++ {
		_, err = c.name(word(t, l.element(i)))
	}
	return err
}

// name returns the name at an offset and adds its length to the total.
func (c *checker) name(at uint32) ([]byte, error) {
	if at == 0 {
		return nil, nil
	}
	if at >= uint32(len(c.strings)) {
		return nil, fmt.Errorf("its name is at %d of %d", at, len(c.strings))
	}
	text := c.text(at)
	if c.names += len(text); c.names > maxNames {
		return nil, fmt.Errorf("the names have more than %d MB", maxNames>>20)
	}
	return text, nil
}

// countNamesake counts the types with this name.
func (c *checker) countNamesake(name []byte) error {
	if i := bytes.LastIndex(name, []byte("___")); i >= 0 {
		name = name[:i]
	}
	hash := maphash.Bytes(c.seed, name)
	if c.namesakes[hash]++; c.namesakes[hash] > maxNamesakes {
		return fmt.Errorf("more than %d types are called %.60q", maxNamesakes, name)
	}
	return nil
}

// child returns the i-th type that a type refers to, in the order in which package
// btf reads them. It returns false if there are not that many.
func (c *checker) child(id, i uint32) (child uint32, ok bool) {
	t := c.at(id)
	l, n := shape(t)
	refs := l.refCount(n)
	if i < refs {
		return word(t, l.refAt(i)), true
	}
	i -= refs
	if l.ref {
		if i == 0 {
			return word(t, 8), true
		}
		i--
	}
	if tags := c.tags[id]; i < uint32(len(tags)) {
		return tags[i], true
	}
	return 0, false
}

// checkDepth follows all references in the order in which package btf does. It
// returns an error if they are nested too deeply.
func (c *checker) checkDepth() error {
	type visit struct{ id, next uint32 } // next is the number of its next child
	seen := make([]bool, len(c.offsets))
	seen[0] = true // void
	var open []visit
	for id := range seen {
		if seen[id] {
			continue
		}
		seen[id] = true
		open = append(open, visit{id: uint32(id)})
		for len(open) > 0 {
			top := &open[len(open)-1]
			child, ok := c.child(top.id, top.next)
			top.next++
			switch {
			case !ok:
				open = open[:len(open)-1]
			case uint64(child) >= uint64(len(seen)):
				return fmt.Errorf("type #%d: there is no type #%d", top.id, child)
			case !seen[child]:
				seen[child] = true
				open = append(open, visit{id: child})
			}
			if len(open) > maxDepth {
				return fmt.Errorf("type #%d: more than %d types need each other", id, maxDepth)
			}
		}
	}
	return nil
}
