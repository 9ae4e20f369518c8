package recording

import (
	"bytes"
	"fmt"

	"github.com/cilium/ebpf/btf"

	"github.com/ksnoop/ksnoop/btfdump/rawbtf"
)

// part collects the types that values need: all of what they consist of, and of what
// their pointers point to only the names.
type part struct {
	builder *btf.Builder
	whole   map[btf.Type]btf.Type
	named   map[btf.Type]btf.Type
}

func newPart() (*part, error) {
	b, err := btf.NewBuilder(nil, nil)
	return &part{b, map[btf.Type]btf.Type{}, map[btf.Type]btf.Type{}}, err
}

// id returns the number of a type in the part; nil has that of void.
func (p *part) id(t btf.Type) (int, error) {
	if t == nil {
		return 0, nil
	}
	id, err := p.builder.Add(p.copy(t, true))
	return int(id), err
}

// raw returns the part as raw BTF.
func (p *part) raw() ([]byte, error) {
	if p.builder.Empty() {
		return nil, nil
	}
	return p.builder.Marshal(nil, &btf.MarshalOptions{Order: order})
}

// copy copies a type. If it is not to be whole, a structure, union, enumeration or typedef
// keeps its name alone, as nothing else of what a pointer points to is shown.
func (p *part) copy(t btf.Type, whole bool) btf.Type {
	memory := p.named
	if whole {
		memory = p.whole
	}
	if made, ok := memory[t]; ok {
		return made
	}
	made := t
	switch v := t.(type) {
	case nil, *btf.Void:
		return &btf.Void{}
	case *btf.Struct:
		s := &btf.Struct{Name: v.Name}
		memory[t], made = s, s
		if whole {
			s.Size, s.Members = v.Size, p.members(v.Members)
		}
	case *btf.Union:
		u := &btf.Union{Name: v.Name}
		memory[t], made = u, u
		if whole {
			u.Size, u.Members = v.Size, p.members(v.Members)
		}
	case *btf.Enum:
		e := *v
		if made = &e; !whole {
			e.Values = nil
		}
	case *btf.Typedef:
		d := &btf.Typedef{Name: v.Name, Type: &btf.Void{}}
		memory[t], made = d, d
		if whole {
			d.Type = p.copy(v.Type, true)
		}
	case *btf.Pointer:
		to := &btf.Pointer{}
		memory[t], made = to, to
		to.Target = p.copy(v.Target, false)
	case *btf.Array:
		made = &btf.Array{Index: p.copy(v.Index, false), Type: p.copy(v.Type, whole), Nelems: v.Nelems}
	case *btf.Const:
		made = &btf.Const{Type: p.copy(v.Type, whole)}
	case *btf.Volatile:
		made = &btf.Volatile{Type: p.copy(v.Type, whole)}
	case *btf.Restrict:
		made = &btf.Restrict{Type: p.copy(v.Type, whole)}
	case *btf.TypeTag:
		made = &btf.TypeTag{Type: p.copy(v.Type, whole), Value: v.Value}
	case *btf.FuncProto:
		f := &btf.FuncProto{}
		memory[t], made = f, f
		f.Return = p.copy(v.Return, false)
		for _, param := range v.Params {
			f.Params = append(f.Params, btf.FuncParam{Name: param.Name, Type: p.copy(param.Type, false)})
		}
	}
	memory[t] = made // numbers and forward declarations are as they are
	return made
}

func (p *part) members(all []btf.Member) (copies []btf.Member) {
	for _, m := range all {
		m.Type, m.Tags = p.copy(m.Type, true), nil
		copies = append(copies, m)
	}
	return copies
}

// types are the types of a recording, by their numbers.
type types []btf.Type

// readTypes reads raw BTF, which may be anything.
func readTypes(raw []byte) (types, error) {
	all := types{&btf.Void{}}
	if len(raw) == 0 {
		return all, nil
	}
	spec, err := rawbtf.Load(raw, bytes.NewReader(raw))
	if err != nil {
		return nil, fmt.Errorf("its types: %w", err)
	}
	for id := btf.TypeID(1); ; id++ {
		t, err := spec.TypeByID(id)
		if err != nil { // all have been read, so there is none of that number
			return all, nil
		}
		all = append(all, t)
	}
}
