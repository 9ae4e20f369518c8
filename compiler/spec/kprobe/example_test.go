package kprobe_test

import (
	"fmt"

	"github.com/ksnoop/ksnoop/compiler/spec/kprobe"
)

func ExampleParse() {
	trace, err := kprobe.Parse("r:done vfs_read ret=$retval:s64 $arg3:u32 if ret<0")
	fmt.Println(trace, err)
	fmt.Println(trace.GroupName(), trace.EventName(), trace.ItemNames())
	fmt.Println(trace.Items[1].Value, trace.Items[1].Type)
	// Output:
	// r:done vfs_read ret=$retval:s64 $arg3:u32 if ret < 0 <nil>
	// kprobes done [ret arg2]
	// $arg3 u32
}

func ExampleParse_error() {
	_, err := kprobe.Parse("p:open vfs_read len=$arg3:u8 if len == 263")
	fmt.Println(err)
	// Output:
	// 263 does not fit 'len', which is u8 and holds 0 to 255
	//   p:open vfs_read len=$arg3:u8 if len == 263
	//                                          ^^^
}

func ExampleParseFile() {
	traces, err := kprobe.ParseFile("probes", `
# what is read, and by whom
p:read vfs_read $arg3
vfs_write(count) if $comm == "cat"
p:read vfs_read len=$arg3:u32 if len > 4096
`)
	for _, trace := range traces {
		fmt.Println(trace)
	}
	fmt.Println(err)
	// Output:
	// vfs_write(count) if $comm == "cat"
	// p:read vfs_read len=$arg3:u32 if len > 4096
	// <nil>
}
