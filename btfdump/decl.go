package btfdump

import (
	"strconv"
	"strings"

	"github.com/cilium/ebpf/btf"
)

// Decl returns the C declaration of name with type t, without a semicolon:
// `const char *fmt`, `int (*fn)(void)`. If name is empty, functions and variables
// are declared with their own name. Functions have their parameters:
// `int ip_send_skb(struct net *net, struct sk_buff *skb)`. Bodies are left out,
// as in `struct {...} x`, and so are type tags such as __user.
func Decl(t btf.Type, name string) string {
	d := declarer{quals: true, budget: maxDeclTypes}
	if own := ownName(t); name == "" {
		name = own
	}
	name = Plain(name)
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

// TypeName returns the C name of a type as it is written in a cast, without
// qualifiers and tags at any level: `struct sk_buff *`, `int[2][3]`,
// `char(*)[4]`, `void (*)(struct rcu_head *)`. For types without a name it
// returns `struct`, `union` or `enum`.
func TypeName(t btf.Type) string {
	d := declarer{budget: maxDeclTypes}
	switch v := t.(type) {
	case *btf.Func:
		t = v.Type
	case *btf.Datasec:
		return Plain(v.Name)
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

// maxDeclTypes bounds the number of types in a declaration, for types that refer
// to themselves through types without a name. C cannot write such types.
const maxDeclTypes = 1000

// declarer writes one declaration from the name outwards.
type declarer struct {
	quals  bool // print qualifiers, as declarations have them and casts do not
	budget int  // types that may still be visited
}

// decl returns the declaration of a declarator, which may be empty, with type t.
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

// pointer adds a star to the declarator, in parentheses if the target is an array
// or a function.
func pointer(target btf.Type, quals, declarator string) string {
	declarator = "*" + quals + declarator
	declarator = strings.TrimSuffix(declarator, " ")
	switch Unqualified(target).(type) {
	case *btf.Array, *btf.FuncProto:
		return "(" + declarator + ")"
	}
	return declarator
}

// Unqualified removes qualifiers and tags, but not typedefs. It returns nil if the
// type refers to itself.
func Unqualified(t btf.Type) btf.Type {
	for range maxNested {
		switch v := t.(type) {
		case *btf.Const:
			t = v.Type
		case *btf.Volatile:
			t = v.Type
		case *btf.Restrict:
			t = v.Type
		case *btf.TypeTag:
			t = v.Type
		default:
			return t
		}
	}
	return nil
}

// function declares name as a function.
func (d *declarer) function(t btf.Type, name string) string {
	p, ok := t.(*btf.FuncProto)
	if !ok {
		return d.decl(t, name)
	}
	return d.decl(p.Return, name+d.params(p, "()"))
}

// params returns the list of parameters. If there are no parameters, it returns the
// argument none.
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
			s[i] = d.decl(param.Type, Plain(param.Name))
		}
	}
	return "(" + strings.Join(s, ", ") + ")"
}

// isVoid reports whether p is void, which means `...` in BTF.
func isVoid(p btf.FuncParam) bool {
	switch p.Type.(type) {
	case nil, *btf.Void:
		return true
	}
	return false
}

// base returns the name of a type that is not a pointer, array or function.
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
	return Plain(t.TypeName())
}

func (d *declarer) tagged(keyword, name string) string {
	switch {
	case name != "":
		return keyword + " " + Plain(name)
	case d.quals:
		return keyword + " {...}"
	}
	return keyword
}

// join joins a type and a declarator, with a blank between them where C needs or
// custom wants one.
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
