package btfdump

import (
	"flag"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"
)

// kernelTypes reads the running kernel's BTF.
func kernelTypes(t testing.TB) *btf.Spec {
	t.Helper()
	const path = "/sys/kernel/btf/vmlinux"
	if _, err := os.ReadFile(path); err != nil {
		t.Skipf("the running kernel offers no readable BTF: %v", err)
	}
	spec, err := btf.LoadSpec(path)
	require.NoError(t, err)
	return spec
}

// TestKernelTypes prints zeros, ones and random bytes as values of every type of the
// kernel, whole and cut.
func TestKernelTypes(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var types, funcs, left int
	for typ, err := range kernelTypes(t).All() {
		require.NoError(t, err)
		switch v := typ.(type) {
		case *btf.Func:
			funcs++
			decl := Decl(v, "")
			require.NotContains(t, decl, "endless")
			require.Contains(t, decl, v.Name+"(")
			continue
		case *btf.Struct, *btf.Union, *btf.Enum, *btf.Typedef:
		default:
			continue
		}
		size, err := btf.Sizeof(typ)
		if err != nil {
			continue // typedef of void or of a function
		}
		if types++; leftOut(types) {
			left++
			continue
		}
		dumpKernelType(t, rnd, typ, size)
	}
	t.Logf("%d types, %d of them left out, %d functions", types, left, funcs)
}

var everyType = flag.Bool("all", false, "test all types of the running kernel, not every fourth")

// leftOut reports whether a test leaves out the nth type of the kernel.
func leftOut(n int) bool { return !*everyType && n%4 != 0 }

func dumpKernelType(t *testing.T, rnd *rand.Rand, typ btf.Type, size int) {
	d, err := New(typ, Options{EmitStrings: true})
	require.NoError(t, err, "%v", typ)

	ones := make([]byte, size)
	random := make([]byte, size)
	for i := range size {
		ones[i] = 0xff
		random[i] = byte(rnd.Uint32())
	}
	for _, data := range [][]byte{make([]byte, size), ones, random} {
		require.NotContains(t, string(d.AppendText(nil, data)), "bytes cut")
		if size == 0 {
			continue
		}
		cut := string(d.AppendText(nil, data[:rnd.IntN(size)]))
		require.Equal(t, 1, strings.Count(cut, " bytes cut */"), "%v\n%s", typ, cut)
	}
}
