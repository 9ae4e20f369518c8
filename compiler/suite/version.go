package suite

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/ksnoop/ksnoop/compiler/spec"
)

// Version is the version of a kernel. 6.12 has two parts, 6.12.3 has three.
type Version struct {
	Parts   [3]int
	Written int // the number of parts that were written, 1 to 3
}

// parseVersion parses a version such as 6, 6.12 or 6.12.3.
func parseVersion(text string) (v Version, ok bool) {
	parts := strings.Split(text, ".")
	if len(parts) > len(v.Parts) {
		return v, false
	}
	for i, part := range parts {
		n, err := strconv.Atoi(part)
		if err != nil || !isNumber(part) || len(part) > 5 {
			return v, false
		}
		v.Parts[i] = n
	}
	v.Written = len(parts)
	return v, true
}

// String returns v as it was written.
func (v Version) String() string {
	var parts []string
	for _, n := range v.Parts[:v.Written] {
		parts = append(parts, strconv.Itoa(n))
	}
	return strings.Join(parts, ".")
}

// Holds reports whether the comparison of the release of a kernel, such as
// 6.12.3-cloud-amd64, with v is true. It compares only the parts that v has: 6.12.3
// is neither above nor below 6.12. A part that only the release lacks counts as 0. It
// returns false if the release does not begin with a version.
func (v Version) Holds(op spec.Op, release string) bool {
	end := strings.IndexFunc(release, func(r rune) bool { return !strings.ContainsRune(digits+".", r) })
	if end >= 0 {
		release = release[:end]
	}
	parts := strings.Split(strings.TrimRight(release, "."), ".")
	of, ok := parseVersion(strings.Join(parts[:min(len(parts), len(v.Parts))], "."))
	if !ok {
		return false
	}
	order := 0
	for i := range v.Written {
		if order = cmp.Compare(of.Parts[i], v.Parts[i]); order != 0 {
			break
		}
	}
	return op.Holds(order)
}
