package btfdump_test

import (
	"fmt"

	"github.com/ksnoop/ksnoop/btfdump"
)

func ExampleDumper_AppendJSON() {
	d, err := btfdump.New(device, btfdump.Options{EmitStrings: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	data := make([]byte, 32)
	copy(data, "eth0")
	data[16] = 73
	data[24] = 0x10
	fmt.Printf("%s\n", d.AppendJSON(nil, data))
	fmt.Printf("%s\n", d.AppendJSON(nil, data[:20]))
	// Output:
	// {"name":"eth0","flags":73,"ip_ptr":"0x10"}
	// {"name":"eth0","$cut":12}
}
