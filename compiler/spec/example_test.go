package spec_test

import (
	"fmt"

	"github.com/ksnoop/ksnoop/compiler/spec"
)

func ExampleParse() {
	trace, err := spec.Parse("ip_send_skb(skb->len>100,return)")
	fmt.Println(trace, err)
	for _, item := range trace.Items {
		fmt.Println(item.Value)
	}
	// Output:
	// ip_send_skb(skb->len > 100, return) <nil>
	// skb->len
	// return
}

func ExampleParse_error() {
	_, err := spec.Parse("vfs_read(count = 5)")
	fmt.Println(err)
	// Output:
	// '=' is not a comparison
	//   vfs_read(count = 5)
	//                  ^
	//   did you mean '=='?
}
