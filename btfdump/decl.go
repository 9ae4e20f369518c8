package btfdump

import (
	"strconv"
	"strings"

	"github.com/cilium/ebpf/btf"
)

// Decl is the C declaration of name with type t, without a semicolon:
// `const char *fmt`, `int (*fn)(void)`. Functions and variables bring their own
// name, which is used when name is empty, and functions print their parameters:
// `int ip_send_skb(struct net *net, struct sk_buff *skb)`. Bodies are left out:
// `struct {...} x`. So are type tags such as __user.
func Decl(t btf.Type, name string) string {
	d := declarer{quals: true, budget: maxDeclTypes}
	if own := ownName(t); name == "" {
		name = own
	}
	name = clean(name)
	switch v := t.(type) {
	case *btf.Func:
		return d.function(v.Type, name)
	case *btf.FuncProto:
		return d.function(v, name)
	case *btf.Var:
		return linkage(v.Linkage) + d.decl(v.Type, name)
	case *btf.Datasec:
		return `SEC("` + name + `")`
	}
	return d.decl(t, name)
}

// TypeName is the C name of a type as it stands in a cast, with qualifiers and
// tags removed at every level: `struct sk_buff *`, `int[2][3]`, `char(*)[4]`,
// `void (*)(struct rcu_head *)`. Types without a name are `struct`, `union` and
// `enum`.
func TypeName(t btf.Type) string {
	d := declarer{budget: maxDeclTypes}
	switch v := t.(type) {
	case *btf.Func:
		t = v.Type
	case *btf.Datasec:
		return clean(v.Name)
	}
	return d.decl(t, "")
}

func ownName(t btf.Type) string {
	switch t.(type) {
	case *btf.Func, *btf.Var, *btf.Datasec:
		return t.TypeName()
	}
	return ""
}

func linkage(l btf.VarLinkage) string {
	switch l {
	case btf.StaticVar:
		return "static "
	case btf.ExternVar:
		return "extern "
	}
	return ""
}

// maxDeclTypes ends declarations of types that contain themselves without a
// name between, which C cannot write.
const maxDeclTypes = 1000

// declarer writes one declaration from the name outwards.
type declarer struct {
	quals  bool // also the form for declarations, not for casts
	budget int  // types still to be looked at
}

// decl wraps the declarator, which may be empty, into what its type adds to it.
func (d *declarer) decl(t btf.Type, declarator string) string {
	named := declarator != ""
	quals := ""
	for ; d.budget > 0; d.budget-- {
		switch v := t.(type) {
		case *btf.Const:
			t, quals = v.Type, d.qualify(quals, "const ")
		case *btf.Volatile:
			t, quals = v.Type, d.qualify(quals, "volatile ")
		case *btf.Restrict:
			t, quals = v.Type, d.qualify(quals, "restrict ")
		case *btf.TypeTag:
			t = v.Type
		case *btf.Var:
			t = v.Type
		case *btf.Pointer:
			declarator = pointer(v.Target, quals, declarator)
			t, quals = v.Target, ""
		case *btf.Array:
			declarator += "[" + strconv.FormatUint(uint64(v.Nelems), 10) + "]"
			t = v.Type
		case *btf.FuncProto:
			if strings.HasPrefix(declarator, "(") {
				declarator = " " + declarator
			}
			declarator += d.params(v, "(void)")
			t, quals = v.Return, ""
		default:
			return quals + join(d.base(t), declarator, named)
		}
	}
	return "/* endless type */"
}

func (d *declarer) qualify(quals, q string) string {
	if !d.quals || strings.Contains(quals, q) {
		return quals
	}
	return quals + q
}

// pointer adds a star, in parentheses where C would take it for a part of the
// element or the return type.
func pointer(target btf.Type, quals, declarator string) string {
	declarator = "*" + quals + declarator
	declarator = strings.TrimSuffix(declarator, " ")
	switch strip(target, false).(type) {
	case *btf.Array, *btf.FuncProto:
		return "(" + declarator + ")"
	}
	return declarator
}

// function declares name as a function.
func (d *declarer) function(t btf.Type, name string) string {
	p, ok := t.(*btf.FuncProto)
	if !ok {
		return d.decl(t, name)
	}
	return d.decl(p.Return, name+d.params(p, "()"))
}

// params lists parameters; none is what stands for no parameters.
func (d *declarer) params(p *btf.FuncProto, none string) string {
	n := len(p.Params)
	if n == 0 || n == 1 && isVoid(p.Params[0]) {
		return none
	}
	s := make([]string, n)
	for i, param := range p.Params {
		if d.budget <= 0 {
			s = s[:i]
			break
		}
		if i == n-1 && isVoid(param) {
			s[i] = "..."
		} else {
			s[i] = d.decl(param.Type, clean(param.Name))
		}
	}
	return "(" + strings.Join(s, ", ") + ")"
}

// isVoid tells the mark that BTF uses for `...`.
func isVoid(p btf.FuncParam) bool {
	if p.Type == nil {
		return true
	}
	_, ok := p.Type.(*btf.Void)
	return ok
}

// base names a type that is no pointer, array or function.
func (d *declarer) base(t btf.Type) string {
	switch v := t.(type) {
	case nil, *btf.Void:
		return "void"
	case *btf.Struct:
		return d.tagged("struct", v.Name)
	case *btf.Union:
		return d.tagged("union", v.Name)
	case *btf.Enum:
		return d.tagged("enum", v.Name)
	case *btf.Fwd:
		return d.tagged(v.Kind.String(), v.Name)
	}
	return clean(t.TypeName())
}

func (d *declarer) tagged(keyword, name string) string {
	switch {
	case name != "":
		return keyword + " " + clean(name)
	case d.quals:
		return keyword + " {...}"
	}
	return keyword
}

// join puts a blank where one is wanted.
func join(base, declarator string, named bool) string {
	switch {
	case declarator == "":
		return base
	case declarator[0] == '[' || declarator[0] == ' ':
		return base + declarator
	case declarator[0] == '(' && !named:
		return base + declarator
	}
	return base + " " + declarator
}
