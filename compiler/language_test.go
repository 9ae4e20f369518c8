package compiler

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler/spec"
)

// The language beyond the classic one: what each spec shows of a call.
func TestLanguage(t *testing.T) {
	const neg = math.MaxUint64
	for _, tc := range []struct {
		spec string
		args func(buf uint64) []uint64
		ret  []uint64
		want []string
	}{
		// Values.
		{"read((*buf).len)", args1(0), nil, []string{"entry (*buf).len=105"}},
		{"read(buf[0].len == 105)", args1(0), nil, []string{"entry buf[0].len=105"}},
		{"read(buf->stamp.tv_nsec)", args1(0), nil, []string{"entry buf->stamp.tv_nsec=0"}},
		{"read(buf->dev->name[1] == 't')", args1(0), nil, []string{"entry buf->dev->name[1]=116"}},
		{"read(*buf->dev->alias == 'u')", args1(0), nil, []string{"entry *buf->dev->alias=117"}},
		{"read((*buf->dev).index)", args1(0), nil, []string{"entry (*buf->dev).index=42"}},
		{"read((u8)count)", args(0, 0, 0x1234, 0), nil, []string{"entry (u8)count=52"}},
		{"read((char)count)", args(0, 0, 0x12ff, 0), nil, []string{"entry (char)count=-1"}},
		{"read((int)(short)count == -1)", args(0, 0, 0x1ffff, 0), nil, []string{"entry (int)(short)count=-1"}},
		{"read((_Bool)count)", args(0, 0, 0x100, 0), nil, []string{"entry (_Bool)count=1"}},
		{"read((u16)buf->len)", args1(0), nil, []string{"entry (u16)buf->len=105"}},
		{"read(((struct dev *)buf->dev)->index)", args1(0), nil, []string{"entry ((struct dev *)buf->dev)->index=42"}},
		{"visit(((struct buf *)word)->len == 105)", func(buf uint64) []uint64 { return []uint64{0, 0, 0, 0, buf} }, nil,
			[]string{"entry ((struct buf *)word)->len=105"}},
		{"read(((struct timespec64 *)buf->dev->name)->tv_sec)", args1(0), nil,
			[]string{"entry ((struct timespec64 *)buf->dev->name)->tv_sec=812151909"}},
		{"read(*(u32 *)buf == 105)", args1(0), nil, []string{"entry *(u32 *)buf=105"}},
		{"read((void *)(u64)(u8)count)", args(0, 0, 0x1234, 0), nil, []string{"entry (void *)(u64)(u8)count=52"}},
		{"open((void *)(long)dfd)", args(0x12345678_fffffffe, 0), nil, []string{"entry (void *)(long)dfd=18446744073709551614"}},
		{"read((void *)(long)buf->err)", args1(0), nil, []string{"entry (void *)(long)buf->err=18446744073709551615"}},
		{"read((void *)return > NULL)", args1(0), []uint64{neg}, []string{"return (void *)return=18446744073709551615"}},
		// Parts of records that are passed by value.
		{"times(lhs.tv_nsec == 2, rhs.tv_sec)", args(1, 2, 3, 4), nil, []string{"entry lhs.tv_nsec=2 rhs.tv_sec=3"}},
		{"times(return.tv_nsec == 6)", args(1, 2, 3, 4), []uint64{4, 6}, []string{"return return.tv_nsec=6"}},
		{"visit(page.flags == 7, page.delta == -2, page.mark)", args(0, 0, 0x0000_097e_0000_0007, 0, 0), nil,
			[]string{"entry page.flags=7 page.delta=-2 page.mark=9"}},
		{"visit(page.flags:be == 7)", args(0, 0, 0x0700_0000, 0, 0), nil, []string{"entry page.flags=7"}},
		{`visit(page.flags:ip4 == "7.0.0.255")`, args(0, 0, 0xff00_0007, 0, 0), nil, []string{"entry page.flags=4278190087"}},
		{"spill(t.tv_nsec)", args(1, 2, 3, 4, 5, 6, 7, 8), nil, []string{"entry t.tv_nsec=7"}},
		// Builtins.
		{"read($pid, $tid, $cpu, $uid, $cgroup, $comm)", args1(0), nil, []string{`entry $pid=7 $tid=8 $cpu=3 $uid=1000 $cgroup=4242 $comm="worker"`}},
		{"read($arg3 == 5, $retval == 3)", args(0, 0, 5, 0), []uint64{3}, []string{"call $arg3=5 $retval=3"}},
		{"read($pid, return)", args(0, 0, 5, 0), []uint64{3}, []string{"return $pid=7 return=3"}},
		{"read($duration, return)", args(0, 0, 5, 0), []uint64{3}, []string{"return $duration=10 return=3"}},
		{"read($duration > 9ns, count)", args(0, 0, 5, 0), []uint64{3}, []string{"call count=5 $duration=10"}},
		{"read(count, $duration)", args(0, 0, 5, 0), []uint64{3}, []string{"entry count=5", "return $duration=10"}},
		{"read($duration > 10)", args(0, 0, 5, 0), []uint64{3}, nil},
		{"read($kstack)", args1(0), nil, []string{"entry $kstack=512 bytes of 512"}},
		// Formats.
		{"read(count:x16 == 0x1234)", args(0, 0, 0xff1234, 0), nil, []string{"entry count=4660"}},
		{"read(count:s8 == -1)", args(0, 0, 0xff, 0), nil, []string{"entry count=-1"}},
		{"open(dfd:be == 0x01020304)", args(0x04030201, 0), nil, []string{"entry dfd=16909060"}},
		{`open(dfd:ip4 == "1.2.3.255")`, args(0xff030201, 0), nil, []string{"entry dfd=-16580095"}},
		{`open(dfd:ip4 == "1.2.3.4")`, args(0x04030201, 0), nil, []string{"entry dfd=67305985"}},
		{"read(buf->dev->name:string)", args1(0), nil, []string{`entry buf->dev->name="eth0"`}},
		{"read(ubuf:ustring)", args(0, 0x7fff_0000_0000, 5, 0), nil, []string{`entry ubuf="user"`}},
		{"read(ubuf:ustring)", args(0, 0x7ffe_0000_0000, 5, 0), nil, []string{"entry ubuf=*fault(0x7ffe00000000)"}},
		{"read(ubuf:ustring)", args(0, neg, 5, 0), nil, []string{"entry ubuf=*fault(0xffffffffffffffff)"}},
		// Constants.
		{"work(mode == RESUME)", args(1, 0, 0), nil, []string{"entry mode=1"}},
		{"work(why == BAD)", args(0, 0xffff_ffff, 0), nil, []string{"entry why=-1"}},
		{"work(now == true)", args(0, 0, 1), nil, []string{"entry now=1"}},
		{"read(return == -EAGAIN)", args1(0), []uint64{neg - 10}, []string{"return return=-11"}},
		{"open(return == -ENOENT)", args(0, 0), []uint64{neg - 1}, []string{"return return=*fault(0xfffffffffffffffe)"}},
		{"read(count & O_DIRECT)", args(0, 0, 0x4001, 0), nil, []string{"entry count=16385"}},
		{"read(count & O_DIRECT)", args(0, 0, 0x8001, 0), nil, nil},
		{"read(count == O_RDWR)", args(0, 0, 2, 0), nil, []string{"entry count=2"}},
		// Error pointers.
		{"open(return is-err)", args(0, 0), []uint64{neg - 1}, []string{"return return=*fault(0xfffffffffffffffe)"}},
		{"open(return:x is-err)", args(0, 0), []uint64{neg - 4094}, []string{"return return=18446744073709547521"}},
		{"open(return:x is-err)", args(0, 0), []uint64{neg - 4095}, nil},
		{"open(return:x is-err)", args(0, 0), []uint64{0}, nil},
		{"open(return:x) if !(return is-err)", args(0, 0), []uint64{0}, []string{"return return=0"}},
		{"open(return:x) if !(return is-err)", args(0, 0), []uint64{neg}, nil},
		{"read(count is-err)", args(0, 0, neg-27, 0), nil, []string{"entry count=18446744073709551588"}},
		{"read(count) if ubuf is-err || buf->dev->alias is-err", args(0, neg-13, 5, 0), nil, []string{"entry count=5"}},
		{"read(count) if !(buf->dev->alias is-err)", args1(5), nil, []string{"entry count=5"}},
		{"read(count) if buf->dev->alias is-err", args1(5), nil, nil},
		// What cannot be read is neither an error pointer nor none.
		{"read(count) if buf->dev->alias is-err", args(0, 0, 5, 0), nil, nil},
		{"read(count) if !(buf->dev->alias is-err)", args(0, 0, 5, 0), nil, nil},
		{"read(buf == NULL)", args(0, 0, 0, 0), nil, []string{"entry buf=*fault(0x0)"}},
		// Conditions.
		{"read(count) if count == 5", args(0, 0, 5, 0), nil, []string{"entry count=5"}},
		{"read(count) if count != 5", args(0, 0, 5, 0), nil, nil},
		{"read(count) if count == 4 || count == 5", args(0, 0, 5, 0), nil, []string{"entry count=5"}},
		{"read(count) if !(count == 4 || count == 5)", args(0, 0, 5, 0), nil, nil},
		{"read(count) if !(count == 4 || count == 6)", args(0, 0, 5, 0), nil, []string{"entry count=5"}},
		{"read(count) if count & 4 && !(count & 2)", args(0, 0, 5, 0), nil, []string{"entry count=5"}},
		{"read(count & 2)", args(0, 0, 5, 0), nil, nil},
		{"read(count) if buf", args(0, 0, 5, 0), nil, nil},
		{"read(count) if !buf", args(0, 0, 5, 0), nil, []string{"entry count=5"}},
		{"read(count) if buf->ready", args1(5), nil, []string{"entry count=5"}},
		{"read(return) if count == 5", args(0, 0, 5, 0), []uint64{3}, []string{"call return=3"}},
		{"read(count) if return == 3", args(0, 0, 5, 0), []uint64{3}, []string{"call count=5"}},
		{"read(count) if return == 4", args(0, 0, 5, 0), []uint64{3}, nil},
		{"read(count) if buf->len == 105 || return == 4", args1(5), []uint64{3}, []string{"call count=5"}},
		{"read(count) if buf->len == 104 || return == 3", args1(5), []uint64{3}, []string{"call count=5"}},
		{"read(count) if buf->len == 104 || return == 4", args1(5), []uint64{3}, nil},
		{"read(count) if count == 4 || return == 3", args1(5), []uint64{3}, []string{"call count=5"}},
		{"read($pid) if $pid == 7 && $tid != 7", args1(5), nil, []string{"entry $pid=7"}},
		// A value that cannot be read makes neither a test nor its opposite hold.
		{"read(count) if !(buf->len == 5)", args(0, 0, 5, 0), nil, nil},
		{"read(count) if !(buf->len != 5)", args(0, 0, 5, 0), nil, nil},
		{"read(count) if buf->len == 0 || count == 5", args(0, 0, 5, 0), nil, []string{"entry count=5"}},
		{"read(count) if !buf->len || !buf->err", args(0xffff_8880_0000_0000, 0, 5, 0), nil, nil},
		// Strings.
		{`read(buf->dev->name == "eth0")`, args1(5), nil, []string{`entry buf->dev->name="eth0"`}},
		{`read(buf->dev->name == "eth")`, args1(5), nil, nil},
		{`read(buf->dev->name == "eth00")`, args1(5), nil, nil},
		{`read(buf->dev->name != "eth00")`, args1(5), nil, []string{`entry buf->dev->name="eth0"`}},
		{`read(buf->dev->alias == "uplink")`, args1(5), nil, []string{`entry buf->dev->alias="uplink"`}},
		{`read(buf->dev->alias == "uplink2")`, args1(5), nil, nil},
		{`read(buf->dev->alias != "uplin")`, args1(5), nil, []string{`entry buf->dev->alias="uplink"`}},
		{`read(buf->dev->alias ~ "up*")`, args1(5), nil, []string{`entry buf->dev->alias="uplink"`}},
		{`read(buf->dev->alias ~ "*[a-l]?k")`, args1(5), nil, []string{`entry buf->dev->alias="uplink"`}},
		{`read(buf->dev->alias ~ "[!u]*")`, args1(5), nil, nil},
		{`read(buf->dev->name ~ "eth?")`, args1(5), nil, []string{`entry buf->dev->name="eth0"`}},
		{`read(count) if !(buf->dev->name ~ "eth?")`, args1(5), nil, nil},
		{`read(count) if !(buf->dev->name ~ "wlan*")`, args1(5), nil, []string{"entry count=5"}},
		{`read(count) if buf->dev->name ~ "*"`, args(0, 0, 5, 0), nil, nil},
		{`read(count) if $comm == "worker"`, args1(5), nil, []string{"entry count=5"}},
		{`read(count) if $comm ~ "*er" && $comm != "waiter"`, args1(5), nil, []string{"entry count=5"}},
		{`read(return) if buf->dev->name == "eth0"`, args1(5), []uint64{3}, []string{"call return=3"}},
		{`read(ubuf:ustring == "user")`, args(0, 0x7fff_0000_0000, 5, 0), nil, []string{`entry ubuf="user"`}},
		{`read(count) if ubuf != "user"`, args(0, 0x7fff_0000_0000, 5, 0), nil, nil},
	} {
		t.Run(tc.spec, func(t *testing.T) {
			backEnds(t, func(t *testing.T, f Features) {
				r := newRig(t, f, Options{}, tc.spec)
				buf, _ := bufAndDev(r.machine)
				r.put(0x7fff_0000_0000, []byte("user\x00"))
				r.do(call{args: tc.args(buf), result: tc.ret, during: func() { r.time += 10 }})
				if tc.want == nil {
					require.Empty(t, r.shown())
					return
				}
				require.Equal(t, tc.want, r.shown())
				requireNoCalls(t, r, "the call has returned")
			})
		})
	}
}

// A tracepoint's arguments have names, and are read with care.
func TestTracepoint(t *testing.T) {
	r := newRig(t, withTrampoline, Options{}, "tp:tick(cpu == 3, buf->len)")
	buf, _ := bufAndDev(r.machine)
	r.do(call{args: []uint64{3, buf}})
	r.do(call{args: []uint64{2, buf}})
	require.Equal(t, []string{"entry cpu=3 buf->len=105"}, r.shown())
}

// Variables are read at their address, those of each CPU at this CPU's.
func TestGlobals(t *testing.T) {
	backEnds(t, func(t *testing.T, f Features) {
		r := newRig(t, f, Options{}, "read(@jiffies == 1234, (u8)@jiffies)")
		r.put(0xffffffff81001100, le(uint64(1234)))
		r.do(call{args: []uint64{0, 0, 0, 0}})
		require.Equal(t, []string{"entry @jiffies=1234 (u8)@jiffies=210"}, r.shown())
	})
}

// A glob traces every function that has what the spec names; functions whose
// programs are equal share one.
func TestGlob(t *testing.T) {
	target := newTarget(t, withSession)
	trace, err := spec.Parse("[rs]*(buf->len == 105)")
	require.NoError(t, err)
	plan, err := ResolveAll([]*spec.Trace{trace}, target, Wishes{})
	require.NoError(t, err)
	require.Len(t, plan.Probes, 2)
	require.Equal(t, map[string]int{"it has no argument 'buf'": 1}, plan.LeftOut)

	trace, err = spec.Parse("*(a)")
	require.NoError(t, err)
	target.Features.ConsistentBTF = true
	plan, err = ResolveAll([]*spec.Trace{trace}, target, Wishes{})
	require.NoError(t, err)
	unit, err := Compile(plan.Probes, Options{Arch: AMD64, RingBytes: 4096, Features: target.Features})
	require.NoError(t, err)
	var symbols []string
	for _, a := range unit.Attachments {
		for _, p := range a.Places {
			symbols = append(symbols, p.Symbol)
			require.Equal(t, p.Probe, unit.Events[p.Cookie].Probe)
		}
	}
	require.Equal(t, []string{"many", "pair", "pair", "twice", "twin", "twin", "spill"}, symbols)
	require.Len(t, unit.Attachments, 2, "int and long differ, nothing else does")
}

// Functions of one name are all traced, by address, if BTF vouches for it.
func TestSeveralFunctions(t *testing.T) {
	f := withTrampoline
	f.ConsistentBTF = true
	p := mustResolve(t, newTarget(t, f), "pair(a)")
	require.Equal(t, []uint64{0xffffffff81001800, 0xffffffff81001900}, p.Func.Addrs)
	require.Equal(t, "fentry takes a name, and several functions have this one", p.Attach.Reason)
}

// A copy that the compiler made is traced when it is named.
func TestSuffixed(t *testing.T) {
	p := mustResolve(t, newTarget(t, withTrampoline), "cloned.isra.0(a)")
	require.Equal(t, "cloned.isra.0", p.Func.Symbol)
	require.Equal(t, "BTF has no function of this name", p.Attach.Reason)
	require.Len(t, p.Func.notes(), 1)
}

// Calls whose predicates meet a fault are counted.
func TestUnreadableIsCounted(t *testing.T) {
	for _, spec := range []string{
		"read(buf->len == 0)", "read(buf->len != 1, return)", "read(return) if buf->len || buf->err",
		`read(count) if buf->dev->name == "x"`, `read(count) if buf->dev->alias ~ "x*"`,
	} {
		backEnds(t, func(t *testing.T, f Features) {
			r := newRig(t, f, Options{}, spec)
			r.do(call{args: []uint64{0, 0, 5, 0}, result: []uint64{0}})
			require.Equal(t, uint64(1), r.counters(0).Unreadable, spec)
		})
	}
}

func (r *rig) counters(event int) Counters {
	b, err := r.at(r.arrays[CountersMap]+uint64(event*countersSize), countersSize)
	require.NoError(r.t, err)
	order := binary.LittleEndian
	return Counters{
		Lost: order.Uint64(b), NoRoom: order.Uint64(b[8:]), Unreadable: order.Uint64(b[16:]),
		Unpaired: order.Uint64(b[24:]), Filtered: order.Uint64(b[32:]), Matched: order.Uint64(b[40:]),
	}
}
