package runtime

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/kallsyms"
)

// openFinders returns what the kernel says of addresses, and its symbol table. It skips
// the test where the kernel cannot be asked.
func openFinders(t testing.TB) (*finder, *kallsyms.Table) {
	k, err := OpenKernel()
	if err != nil {
		t.Skip(err)
	}
	table, err := k.Symbols()
	require.NoError(t, err)
	if err := table.NeedAddresses(); err != nil {
		t.Skip(err)
	}
	k, err = OpenKernel()
	require.NoError(t, err)
	_, err = k.Target(kallsyms.Wanted{Keep: func(name string) bool { return name == "vfs_read" }, Prefixes: []string{"vfs_read"}})
	require.NoError(t, err)
	opened, err := k.Finder()
	require.NoError(t, err)
	f, ok := opened.(*finder)
	if !ok {
		t.Skip("the kernel cannot be asked")
	}
	return f, table
}

// TestFinder compares what the kernel says of addresses with its symbol table.
func TestFinder(t *testing.T) {
	f, table := openFinders(t)
	require.Equal(t, table.Lookup("vfs_read"), f.Lookup("vfs_read"))
	require.Empty(t, f.Lookup("vfs_write"), "nobody has asked for it")
	r := rand.New(rand.NewPCG(1, 1))
	n, other := 0, 0
	for s := range table.All() {
		// Programs come and go meanwhile, and of ftrace's and kprobes' own pages the kernel
		// says nothing: they are in the table alone.
		lasts := s.Module != "bpf" && !strings.HasPrefix(s.Module, "__builtin__")
		if s.Absolute() || !s.Text() || !lasts || r.IntN(20) != 0 {
			continue
		}
		addr := s.Addr + uint64(r.IntN(20))
		want, offset, ok := table.At(addr)
		got, gotOffset, gotOK := f.At(addr)
		if n++; want.Name != got.Name || ok != gotOK || offset != gotOffset || want.Module != got.Module {
			other++
			t.Logf("%#x: %v %s+%#x %s, and by the table %v %s+%#x %s", addr, gotOK, got.Name, gotOffset, got.Module, ok, want.Name, offset, want.Module)
			continue
		}
		require.Equal(t, table.Size(want), f.Size(got), "%s", want.Name)
	}
	t.Logf("%d of %d differ", other, n)
	require.Zero(t, other)
}
