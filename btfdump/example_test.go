package btfdump_test

import (
	"fmt"

	"github.com/cilium/ebpf/btf"

	"github.com/ksnoop/ksnoop/btfdump"
)

var (
	ulong  = &btf.Int{Name: "unsigned long", Size: 8}
	char   = &btf.Int{Name: "char", Size: 1, Encoding: btf.Signed}
	device = &btf.Struct{Name: "net_device", Size: 32, Members: []btf.Member{
		{Name: "name", Type: &btf.Array{Index: ulong, Type: char, Nelems: 16}},
		{Name: "flags", Type: ulong, Offset: 8 * 16},
		{Name: "ip_ptr", Type: &btf.Pointer{Target: &btf.Struct{Name: "in_device"}}, Offset: 8 * 24},
	}}
)

// A type is compiled once. btf.LoadKernelSpec returns the kernel's types.
func Example() {
	d, err := btfdump.New(device, btfdump.Options{Indent: "  ", EmitStrings: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	data := make([]byte, 32)
	copy(data, "eth0")
	data[16] = 73
	fmt.Printf("%s\n", d.AppendText(nil, data))
	fmt.Printf("%s\n", d.AppendText(nil, data[:20]))
	// Output:
	// (struct net_device){
	//   .name = (char[16])"eth0",
	//   .flags = (unsigned long)73,
	// }
	// (struct net_device){
	//   .name = (char[16])"eth0",
	//   /* 12 bytes cut */
	// }
}

func ExampleDecl() {
	fn := &btf.Func{Name: "register_netdevice", Type: &btf.FuncProto{
		Return: &btf.Int{Name: "int", Size: 4, Encoding: btf.Signed},
		Params: []btf.FuncParam{{Name: "dev", Type: &btf.Pointer{Target: device}}},
	}}
	fmt.Println(btfdump.Decl(fn, ""))
	fmt.Println(btfdump.Decl(&btf.Pointer{Target: fn.Type}, "hook"))
	fmt.Println(btfdump.TypeName(&btf.Pointer{Target: &btf.Const{Type: char}}))
	// Output:
	// int register_netdevice(struct net_device *dev)
	// int (*hook)(struct net_device *dev)
	// char *
}

func ExampleAppendString() {
	fmt.Printf("%s\n", btfdump.AppendString(nil, []byte("eth0\x1b[2J\x00rest")))
	// Output: "eth0\033[2J"
}
