package btfdump

import (
	"math"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// BenchmarkLibbpf prints large structures, and then lets libbpf print the same bytes.
// It reports the least CPU time of some rounds for each, as other processes disturb the
// fastest round the least, and how many times faster this package is.
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
	ours, theirs := math.Inf(1), math.Inf(1)
	for range libbpfRounds {
		ours = min(ours, threadTime(func() { dst = d.AppendText(dst[:0], data) }))
		theirs = min(theirs, l.nanoseconds(b, typ, o, data, libbpfRepeat))
	}
	b.ReportMetric(ours, "cpu-ns/op")
	b.ReportMetric(theirs, "libbpf-cpu-ns/op")
	b.ReportMetric(theirs/ours, "times-faster")
}

// The benchmark has libbpfRounds rounds, and each prints the same bytes libbpfRepeat times.
const libbpfRounds, libbpfRepeat = 15, 100

// threadTime returns the CPU time of one call of f, in nanoseconds.
func threadTime(f func()) float64 {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var from, to unix.Timespec
	unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &from)
	for range libbpfRepeat {
		f()
	}
	unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &to)
	return float64(to.Nano()-from.Nano()) / libbpfRepeat
}
