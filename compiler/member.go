package compiler

import (
	"iter"

	"github.com/cilium/ebpf/btf"

	"github.com/ksnoop/ksnoop/compiler/spec"
)

func bindMember(trace *spec.Trace, fn *Function, e *spec.Member) (*Value, error) {
	base, err := bind(trace, fn, e.X)
	if err != nil {
		return nil, err
	}
	fail := func(format string, args ...any) error {
		return spec.Errorf(trace.Text, e.Name.At, format, args...)
	}
	ptr, ok := btf.As[*btf.Pointer](base.Type)
	if !ok {
		return nil, fail("'%s' is not a pointer to a struct or union, so '->%s' has no meaning", e.X, e.Name.Name)
	}
	if !isRecord(ptr.Target) {
		return nil, fail("'%s' does not point to a struct or union with known members", e.X)
	}
	at, ok := findMember(ptr.Target, e.Name.Name)
	if !ok {
		err := spec.Errorf(trace.Text, e.Name.At, "%s has no member '%s'", recordName(ptr.Target), e.Name.Name)
		if near, ok := spec.Nearest(e.Name.Name, memberNames(ptr.Target, maxTypeDepth)); ok {
			return nil, err.WithHint("did you mean '%s'?", near)
		}
		return nil, err
	}
	return base.member(at, tagged(base.Type), fail)
}

// member is the value of a member of v's pointee.
func (v *Value) member(at memberPlace, tagged bool, fail func(string, ...any) error) (*Value, error) {
	size, err := btf.Sizeof(at.member.Type)
	if err != nil {
		return nil, fail("'%s' has no size", at.member.Name)
	}
	m := &Value{Type: at.member.Type, From: v.From}
	access := Access{Off: int(at.offset / 8), Size: size}
	if bits := int(at.member.BitfieldSize); bits > 0 {
		m.Scalar = scalarOf(m.Type)
		shift := int(at.offset % 8)
		if m.Scalar == nil || shift+bits > 64 {
			return nil, fail("'%s' is a bitfield across 8 bytes, which cannot be read", at.member.Name)
		}
		m.Scalar.Shift, m.Scalar.Bits = shift, bits
		access.Size = (shift + bits + 7) / 8
	} else {
		access.Direct = !at.inUnion && !tagged && scalarOf(m.Type) != nil && access.Off+access.Size <= 1<<15
	}
	m.Path = append(append(m.Path, v.Path...), access)
	return m, nil
}

// memberPlace is where a member is in its record.
type memberPlace struct {
	member  btf.Member
	offset  btf.Bits // from the start of the record
	inUnion bool
}

// findMember looks for a member, through anonymous structs and unions.
func findMember(t btf.Type, name string) (memberPlace, bool) {
	return findMemberIn(t, name, maxTypeDepth)
}

func findMemberIn(t btf.Type, name string, depth int) (memberPlace, bool) {
	members, ok := recordMembers(t)
	if !ok || depth == 0 {
		return memberPlace{}, false
	}
	for _, m := range members {
		if m.Name == name {
			return memberPlace{member: m, offset: m.Offset, inUnion: isUnion(t)}, true
		}
		if m.Name != "" {
			continue
		}
		if at, ok := findMemberIn(m.Type, name, depth-1); ok {
			at.offset += m.Offset
			at.inUnion = at.inUnion || isUnion(t)
			return at, true
		}
	}
	return memberPlace{}, false
}

// memberNames iterates over the members that findMember would find.
func memberNames(t btf.Type, depth int) iter.Seq[string] {
	return func(yield func(string) bool) {
		members, _ := recordMembers(t)
		for _, m := range members {
			if m.Name != "" {
				if !yield(m.Name) {
					return
				}
				continue
			}
			if depth == 0 {
				continue
			}
			for name := range memberNames(m.Type, depth-1) {
				if !yield(name) {
					return
				}
			}
		}
	}
}
