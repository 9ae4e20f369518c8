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

// FuzzWire generates BTF from a seed, writes it in the wire format and reads it back.
// Then it prints any bytes as values of its types. The JSON must be valid and the
// text safe to print, both must say once how many bytes are missing, and the names in
// an object must be unique.
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

// throughWire generates a type, writes it in the wire format and returns the types
// that it reads back, or none if the type cannot be written.
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

// TestThroughWire checks that FuzzWire gets types to print for most seeds.
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
