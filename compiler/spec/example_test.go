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

func ExampleParse_condition() {
	trace, _ := spec.Parse("tcp_*((struct tcp_sock*)sk) if !(sk->sk_mark&0xf)&&($comm~\"ssh*\")")
	fmt.Println(trace)
	and := trace.Cond.(*spec.And)
	fmt.Println(and.X)
	fmt.Println(and.Y)
	// Output:
	// tcp_*((struct tcp_sock *)sk) if !(sk->sk_mark & 0xf) && $comm ~ "ssh*"
	// !(sk->sk_mark & 0xf)
	// $comm ~ "ssh*"
}
