package codegen

import (
	"encoding/binary"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/compilertest"
)

// backEnds runs a test with every attach kind. All must show the same.
func backEnds(t *testing.T, test func(t *testing.T, f compiler.Features)) {
	t.Run("trampoline", func(t *testing.T) { test(t, compilertest.WithTrampoline) })
	t.Run("trampoline, arguments by reads", func(t *testing.T) { test(t, compilertest.WithoutFuncArg) })
	t.Run("probe", func(t *testing.T) { test(t, compilertest.WithProbes) })
	t.Run("multi", func(t *testing.T) { test(t, compilertest.WithMulti) })
	t.Run("session", func(t *testing.T) { test(t, compilertest.WithKprobeSession) })
	t.Run("session, never cancelled", func(t *testing.T) { test(t, compilertest.WithBothSides) })
}

// bufAndDev allocates a struct buf whose dev points to a struct dev.
func bufAndDev(m *machine) (buf uint64, bytes []byte) {
	dev := make([]byte, 32)
	copy(dev, "eth0")
	binary.LittleEndian.PutUint32(dev[16:], 42)
	binary.LittleEndian.PutUint64(dev[24:], m.alloc([]byte("uplink\x00")))
	b := make([]byte, 64)
	binary.LittleEndian.PutUint32(b, 105)
	binary.LittleEndian.PutUint32(b[4:], math.MaxUint32) // err -1
	binary.LittleEndian.PutUint64(b[8:], m.alloc(dev))
	b[16], b[17] = 0b1111_0101, 0b11 // type 5, delta -2
	b[18] = 1                        // ready
	binary.LittleEndian.PutUint32(b[20:], math.MaxUint32)
	binary.LittleEndian.PutUint64(b[24:], 0x1234)
	binary.LittleEndian.PutUint32(b[36:], 77)
	return m.alloc(b), b
}

func TestValues(t *testing.T) {
	const (
		neg1    = math.MaxUint64
		garbage = 0xabcd_0000_0000_0000
	)
	for _, tc := range []struct {
		spec string
		args func(buf uint64) []uint64
		ret  []uint64
		want []string
	}{
		{"read(count)", args(0, 0, 5, 0), nil, []string{"entry count=5"}},
		{"read(count == 5)", args(0, 0, 5, 0), nil, []string{"entry count=5"}},
		{"read(count == 0x5, count < 06)", args(0, 0, 5, 0), nil, []string{"entry count=5"}},
		{"read(count > 4, count < 6)", args(0, 0, 6, 0), nil, nil},
		{"read(return < 0)", args(0, 0, 5, 0), []uint64{neg1 - 10}, []string{"return return=-11"}},
		{"read(return > 0)", args(0, 0, 5, 0), []uint64{neg1 - 10}, nil},
		{"read(count == 0xffffffffffffffff)", args(0, 0, neg1, 0), nil, []string{"entry count=18446744073709551615"}},
		{"read(count, return)", args(0, 0, 5, 0), []uint64{3}, []string{"entry count=5", "return return=3"}},
		{"read(count == 5, return)", args(0, 0, 5, 0), []uint64{3}, []string{"call count=5 return=3"}},
		{"read(count == 5, return > 3)", args(0, 0, 5, 0), []uint64{3}, nil},
		{"read(count == 6, return)", args(0, 0, 5, 0), []uint64{3}, nil},
		{"read(buf->len > 100, return == 3)", args1(5), []uint64{3}, []string{"call buf->len=105 return=3"}},
		// 32-bit values are in 64-bit registers whose upper half is undefined.
		{"send(return == -2)", args(0, 0), []uint64{garbage | 0xffff_fffe}, []string{"return return=-2"}},
		{"open(dfd == -100)", args(garbage|0xffff_ff9c, 0), nil, []string{"entry dfd=-100"}},
		{"open(dfd < 0)", args(garbage|0xffff_ff9c, 0), nil, []string{"entry dfd=-100"}},
		{"work(mode == 1, now == 1)", args(garbage|1, 0, garbage|1), nil, []string{"entry mode=1 now=1"}},
		{"work(why == -1)", args(0, garbage|0xffff_ffff, 0), nil, []string{"entry why=-1"}},
		{"work(mode == 0)", args(garbage|1, 0, 0), nil, nil},
		// Members.
		{"read(buf->err == -1)", args1(0), nil, []string{"entry buf->err=-1"}},
		{"read(buf->type == 5)", args1(0), nil, []string{"entry buf->type=5"}},
		{"read(buf->delta == -2)", args1(0), nil, []string{"entry buf->delta=-2"}},
		{"read(buf->delta > 0)", args1(0), nil, nil},
		{"read(buf->ready == 1)", args1(0), nil, []string{"entry buf->ready=1"}},
		{"read(buf->cookie == 0x1234)", args1(0), nil, []string{"entry buf->cookie=4660"}},
		{"read(buf->hash == 77)", args1(0), nil, []string{"entry buf->hash=77"}},
		{"read(buf->dev->index == 42)", args1(0), nil, []string{"entry buf->dev->index=42"}},
		{"read(buf->dev->index)", args1(0), nil, []string{"entry buf->dev->index=42"}},
		{"read(buf->dev->name)", args1(0), nil, []string{`entry buf->dev->name="eth0"`}},
		{"read(buf->dev->alias)", args1(0), nil, []string{`entry buf->dev->alias="uplink"`}},
		{"read(buf->stamp)", args1(0), nil, []string{"entry buf->stamp=00000000000000000000000000000000"}},
		// NULL and user-space pointers never match; they are shown as faults.
		{"read(buf->len == 0)", args(0, 0, 5, 0), nil, nil},
		{"read(buf->len != 1)", args(0, 0, 5, 0), nil, nil},
		{"read(buf->len < 1)", args(0x7fff_0000_0000, 0, 5, 0), nil, nil},
		{"read(buf->len == 0)", args(0xffff_8880_0000_0000, 0, 5, 0), nil, nil},
		{"read(buf->dev->index == 0)", args(0xffff_8880_0000_0000, 0, 5, 0), nil, nil},
		{"read(buf->len)", args(0, 0, 5, 0), nil, []string{"entry buf->len=fault(0x0)"}},
		{"read(buf->type)", args(0, 0, 5, 0), nil, []string{"entry buf->type=fault(0x0)"}},
		{"read(buf)", args(0, 0, 5, 0), nil, []string{"entry buf=*fault(0x0)"}},
		{"read(buf->owner, count)", args1(5), nil, []string{"entry buf->owner=*fault(0x1234) count=5"}},
		{"read(ubuf)", args(0, 0x7fff_0000_0000, 5, 0), nil, []string{"entry ubuf=*fault(0x7fff00000000)"}},
		{"read(buf == 0)", args(0, 0, 5, 0), nil, []string{"entry buf=*fault(0x0)"}},
		{"read(pos != 0)", args(0, 0, 5, 0), nil, nil},
		{"open(return->len == 105)", args1(0), []uint64{0}, nil},
		// Casts of pointers, which are typed pointers in trampoline programs.
		{"read((s32)buf != 2)", args(0xffff_8880_9234_5678, 0, 5, 0), nil, []string{"entry (s32)buf=-1842063752"}},
		{"read(buf:s32 < 0)", args(0xffff_8880_9234_5678, 0, 5, 0), nil, []string{"entry buf=-1842063752"}},
		{"read((u16)buf, (s8)buf)", args(0xffff_8880_9234_56f8, 0, 5, 0), nil, []string{"entry (u16)buf=22264 (s8)buf=-8"}},
		{"read((u64)buf & 7)", args(0xffff_8880_9234_5678, 0, 5, 0), nil, nil},
		{"read((_Bool)buf == 0)", args(0, 0, 5, 0), nil, []string{"entry (_Bool)buf=0"}},
		{"read((u8)buf->dev != 1)", args1(0), nil, []string{"entry (u8)buf->dev=0"}},
		{"open((u16)return > 4)", args(0, 0), []uint64{0xffff_8880_9234_5678}, []string{"return (u16)return=22136"}},
		{"p read n=$arg1:s32 if n != 2", args(0xffff_8880_9234_5678, 0, 5, 0), nil, []string{"entry n=-1842063752"}},
		// More arguments than registers.
		{"many(g == -7)", args(1, 2, 3, 4, 5, 6, garbage|0xffff_fff9, 0), nil, []string{"entry g=-7"}},
		{"many(h->index)", args(1, 2, 3, 4, 5, 6, 7, 0), nil, []string{"entry h->index=fault(0x0)"}},
		{"many(a, g)", args(1, 2, 3, 4, 5, 6, 7, 0), nil, []string{"entry a=1 g=7"}},
		// Structures by value.
		{"times(lhs)", args(1, 2, 3, 4), nil, []string{"entry lhs=01000000000000000200000000000000"}},
		{"times(rhs)", args(1, 2, 3, 4), nil, []string{"entry rhs=03000000000000000400000000000000"}},
		{"times(return)", args(1, 2, 3, 4), []uint64{4, 6}, []string{"return return=04000000000000000600000000000000"}},
		{"spill(t, n)", args(1, 2, 3, 4, 5, 6, 7, 8), nil, []string{"entry t=06000000000000000700000000000000 n=8"}},
		{"print(fmt)", args(0), nil, []string{"entry fmt=*fault(0x0)"}},
		{"free(data)", args(0, 0x1234), nil, []string{"entry data=4660"}},
		{"nothing", args(), nil, []string{"entry"}},
		{"callback", args(0x11, 0x22), nil, []string{"entry fn=17 fwd=34"}},
		{"do_exit", args(3), nil, []string{"entry code=3"}},
	} {
		t.Run(tc.spec, func(t *testing.T) {
			backEnds(t, func(t *testing.T, f compiler.Features) {
				r := newRig(t, f, compiler.Options{}, tc.spec)
				buf, _ := bufAndDev(r.machine)
				r.do(call{args: tc.args(buf), result: tc.ret})
				require.Equal(t, tc.want, r.shown())
			})
		})
	}
}

func args(words ...uint64) func(uint64) []uint64 {
	return func(uint64) []uint64 { return words }
}

// args1 returns arguments with the buffer and a count; the others are 0.
func args1(count uint64) func(uint64) []uint64 {
	return func(buf uint64) []uint64 { return []uint64{buf, 0, count, 0} }
}

func TestWholePointee(t *testing.T) {
	backEnds(t, func(t *testing.T, f compiler.Features) {
		r := newRig(t, f, compiler.Options{}, "huge(big)", "huge(big->last)")
		big := make([]byte, 9000)
		big[8996] = 9
		r.do(call{args: []uint64{r.alloc(big)}})
		require.Equal(t, []string{"entry big=4096 bytes of 9000", "entry big->last=9"}, r.shown())
	})
}

// Values of a paired event are those at entry, even if memory has changed.
func TestEntryValuesAtReturn(t *testing.T) {
	backEnds(t, func(t *testing.T, f compiler.Features) {
		r := newRig(t, f, compiler.Options{}, "send(buf, buf->len > 100, buf->dev->name, return == 0)")
		buf, bytes := bufAndDev(r.machine)
		r.do(call{args: []uint64{0, buf}, result: []uint64{0}, during: func() { clear(bytes) }})
		require.Equal(t, []string{`call buf=64 bytes of 64 buf->len=105 buf->dev->name="eth0" return=0`}, r.shown())
		requireNoCalls(t, r, "the stash is empty afterwards")
	})
}

func TestRecursionKeepsCallsApart(t *testing.T) {
	backEnds(t, func(t *testing.T, f compiler.Features) {
		r := newRig(t, f, compiler.Options{}, "read(buf->len > 0, count, return)")
		buf, bytes := bufAndDev(r.machine)
		outer := r.enter(call{args: []uint64{buf, 0, 1, 0}, result: []uint64{10}})
		bytes[0] = 99
		inner := r.enter(call{args: []uint64{buf, 0, 2, 0}, result: []uint64{20}})
		inner()
		outer()
		require.Equal(t, []string{"call buf->len=99 count=2 return=20", "call buf->len=105 count=1 return=10"}, r.shown())
	})
}

// A return whose entry did not match is not shown.
func TestReturnWithoutEntry(t *testing.T) {
	backEnds(t, func(t *testing.T, f compiler.Features) {
		r := newRig(t, f, compiler.Options{}, "read(buf->len == 7, return)")
		buf, bytes := bufAndDev(r.machine)
		r.do(call{args: []uint64{buf, 0, 1, 0}, result: []uint64{10}, during: func() { bytes[0] = 7 }})
		require.Empty(t, r.shown())
	})
}

func TestFilter(t *testing.T) {
	for _, tc := range []struct {
		name string
		opts compiler.Options
		want int
	}{
		{"all", compiler.Options{}, 1},
		{"own process", compiler.Options{Self: 7}, 0},
		{"other process is own", compiler.Options{Self: 9}, 1},
		{"process", compiler.Options{PID: 7, Self: 9}, 1},
		{"other process", compiler.Options{PID: 8}, 0},
		{"thread", compiler.Options{TID: 8}, 1},
		{"other thread", compiler.Options{TID: 7}, 0},
		{"thread of own process", compiler.Options{TID: 8, Self: 7}, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			backEnds(t, func(t *testing.T, f compiler.Features) {
				r := newRig(t, f, tc.opts, "read(count)")
				r.do(call{args: []uint64{0, 0, 1, 0}})
				require.Len(t, r.records, tc.want)
			})
		})
	}
}

func TestHeader(t *testing.T) {
	backEnds(t, func(t *testing.T, f compiler.Features) {
		r := newRig(t, f, compiler.Options{}, "read(count, return)")
		r.do(call{args: []uint64{0, 0, 1, 0}, result: []uint64{0}})
		require.Len(t, r.records, 2)
		entry, ret := r.records[0], r.records[1]
		require.Equal(t, le(uint32(0), uint32(3), uint32(8), uint32(7), uint64(1000)), entry[:compiler.HeaderCall])
		require.Equal(t, "worker\x00", string(entry[compiler.HeaderComm:][:7]))
		require.Equal(t, entry[compiler.HeaderCall:compiler.HeaderComm], ret[compiler.HeaderCall:compiler.HeaderComm], "entry and return know each other")
	})
}

func TestLostIsCounted(t *testing.T) {
	backEnds(t, func(t *testing.T, f compiler.Features) {
		r := newRig(t, f, compiler.Options{}, "read(buf->len > 0, return)")
		buf, _ := bufAndDev(r.machine)
		r.full = true
		r.do(call{args: []uint64{buf, 0, 1, 0}, result: []uint64{0}})
		require.Equal(t, compiler.Counters{Lost: 1}, r.counters(0))
		requireNoCalls(t, r, "a lost record leaves nothing behind")
	})
}

func TestRoomForCallsIsCounted(t *testing.T) {
	r := newRig(t, compilertest.WithTrampoline, compiler.Options{}, "read(buf->len > 0, return)")
	r.maps[overflowMap].MaxEntries = 0
	buf, _ := bufAndDev(r.machine)
	r.do(call{args: []uint64{buf, 0, 1, 0}})
	require.Equal(t, compiler.Counters{NoRoom: 1}, r.counters(0))
}

func TestStrings(t *testing.T) {
	for _, tc := range []struct{ text, want string }{
		{"", `entry path=""`},
		{"eth0", `entry path="eth0"`},
		{"12345678", `entry path="12345678"`},
		{"123456789", `entry path="123456789"`}, // one byte more than is shown: cut
		{"1234567890", `entry path="123456789"`},
	} {
		backEnds(t, func(t *testing.T, f compiler.Features) {
			r := newRig(t, f, compiler.Options{MaxBytes: 8}, "open(path)")
			r.do(call{args: []uint64{0, r.alloc([]byte(tc.text + "\x00"))}})
			require.Equal(t, []string{tc.want}, r.shown())
		})
	}
}

// A record that is larger than the ring buffer is refused.
func TestRecordLimits(t *testing.T) {
	target := compilertest.NewTarget(t, compilertest.WithTrampoline)
	p := mustResolve(t, target, "huge(big)")
	_, err := Compile([]*compiler.Probe{p}, compiler.Options{RingBytes: 4096})
	require.EqualError(t, err, "a record of huge takes 4160 bytes, more than the ring buffer of 4096\n  huge(big)\n  ^^^^\n  record less, or make it larger with --pages")
}

// requireNoCalls checks that no call is kept.
func requireNoCalls(t *testing.T, r *rig, message string) {
	require.Zero(t, r.keptCalls(), message)
}

// keptCalls returns the number of slots in use and of large values.
func (r *rig) keptCalls() (n int) {
	th := &r.unit.threads
	if th.slots == 0 {
		return 0
	}
	taken := func(element []byte) {
		for i := range th.slots {
			if word(element[elementSlots+i*th.slot:][:8]) != 0 {
				n++
			}
		}
	}
	buckets, err := r.at(r.arrays[threadsMap], uint64(th.size()<<th.bucketBits))
	require.NoError(r.t, err)
	for bucket := range slices.Chunk(buckets, th.size()) {
		if word(bucket[elementOwner:][:8]) != 0 {
			taken(bucket)
		}
	}
	for _, addr := range r.hashes[overflowMap] {
		element, err := r.at(addr, uint64(th.size()))
		require.NoError(r.t, err)
		taken(element)
	}
	for _, size := range th.big {
		n += len(r.hashes[bigMap(size)])
	}
	return n
}
