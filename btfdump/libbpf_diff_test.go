package btfdump

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"
)

const (
	libbpfQueries = 20_000
	libbpfLargest = 16 << 10 // bytes of a value, to save time
)

// TestLibbpf compares the text with libbpf's for random types, bytes and options,
// except in the cases in which they differ on purpose.
func TestLibbpf(t *testing.T) {
	l := startLibbpf(t)
	types := libbpfTypes(t, l.spec)

	t.Run("with zeros", func(t *testing.T) {
		compareLibbpf(t, l, types, true, dataExclusions)
	})
	t.Run("without zeros", func(t *testing.T) {
		compareLibbpf(t, l, types, false, append(sparseExclusions, dataExclusions...))
	})
}

// libbpfTypes returns the kernel's types that both print in the same way at least
// for some bytes.
func libbpfTypes(t *testing.T, spec *btf.Spec) []btf.Type {
	var types []btf.Type
	out := make(map[string]int)
	for typ, err := range spec.All() {
		require.NoError(t, err)
		_, err = New(typ, Options{})
		p := rootPlace(typ)
		if _, section := typ.(*btf.Datasec); section || err != nil || p.size() > libbpfLargest {
			out["no size, or too large"]++
			continue
		}
		if why := excluded(p, make([]byte, p.size()), typeExclusions); why != "" {
			out[why]++
			continue
		}
		types = append(types, typ)
	}
	t.Logf("%d types compared, excluded: %v", len(types), out)
	return types
}

func compareLibbpf(t *testing.T, l *libbpf, types []btf.Type, zeroes bool, list []exclusion) {
	rnd := rand.New(rand.NewPCG(3, uint64(len(list))))
	skipped := make(map[string]int)
	compared := make(map[btf.Type]bool)
	for n := 0; n < libbpfQueries; {
		typ := types[rnd.IntN(len(types))]
		p := rootPlace(typ)
		data := randomValue(rnd, p)
		if why := excluded(p, data, list); why != "" {
			skipped[why]++
			continue
		}
		o := randomOptions(rnd)
		o.EmitZeroes = zeroes
		if _, ok := typ.(*btf.Var); ok {
			o.IndentLevel = 0 // libbpf indents the value once more, in the middle of the line
		}
		want := l.dump(t, typ, o, data)
		got := nameVersion.ReplaceAllString(text(t, typ, o, data), "")
		if got != want {
			require.Equal(t, want, got, "query %d: %v with %+v and %x\nlibbpf %s:\n%s\nours:\n%s", n, typ, o, data, l.version, want, got)
		}
		compared[typ] = true
		n++
	}
	t.Logf("libbpf %s: %d queries of %d types, 0 differences; excluded: %v", l.version, libbpfQueries, len(compared), skipped)
}

// randomValue returns random bytes, random bytes without zeros, plausible words, or
// words most of which are zero.
func randomValue(rnd *rand.Rand, p place) []byte {
	data := make([]byte, p.size())
	sort := rnd.IntN(4)
	for i := range data {
		data[i] = byte(rnd.Uint32())
		if sort > 0 && data[i] == 0 {
			data[i] = 1
		}
	}
	for word := data; sort >= 2 && len(word) > 0; word = word[min(8, len(word)):] {
		if len(word) >= 8 && rnd.IntN(2) == 0 {
			binary.LittleEndian.PutUint64(word, plausibleWord(rnd))
		} else if sort == 3 && rnd.IntN(3) > 0 {
			clear(word[:min(8, len(word))])
		}
	}
	if rnd.IntN(2) == 0 {
		fillNamed(p, data, rnd.IntN)
	}
	return data
}

// plausibleWord returns a word as it occurs in kernel memory: a pointer, a small
// number or zero.
func plausibleWord(rnd *rand.Rand) uint64 {
	switch rnd.IntN(4) {
	case 0:
		return 0xffff888000000000 | rnd.Uint64N(1<<32)<<3
	case 1:
		return rnd.Uint64N(1000)
	case 2:
		return rnd.Uint64N(1000) | rnd.Uint64N(3)<<32
	}
	return 0
}

// randomOptions returns the usual options in half of the cases, else random ones. An
// empty indent means a tab in this package, and libbpf truncates indents of more
// than 15 bytes.
func randomOptions(rnd *rand.Rand) Options {
	if rnd.IntN(2) == 0 {
		return Options{}
	}
	return Options{
		Compact:     rnd.IntN(3) == 0,
		SkipNames:   rnd.IntN(3) == 0,
		Indent:      []string{"", " ", "    ", "\t", "--> "}[rnd.IntN(5)],
		IndentLevel: rnd.IntN(5),
	}
}
