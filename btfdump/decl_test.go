package btfdump

import (
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"
)

func ptr(t btf.Type) *btf.Pointer { return &btf.Pointer{Target: t} }

func proto(ret btf.Type, params ...btf.FuncParam) *btf.FuncProto {
	return &btf.FuncProto{Return: ret, Params: params}
}

func param(name string, t btf.Type) btf.FuncParam { return btf.FuncParam{Name: name, Type: t} }

func TestDecl(t *testing.T) {
	constChar := ptr(&btf.Const{Type: tChar})
	varargs := param("", tVoid)
	net, skb := ptr(structure("net", 8)), ptr(structure("sk_buff", 8))
	handler := ptr(proto(tVoid, param("", tInt)))
	fn := func(p *btf.FuncProto) *btf.Func { return &btf.Func{Name: "f", Type: p} }
	endless := ptr(nil)
	endless.Target = endless
	tests := []struct {
		typ  btf.Type
		name string
		want string
	}{
		{tInt, "i", "int i"},
		{tInt, "", "int"},
		{tSize, "n", "size_t n"},
		{nil, "", "void"},
		{net, "net", "struct net *net"},
		{ptr(ptr(tChar)), "argv", "char **argv"},
		{constChar, "fmt", "const char *fmt"},
		{&btf.Const{Type: ptr(tChar)}, "p", "char *const p"},
		{&btf.Const{Type: ptr(tChar)}, "", "char *const"},
		{ptr(&btf.Const{Type: constChar}), "list", "const char *const *list"},
		{&btf.Restrict{Type: ptr(&btf.Volatile{Type: &btf.Const{Type: tInt}})}, "p", "volatile const int *restrict p"},
		{&btf.Const{Type: &btf.Const{Type: tInt}}, "i", "const int i"},
		{ptr(&btf.TypeTag{Value: "user", Type: tChar}), "buf", "char *buf"},
		{array(array(tInt, 3), 2), "m", "int m[2][3]"},
		{array(&btf.Const{Type: ptr(tChar)}, 4), "names", "char *const names[4]"},
		{&btf.Const{Type: array(tInt, 4)}, "a", "const int a[4]"},
		{ptr(array(tInt, 4)), "row", "int (*row)[4]"},
		{handler, "fn", "void (*fn)(int)"},
		{&btf.Const{Type: handler}, "fn", "void (*const fn)(int)"},
		{ptr(proto(tInt)), "fn", "int (*fn)(void)"},
		{ptr(proto(tVoidP, param("p", tVoidP))), "fn", "void * (*fn)(void *p)"},
		{array(handler, 3), "fns", "void (*fns[3])(int)"},
		{ptr(array(handler, 3)), "p", "void (*(*p)[3])(int)"},
		{ptr(proto(handler, param("sig", tInt))), "p", "void (* (*p)(int sig))(int)"},
		{structure("file", 8), "f", "struct file f"},
		{&btf.Union{Name: "u"}, "f", "union u f"},
		{&btf.Enum{Name: "e"}, "f", "enum e f"},
		{&btf.Fwd{Name: "w", Kind: btf.FwdUnion}, "f", "union w f"},
		{ptr(structure("", 8)), "p", "struct {...} *p"},
		{&btf.Enum{}, "e", "enum {...} e"},
		{&btf.Float{Name: "double", Size: 8}, "d", "double d"},
		{&btf.Var{Name: "jiffies", Type: &btf.Volatile{Type: tULong}}, "", "static volatile unsigned long jiffies"},
		{&btf.Var{Name: "v", Type: tInt, Linkage: btf.ExternVar}, "w", "extern int w"},
		{&btf.Datasec{Name: ".bss"}, "", `SEC(".bss")`},

		{&btf.Func{Name: "ip_send_skb", Type: proto(tInt, param("net", net), param("skb", skb))}, "", "int ip_send_skb(struct net *net, struct sk_buff *skb)"},
		{fn(proto(tInt)), "", "int f()"},
		{fn(proto(tInt)), "g", "int g()"},
		{fn(proto(tVoidP, param("size", tSize))), "", "void *f(size_t size)"},
		{fn(proto(constChar, param("fmt", constChar), varargs)), "", "const char *f(const char *fmt, ...)"},
		{fn(proto(tVoid, param("", tInt), param("", ptr(tInt)))), "", "void f(int, int *)"},
		{fn(proto(tInt, varargs)), "", "int f()"},
		{fn(proto(nil, param("cb", ptr(proto(tInt, param("fmt", constChar), varargs))))), "", "void f(int (*cb)(const char *fmt, ...))"},
		{fn(proto(handler, param("sig", tInt), param("handler", handler))), "", "void (*f(int sig, void (*handler)(int)))(int)"},
		{proto(tInt, param("a", tInt)), "f", "int f(int a)"},
		{&btf.Func{Name: "f\x1b", Type: nil}, "", "void f?"},
		{endless, "p", "/* endless type */"},
	}
	for _, tt := range tests {
		require.Equal(t, tt.want, Decl(tt.typ, tt.name))
	}
}

func TestTypeName(t *testing.T) {
	constChar := ptr(&btf.Const{Type: tChar})
	tests := []struct {
		typ  btf.Type
		want string
	}{
		{tInt, "int"},
		{tVoid, "void"},
		{tSize, "size_t"},
		{ptr(structure("sk_buff", 8)), "struct sk_buff *"},
		{ptr(ptr(tInt)), "int **"},
		{&btf.Const{Type: ptr(&btf.Const{Type: ptr(&btf.Volatile{Type: tChar})})}, "char **"},
		{ptr(&btf.TypeTag{Value: "rcu", Type: tInt}), "int *"},
		{array(array(tInt, 3), 2), "int[2][3]"},
		{array(ptr(tInt), 3), "int *[3]"},
		{ptr(array(tInt, 4)), "int(*)[4]"},
		{ptr(array(array(tInt, 4), 2)), "int(*)[2][4]"},
		{ptr(array(ptr(tInt), 4)), "int *(*)[4]"},
		{array(tChar, 0), "char[0]"},
		{ptr(proto(tInt, param("", tChar), param("", tLong))), "int (*)(char, long)"},
		{ptr(proto(tInt, param("fmt", constChar), param("", tVoid))), "int (*)(char *fmt, ...)"},
		{ptr(proto(tVoid)), "void (*)(void)"},
		{ptr(proto(tVoidP)), "void * (*)(void)"},
		{ptr(ptr(proto(tVoid))), "void (**)(void)"},
		{array(ptr(proto(tVoid)), 2), "void (*[2])(void)"},
		{structure("", 8), "struct"},
		{ptr(&btf.Union{}), "union *"},
		{&btf.Enum{}, "enum"},
		{&btf.Enum{Name: "e"}, "enum e"},
		{&btf.Fwd{Name: "f"}, "struct f"},
		{&btf.Func{Name: "f", Type: proto(tInt, param("i", tInt))}, "int(int i)"},
		{&btf.Var{Name: "v", Type: &btf.Const{Type: tInt}}, "int"},
		{&btf.Datasec{Name: ".data"}, ".data"},
	}
	for _, tt := range tests {
		require.Equal(t, tt.want, TypeName(tt.typ))
	}
}
