package btfdump

import (
	"math/rand/v2"
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"
)

// BenchmarkJSON prints large structures of the running kernel, zero and random.
func BenchmarkJSON(b *testing.B) {
	spec := kernelTypes(b)
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, name := range []string{"task_struct", "sk_buff", "sock"} {
		var typ *btf.Struct
		require.NoError(b, spec.TypeByName(name, &typ))
		zero, random := make([]byte, typ.Size), make([]byte, typ.Size)
		for i := range random {
			random[i] = byte(rnd.Uint32())
		}
		b.Run(name+"/zero", func(b *testing.B) { benchmarkJSON(b, typ, zero) })
		b.Run(name+"/random", func(b *testing.B) { benchmarkJSON(b, typ, random) })
	}
}

func benchmarkJSON(b *testing.B, t btf.Type, data []byte) {
	d, err := New(t, Options{EmitStrings: true})
	require.NoError(b, err)
	dst := d.AppendJSON(nil, data)
	b.ReportAllocs()
	b.SetBytes(int64(len(dst)))
	for b.Loop() {
		dst = d.AppendJSON(dst[:0], data)
	}
}
