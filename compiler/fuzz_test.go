package compiler

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler/spec"
)

// FuzzCompile: whatever text resolves also compiles, and its programs end,
// touch no memory that is not theirs and submit what they reserve.
func FuzzCompile(f *testing.F) {
	for _, text := range []string{
		"read", "send", "open", "many", "times", "spill", "large", "huge", "print", "twice(a)",
		"read(buf->len > 100, return == 3)", "read(buf->delta == -2, buf->type != 1, return)",
		"open(return->dev->name, dfd < -1)", "send(buf->dev->alias, return != 0)", "many(h->index > 3, return)",
	} {
		f.Add(text, uint64(0xffff_8880_0000_0000))
	}
	f.Fuzz(func(t *testing.T, text string, word uint64) {
		trace, err := spec.Parse(text)
		if err != nil {
			return
		}
		for _, features := range []Features{withTrampoline, withProbes} {
			p, err := Resolve(trace, newTarget(t, features))
			if err != nil {
				var e *spec.Error
				require.ErrorAs(t, err, &e)
				require.LessOrEqual(t, e.At.End, len(text))
				continue
			}
			unit, err := Compile([]*Probe{p}, Options{Arch: AMD64, Features: features, RingBytes: 1 << 20})
			require.NoError(t, err)
			r := &rig{t, unit, newMachine(unit)}
			c := call{result: []uint64{word, word}}
			for range p.Func.words() {
				c.args = append(c.args, word)
			}
			if len(unit.Attachments) > 0 {
				r.do(c)
			}
			for _, rec := range r.records {
				require.Len(t, rec, unit.Events[rec[HeaderEvent]].Layout.Size)
			}
		}
	})
}
