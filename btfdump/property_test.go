package btfdump

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"
)

// maxProperty is the size of the largest structure whose dumps are read back.
const maxProperty = 1 << 16

// TestProperties prints every structure of the running kernel, whole and cut, and reads
// the text back with the BTF alone. The result must be the data.
func TestProperties(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	var structures, large int
	for typ, err := range kernelTypes(t).All() {
		require.NoError(t, err)
		if !isStructure(typ) {
			continue
		}
		if sizeof(typ) > maxProperty {
			large++
			continue
		}
		if structures++; leftOut(structures) {
			continue
		}
		newStructureProperties(t, rnd, typ).check(t)
	}
	t.Logf("%d structures, all or every fourth of them, %d larger ones left out", structures, large)
}

// structureProperties is one structure with its dumpers and a value of it.
type structureProperties struct {
	typ                    btf.Type
	lines, compact, zeroes *Dumper
	data                   []byte
	n                      int // bytes of the cut value
}

func newStructureProperties(t *testing.T, rnd *rand.Rand, typ btf.Type) *structureProperties {
	dumper := func(o Options) *Dumper {
		o.EmitStrings = true
		d, err := New(typ, o)
		require.NoError(t, err)
		return d
	}
	r := &structureProperties{
		typ: typ, lines: dumper(Options{}), compact: dumper(Options{Compact: true}), zeroes: dumper(Options{EmitZeroes: true}),
		data: sparse(rnd, sizeof(typ)),
	}
	if len(r.data) > 0 {
		r.n = rnd.IntN(len(r.data))
	}
	return r
}

// sparse returns random bytes with runs of zeros and of text.
func sparse(rnd *rand.Rand, size int) []byte {
	data := make([]byte, size)
	for i := 0; i < size; {
		sort, n := rnd.IntN(4), 1+rnd.IntN(24)
		for ; i < size && n > 0; i, n = i+1, n-1 {
			switch sort {
			case 0:
			case 1:
				data[i] = 'a' + byte(rnd.IntN(26))
			default:
				data[i] = byte(rnd.Uint32())
			}
		}
	}
	return data
}

func (r *structureProperties) check(t *testing.T) {
	whole := string(r.lines.AppendText(nil, r.data))
	r.readText(t, whole, r.data)
	r.readText(t, string(r.zeroes.AppendText(nil, r.data)), r.data)
	r.sameTokens(t, whole, string(r.compact.AppendText(nil, r.data)))
	r.readJSON(t, r.lines, r.data)
	r.readJSON(t, r.zeroes, r.data)
	if len(r.data) > 0 {
		r.cutText(t)
		r.readJSON(t, r.lines, r.data[:r.n:r.n])
		r.readJSON(t, r.zeroes, r.data[:r.n:r.n])
	}
}

func (r *structureProperties) fail(t *testing.T, what, out string) {
	t.Helper()
	t.Fatalf("%s: %v with %x, %d bytes when cut\n%s", what, r.typ, r.data, r.n, out)
}

// sameBytes compares the bytes read back from a dump with the data. Values that the
// dump leaves out are zero. Only the last number of the data may be incomplete.
func (r *structureProperties) sameBytes(t *testing.T, im *image, data []byte, out string) {
	t.Helper()
	leaves := newImage(len(data))
	leaves.leaves(spot{}, r.typ)
	for i, b := range data {
		if (im.data[i]^b)&(leaves.known[i]|im.known[i]) != 0 {
			r.fail(t, fmt.Sprintf("byte %d reads back as %02x", i, im.data[i]), out)
		}
	}
}

func (r *structureProperties) readText(t *testing.T, out string, data []byte) {
	t.Helper()
	in := textReader{image: newImage(len(r.data)), s: out}
	in.skip("(" + TypeName(r.typ) + ")")
	if err := in.value(r.typ, spot{}); err != nil || in.at != len(out) {
		r.fail(t, fmt.Sprintf("read %d of %d bytes: %v", in.at, len(out), err), out)
	}
	r.sameBytes(t, in.image, data, out)
}

func (r *structureProperties) sameTokens(t *testing.T, lines, compact string) {
	t.Helper()
	if strings.NewReplacer("\n", "", "\t", "").Replace(lines) != compact {
		r.fail(t, "compact form differs", lines+"\n"+compact)
	}
}

// cutText checks that the text of a cut value has one mark, nothing from beyond the
// end, and is not longer than that of the whole value.
func (r *structureProperties) cutText(t *testing.T) {
	t.Helper()
	cut := string(r.lines.AppendText(nil, r.data[:r.n:r.n]))
	if cut != string(r.lines.AppendText(nil, r.data[:r.n])) {
		r.fail(t, "reads beyond the end", cut)
	}
	mark := fmt.Sprintf("/* %d bytes cut */", len(r.data)-r.n)
	for _, d := range []*Dumper{r.lines, r.compact, r.zeroes} {
		out := string(d.AppendText(nil, r.data[:r.n]))
		if strings.Count(out, mark) != 1 || strings.Count(out, " cut */") != 1 {
			r.fail(t, "not marked once", out)
		}
		r.readText(t, strings.NewReplacer(" "+mark, "", mark, "").Replace(out), r.data[:r.n])
	}
	r.sameTokens(t, cut, string(r.compact.AppendText(nil, r.data[:r.n])))

	whole := len(r.zeroes.AppendText(nil, r.data))
	if n := len(r.zeroes.AppendText(nil, r.data[:r.n])); n > whole+maxNested+len(mark) {
		r.fail(t, fmt.Sprintf("%d bytes of text grow to %d", whole, n), cut)
	}
}

func (r *structureProperties) readJSON(t *testing.T, d *Dumper, data []byte) {
	t.Helper()
	out := d.AppendJSON(nil, data)
	if !json.Valid(out) {
		r.fail(t, "invalid JSON", string(out))
	}
	in := newJSONReader(newImage(len(r.data)), out)
	if err := in.value(r.typ, spot{}); err != nil {
		r.fail(t, err.Error(), string(out))
	}
	var cut []string
	if missing := len(r.data) - len(data); missing > 0 {
		cut = []string{fmt.Sprint(missing)}
	}
	require.Equal(t, cut, in.cut, "%s", out)
	if !strings.Contains(string(out), `\ufffd`) {
		// Otherwise a string is not UTF-8, which JSON cannot represent.
		r.sameBytes(t, in.image, data, string(out))
	}
}
