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
		"read((*buf).stamp, buf[0].dev->name[1], *pos)", "read((u8)count, (void *)(u64)(u8)count)", "work(mode:x8, why:s64, now:u)",
		"open(((struct buf *)return)->len, dfd:be)", "send((struct timespec64 *)buf->dev->name)", `open(path ~ "*.[ch]", dfd:ip4 == "1.2.3.4")`,
		"visit(when.tv_sec, page.delta, page.dev->index) if page.flags & 3", "times(lhs, return.tv_nsec) if !(rhs.tv_sec == 1)",
		`read($comm, $pid, $duration > 1ms) if buf->dev->name != "lo" || return < 0`, "bybig(big.last, n)", "large(return.first, x)",
		"read(count) if (buf->len == 1 || return == 2) && !(buf->err || count > 7)", "tp:tick(cpu, buf->len)", "read(@jiffies, (u8)@jiffies)",
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
			r := withMachine(t, unit)
			c := call{result: []uint64{word, word}}
			for range p.Func.words() {
				c.args = append(c.args, word)
			}
			if len(unit.Attachments) > 0 && 8*len(c.args) < stackFrame/2 {
				r.do(c)
			}
			for _, rec := range r.records {
				require.Len(t, rec, unit.Events[rec[HeaderEvent]].Layout.Size)
			}
		}
	})
}
