// Package known remembers the names of things that may be gone by now, in bounded memory.
package known

// Names remembers the name of each key. The zero value remembers none.
type Names[K, V comparable] struct {
	known map[K]V
	size  int // of the texts of all that were added, in bytes
	// Cleared counts how often all names were forgotten.
	Cleared int
}

// most is the largest number of names that are remembered. If there would be more, or their texts
// would have more than MostTexts bytes, all are forgotten. The writer of a recording and its
// reader do so at the same name.
const (
	most      = 1 << 16
	MostTexts = 64 << 20
)

// Len returns the number of names that are remembered.
func (n *Names[K, V]) Len() int { return len(n.known) }

// Of returns the name of a key, and false if it is not remembered.
func (n *Names[K, V]) Of(k K) (V, bool) {
	v, ok := n.known[k]
	return v, ok
}

// Add remembers a name whose texts have size bytes, and reports whether that is new.
func (n *Names[K, V]) Add(k K, v V, size int) bool {
	if known, ok := n.known[k]; ok && known == v {
		return false
	}
	if n.size += size; len(n.known) >= most || n.size > MostTexts {
		clear(n.known)
		n.size = size
		n.Cleared++
	}
	if n.known == nil {
		n.known = map[K]V{}
	}
	n.known[k] = v
	return true
}
