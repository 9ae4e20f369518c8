package btfdump

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"
)

// FuzzWire makes BTF from a seed, writes it in the wire format and reads it
// back. Any bytes printed as any of its types are valid JSON and text that is
// safe to show, both say once how many bytes are missing, and no two members of
// an object have one name.
func FuzzWire(f *testing.F) {
	f.Add(uint64(1), []byte("\x01\x02\x03\x04\x00\x00\x00\x00abc"), uint8(0))
	f.Add(uint64(7), []byte{}, uint8(0xff))
	f.Fuzz(func(t *testing.T, seed uint64, data []byte, options uint8) {
		g := typeGen{rand.New(rand.NewPCG(seed, 1))}
		for _, typ := range throughWire(g) {
			d, err := New(typ, g.options(options))
			if err != nil {
				continue
			}
			cut := len(data) < int(d.root.size)
			text := string(d.AppendText(nil, data))
			requireSafe(t, text)
			require.Equal(t, cut, strings.Contains(text, " bytes cut */"))

			out := d.AppendJSON(nil, data)
			requireSafe(t, string(out))
			require.NotContains(t, string(out), "\n")
			require.True(t, json.Valid(out), "%s", out)
			require.Equal(t, cut, bytes.Contains(out, []byte(`"$cut":`)))
			requireUnique(t, out)
			require.LessOrEqual(t, len(out), 200*(values(d, &d.root)+1)*(len(data)+2))
		}
	})
}

// throughWire returns the types of a type that took the way through the wire
// format, and none if it cannot be written.
func throughWire(g typeGen) []btf.Type {
	b, err := btf.NewBuilder([]btf.Type{g.root()}, nil)
	if err != nil {
		return nil
	}
	raw, err := b.Marshal(nil, nil)
	if err != nil {
		return nil
	}
	spec, err := btf.LoadSpecFromReader(bytes.NewReader(raw))
	if err != nil {
		return nil
	}
	var types []btf.Type
	for typ, err := range spec.All() {
		if err != nil {
			return nil
		}
		types = append(types, typ)
	}
	return types
}

// TestThroughWire: the fuzz target gets types to print from most seeds.
func TestThroughWire(t *testing.T) {
	read := 0
	for seed := range uint64(1000) {
		if len(throughWire(typeGen{rand.New(rand.NewPCG(seed, 1))})) > 1 {
			read++
		}
	}
	require.Greater(t, read, 500)
}

// requireUnique reads all objects in s and fails if a member occurs twice.
func requireUnique(t *testing.T, s []byte) {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(s))
	dec.UseNumber()
	requireUniqueValue(t, dec, s)
}

func requireUniqueValue(t *testing.T, dec *json.Decoder, s []byte) {
	t.Helper()
	token, err := dec.Token()
	require.NoError(t, err)
	if _, ok := token.(json.Delim); !ok {
		return
	}
	seen := make(map[any]bool)
	for dec.More() {
		if token == json.Delim('{') {
			name, err := dec.Token()
			require.NoError(t, err)
			require.False(t, seen[name], "two members %q in %s", name, s)
			seen[name] = true
		}
		requireUniqueValue(t, dec, s)
	}
	_, err = dec.Token()
	require.NoError(t, err)
}
