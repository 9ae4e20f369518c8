package codegen

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/compilertest"
	"github.com/ksnoop/ksnoop/compiler/resolve"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/compiler/spec/kprobe"
)

// FuzzCompile checks that every text that resolves also compiles, and that its
// programs end, access only their own memory and submit what they reserve.
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
		"p read %di $stack1 a=+0(%di):u32 +8(buf):string count:b4@2/8 if a != 5 && cpu & CPUS{0-3}", "r read $retval:s32 count +u0(ubuf):u8[4]",
		`p read $arg* k=\"text" \-5 @jiffies+4:u16 if k ~ "te*" && count == 3`, "r:x read rv a0 s0 sa", "p 0xffffffff81000110 %dx:symbol",
		"t tick cpu len=+0($arg2):u32", "p:d work mode:char why:s8 now if now == 1", "f read%return buf->dev->name:string $comm if comm == x",
		"p times lhs.tv_sec:u8 rhs:u8[4] $arg1:string +8(%di):x16[3]", "r times $retval +0($retval):u32 lhs", "p visit page:%pd when.tv_nsec:ustring",
		"read(buf->len, $comm, count(), sum(count), avg(return), min(buf->delta), max(count), hist($duration), lhist(return, -5, 100, 7))",
		`read(buf->dev->name:string, $kstack, $ppid, count()) if return >= 0 && !(buf->err)`, "times(hist(lhs.tv_sec), return.tv_nsec)",
		"read(diff(*buf), after(*pos)) if diff(*pos) || after(buf->len) > 3", "read(count + 1 & 3, (buf->len << 2) - return != count)",
		"iter:buf(buf->len, fd + 1, buf->dev->name:string) if buf->err < 0 || fd == 3", "iter:ksym(ksym->alias, meta->seq_num, count(), sum(ksym->index))",
		"read(buf->len, count) => send(hist($duration)) on $tid", "tp:tick(cpu) => read(return, $duration > 1ms) on $cpu",
	} {
		f.Add(text, uint64(0xffff_8880_0000_0000))
	}
	f.Fuzz(func(t *testing.T, text string, word uint64) {
		trace, err := kprobe.ParseAny(text)
		if err != nil {
			return
		}
		for _, features := range []compiler.Features{compilertest.WithTrampoline, compilertest.WithProbes} {
			plan, err := resolve.All([]*spec.Trace{trace}, compilertest.NewTarget(t, features), resolve.Wishes{})
			if err != nil {
				var e *spec.Error
				require.ErrorAs(t, err, &e)
				require.LessOrEqual(t, e.At.End, len(text))
				continue
			}
			unit, err := generate(plan.Probes, compiler.Options{RingBytes: 1 << 20})
			require.NoError(t, err)
			r := withMachine(t, unit, compiler.AMD64)
			for _, p := range plan.Probes {
				if p.Func.Iterator {
					continue
				}
				c := call{fn: p.Func.Name, result: []uint64{word, word}}
				for range p.Func.Words() {
					c.args = append(c.args, word)
				}
				if len(unit.Attachments) > 0 && 8*len(c.args) < stackFrame/2 {
					r.do(c)
				}
			}
			for _, rec := range r.records {
				require.Contains(t, sizes(unit.Events[rec[compiler.HeaderEvent]]), len(rec))
			}
		}
	})
}
