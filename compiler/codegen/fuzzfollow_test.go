package codegen

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/compilertest"
	"github.com/ksnoop/ksnoop/compiler/resolve"
	"github.com/ksnoop/ksnoop/compiler/spec"
)

// FuzzFollow verifies that every object and values to show that resolve also compile,
// that their programs end, access only their own memory and submit what they reserve, and
// that everything else is refused with its place.
func FuzzFollow(f *testing.F) {
	for _, seed := range [][2]string{
		{"send(buf)", "buf->len"}, {"send(buf) if buf->len > 100 || buf->err > 0", "buf->len, buf->dev->name:string"},
		{"send(buf) if buf->len - buf->err > 100", "buf->len * 2 + (buf->err << 1)"}, {"open(return)", "return->len, return->dev->index:x"},
		{"open(return) if return->err < 0", "$comm, $pid, $kstack"}, {"vfs_open(f)", "f->f_mode"}, {"send(buf->dev)", "buf->dev->name"},
		{"read((struct dev *)pos, count > 3)", "((struct dev *)pos)->index"}, {"copy(from) if n == 1", "from->dev->alias"}, {"double(return)", "*return"},
		{"send(buf)", "buf->dev->name[0..2], (u8)buf->len + 1"}, {"merge(to) if from->len > to->len", "to->stamp"},
		{"tp:tick(buf)", "buf->delta, @jiffies"}, {"later(buf)", "buf->dev->name, buf->type"}, {"work(mode)", "mode"}, {"send(buf) => read", "buf"},
		{"iter:buf(buf)", "buf->len"}, {"send(buf, $duration > 1)", "$duration"}, {"send(buf, count())", "diff(buf->len)"},
	} {
		f.Add(seed[0], seed[1], uint64(someObject))
	}
	f.Fuzz(func(t *testing.T, text, show string, word uint64) {
		trace, err := spec.Parse(text)
		if err != nil {
			return
		}
		items, err := spec.ParseItems(show)
		if err != nil {
			return
		}
		follow := resolve.Following{Show: []*spec.Trace{items}, In: []string{"*"}, Stack: word&1 == 1, Objects: int(word >> 60)}
		if word&2 == 2 {
			follow.Also = []string{"copy", "double"}
		}
		for _, features := range []compiler.Features{compilertest.WithMulti, compilertest.WithKprobeSession, compilertest.WithProbes} {
			plan, err := resolve.Follow(trace, follow, newObjectsTarget(t, features))
			if err != nil {
				var e *spec.Error
				require.ErrorAs(t, err, &e)
				require.LessOrEqual(t, e.At.End, len(e.Text))
				continue
			}
			unit, err := generate(plan.Probes, compiler.Options{RingBytes: 1 << 20})
			require.NoError(t, err)
			for name, ps := range unit.Collection.Programs {
				requireReachable(t, name, ps.Instructions)
			}
			r := withMachine(t, unit, compiler.AMD64)
			for range 2 {
				for _, p := range plan.Probes {
					c := call{fn: p.Func.Name, result: []uint64{word, word}}
					for range p.Func.Words() {
						c.args = append(c.args, word)
					}
					r.do(c)
				}
			}
			for _, rec := range r.records {
				require.Contains(t, sizes(unit.Events[rec[compiler.HeaderEvent]]), len(rec))
			}
		}
	})
}
