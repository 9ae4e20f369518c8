package kallsyms_test

import (
	"fmt"
	"strings"

	"github.com/ksnoop/ksnoop/kallsyms"
)

func ExampleRead() {
	table, err := kallsyms.Read(strings.NewReader(`ffffffff81000100 t m_start
ffffffff81000200 T vfs_read
ffffffffc0100000 t m_start	[ext4]
`), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, s := range table.Lookup("m_start") {
		fmt.Printf("%#x %s %q\n", s.Addr, s.Name, s.Module)
	}
	s, offset, _ := table.At(0xffffffff81000204)
	fmt.Printf("%s+%#x\n", s.Name, offset)
	// Output:
	// 0xffffffff81000100 m_start ""
	// 0xffffffffc0100000 m_start "ext4"
	// vfs_read+0x4
}
