package spec

import (
	"iter"
	"math/bits"
	"strings"

	"github.com/xrash/smetrics"
)

// Nearest returns the candidate that name is most likely a misspelling of: the one
// with the fewest edits between them. An edit is an insertion, a deletion, a
// replacement or a swap of two neighbouring letters. It returns false if no
// candidate is close. Of equally close candidates it returns one that begins with name,
// and of several the first in the alphabet, so that their order does not matter.
func Nearest(name string, candidates iter.Seq[string]) (string, bool) {
	best, found, least := "", false, mostEdits
	if len(name) > longestMisspelt {
		return "", false
	}
	letters := lettersOf(name)
	for c := range candidates {
		if limit := min(least, farthest(len(name), len(c))); abs(len(c)-len(name)) > limit || letters.fewestEdits(lettersOf(c)) > limit {
			continue
		}
		d := distance(name, c)
		if d > farthest(len(name), len(c)) || d > least || found && d == least && !preferred(name, c, best) {
			continue
		}
		best, found, least = c, true, d
	}
	return best, found
}

// preferred reports whether a is suggested for name rather than b, which is as close.
func preferred(name, a, b string) bool {
	if longer := strings.HasPrefix(a, name); longer != strings.HasPrefix(b, name) {
		return longer
	}
	return a < b
}

// longestMisspelt is the longest name that is compared, since the time grows with
// the square of the length.
const longestMisspelt = 128

// mostEdits is the greatest distance for names of any length.
const mostEdits = 3

// farthest returns the greatest distance between names of these lengths of which
// one may be a misspelling of the other: about a third of the longer length, as in
// gcc's spelling suggestions.
func farthest(a, b int) int {
	long := max(a, b)
	switch {
	case long < 2:
		return 0
	case abs(a-b) <= 1:
		return min(max(long/3, 1), mostEdits)
	default:
		return min((long+2)/3, mostEdits)
	}
}

// letterSet has a bit for each letter of a name, in lower case. Some share a bit.
type letterSet uint64

func lettersOf(name string) (s letterSet) {
	for i := range len(name) {
		s |= 1 << ((name[i] | 0x20) & 63)
	}
	return s
}

// fewestEdits returns a lower bound for the number of edits between names with these
// letters: each edit adds at most one letter and removes at most one.
func (s letterSet) fewestEdits(t letterSet) int {
	return max(bits.OnesCount64(uint64(s&^t)), bits.OnesCount64(uint64(t&^s)))
}

// distance returns the number of edits between two names, or 0 if they differ only
// in case.
func distance(a, b string) int {
	switch {
	case strings.EqualFold(a, b):
		return 0
	case swapped(a, b):
		return 1
	default:
		return smetrics.WagnerFischer(a, b, 1, 1, 1)
	}
}

// swapped reports whether a is b with two neighbouring letters swapped.
func swapped(a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	i := 0
	for i < len(a) && a[i] == b[i] {
		i++
	}
	return i+1 < len(a) && a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:]
}

func abs(n int) int { return max(n, -n) }

// Closer reports whether a has fewer edits from name than b.
func Closer(name, a, b string) bool { return distance(name, a) < distance(name, b) }
