package btfdump

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"
)

// BenchmarkLibbpf prints large records, and then lets libbpf print the same bytes.
// It reports libbpf-ns/op and how many times faster this package is.
func BenchmarkLibbpf(b *testing.B) {
	l := startLibbpf(b)
	for _, name := range []string{"task_struct", "sk_buff", "sock"} {
		var typ *btf.Struct
		require.NoError(b, l.spec.TypeByName(name, &typ))
		for _, fill := range []string{"random", "plausible", "zero"} {
			data := benchmarkData(fill, int(typ.Size))
			for form, o := range map[string]Options{"default": {EmitStrings: true}, "compact": {EmitStrings: true, Compact: true}} {
				b.Run(name+"/"+fill+"/"+form, func(b *testing.B) { benchmarkLibbpf(b, l, typ, o, data) })
			}
		}
	}
}

func benchmarkData(fill string, size int) []byte {
	rnd := rand.New(rand.NewPCG(5, uint64(size)))
	var data []byte
	for len(data) < size {
		switch fill {
		case "random":
			data = append(data, le(rnd.Uint64())...)
		case "plausible":
			data = append(data, le(plausibleWord(rnd))...)
		default:
			data = append(data, zeros(8)...)
		}
	}
	return data[:size]
}

func benchmarkLibbpf(b *testing.B, l *libbpf, typ btf.Type, o Options, data []byte) {
	d, err := New(typ, o)
	require.NoError(b, err)
	dst := d.AppendText(nil, data)
	b.ReportAllocs()
	for b.Loop() {
		dst = d.AppendText(dst[:0], data)
	}
	b.StopTimer()
	ours := float64(b.Elapsed()) / float64(b.N)
	repeat := int(100*time.Millisecond/time.Duration(ours+1))/10 + 1
	theirs := l.nanoseconds(b, typ, o, data, repeat)
	b.ReportMetric(theirs, "libbpf-ns/op")
	b.ReportMetric(theirs/ours, "times-faster")
}
