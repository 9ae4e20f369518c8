package resolve

import (
	"cmp"
	"maps"
	"strings"

	"github.com/cilium/ebpf/btf"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
)

// nestedMembers maps the names of members of nested structures and unions to
// their paths from the outermost: skc_state is __sk_common.skc_state. If several
// have the same name, the least nested one counts.
func nestedMembers(t btf.Type) map[string]string {
	paths := map[string]string{}
	type nested struct {
		t      btf.Type
		prefix string // ends with a dot
		depth  int
	}
	seen := map[btf.Type]bool{}
	for queue := []nested{{t: t}}; len(queue) > 0 && len(paths) < mostNested; queue = queue[1:] {
		r := queue[0]
		for _, m := range compiler.UnseenMembers(r.t, seen, r.depth) {
			path := r.prefix + m.Name
			if _, known := paths[m.Name]; !known && m.Name != "" && r.prefix != "" {
				paths[m.Name] = path
			}
			inner := nested{t: m.Type, prefix: path + ".", depth: r.depth + 1}
			if m.Name == "" {
				inner.prefix = r.prefix
			}
			if isStructure(m.Type) {
				queue = append(queue, inner)
			}
		}
	}
	return paths
}

// mostNested is the largest number of members that are examined for a hint.
const mostNested = 10000

// noMember returns the error for a member that a structure lacks, with a hint on
// the one that was meant. C has macros for many members of nested structures:
// sk_state is __sk_common.skc_state.
func (b *binder) noMember(e *spec.Member, t btf.Type) error {
	name := e.Name.Name
	err := b.errorf(e.Name.At, "%s has no member '%s'", structureName(t), name).WithKind(spec.NoMember)
	near, ok := spec.Nearest(name, memberNames(t))
	if path := nestedLike(t, name, near); path != "" {
		return err.WithMeant("%s", &spec.Member{X: e.X, Dot: e.Dot, Name: spec.Ident{Name: path}})
	}
	if ok {
		return err.WithMeant("%s", near)
	}
	return err
}

// nestedLike returns the path of the nested member that is most like a name, if
// it is more like it than near, which may be "".
func nestedLike(t btf.Type, name, near string) string {
	paths := nestedMembers(t)
	if path := paths[name]; path != "" {
		return path
	}
	nested, ok := spec.Nearest(name, maps.Keys(paths))
	if ok && near != "" && spec.Closer(name, nested, near) {
		return paths[nested]
	}
	if near != "" {
		return ""
	}
	// Macros of different structures differ in the part before the first
	// underscore, which may be left out.
	_, tail, cut := strings.Cut(name, "_")
	if !cut {
		tail = name
	}
	best := ""
	for n, path := range paths {
		if _, other, _ := strings.Cut(n, "_"); other == tail && (best == "" || path < best) {
			best = path
		}
	}
	return cmp.Or(best, paths[nested])
}
