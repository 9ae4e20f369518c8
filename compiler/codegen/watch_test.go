package codegen

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/compilertest"
	"github.com/ksnoop/ksnoop/compiler/resolve"
	"github.com/ksnoop/ksnoop/compiler/spec"
)

// watchedAt is the address of the variable jiffies of the fixture kernel.
const watchedAt = 0xffff_ffff_8100_1100

// newWatch returns a rig for a spec that watches memory.
func newWatch(t *testing.T, arch *compiler.Arch, f compiler.Features, text string, more ...btf.Type) *rig {
	trace, err := spec.ParseWatch(text)
	require.NoError(t, err)
	target := compilertest.NewTarget(t, f, more...)
	target.Arch = arch
	plan, err := resolve.All([]*spec.Trace{trace}, target, resolve.Wishes{})
	require.NoError(t, err)
	unit, err := generate(plan.Probes, compiler.Options{CountCalls: true})
	require.NoError(t, err)
	return &rig{t: t, unit: unit, machine: newMachine(unit.Unit), arch: arch}
}

// writeMemory stores a value and runs the program, as the hardware does at a write by
// the instruction at ip.
func (r *rig) writeMemory(bytes []byte, value, ip uint64) {
	run := func() {
		ctx := make([]byte, 512)
		binary.LittleEndian.PutUint64(ctx[r.arch.IP:], ip)
		at := r.unit.Attachments[0]
		require.Equal(r.t, compiler.Breakpoint, at.Kind)
		require.NoError(r.t, r.run(r.unit.Collection.Programs[at.Program].Instructions, r.alloc(ctx)))
	}
	if r.arch.BreaksBefore {
		run()
	}
	var word [8]byte
	binary.LittleEndian.PutUint64(word[:], value)
	copy(bytes, word[:])
	if !r.arch.BreaksBefore {
		run()
	}
}

// What a program shows of writes, on x86 and on arm64.
func TestWatch(t *testing.T) {
	flags := &btf.Struct{Name: "flags", Size: 8, Members: []btf.Member{
		{Name: "low", Type: compilertest.Uint, BitfieldSize: 4},
		{Name: "sign", Type: compilertest.Int, Offset: 12, BitfieldSize: 5},
		{Name: "count", Type: &btf.Struct{Name: "atomic", Size: 4, Members: []btf.Member{{Name: "counter", Type: compilertest.Int}}}, Offset: 32},
	}}
	for _, tc := range []struct {
		text   string
		writes []uint64
		want   string // on x86: values before and after
		before string // on arm64: values before
	}{
		{"(int)@jiffies", []uint64{5, math.MaxUint32, 5}, "0>5 5>-1 -1>5", "0 5 -1"},
		{"(u64)@jiffies", []uint64{5, 5, 1 << 63}, "0>5 5>5 5>9223372036854775808", "0 5"},
		{"*(u16 *)0xffffffff81001102", []uint64{0x1_0007_0000, 0xffff_0000}, "0>7 7>65535", "0 7"},
		{"(int)@jiffies == 5", []uint64{5, 6, 5}, "0>5 6>5", ""},
		{"(int)@jiffies if (int)@jiffies < 0 || $cpu == 9", []uint64{5, 1 << 31, 7}, "5>-2147483648", ""},
		{"(int)@jiffies if $comm == \"nobody\"", []uint64{5}, "", ""},
		{"((struct flags)@jiffies).low", []uint64{0xff}, "0>15", "0"},
		{"((struct flags)@jiffies).sign", []uint64{0x1f000, 0x0f000}, "0>-1 -1>15", "0 -1"},
		{"((struct flags)@jiffies).count", []uint64{7 << 32, 9 << 32}, "0>7 7>9", "0 7"},
	} {
		t.Run(tc.text, func(t *testing.T) {
			for _, arch := range []*compiler.Arch{compiler.AMD64, compiler.ARM64} {
				if arch.BreaksBefore && tc.before == "" && tc.want != "" {
					continue // the condition is refused
				}
				for _, f := range []compiler.Features{compilertest.WithProbes, compilertest.WithTrampoline} {
					r := newWatch(t, arch, f, tc.text, flags)
					w := r.unit.Watched()[0].Watch
					memory := make([]byte, 8)
					r.put(watchedAt, memory)
					slot, err := r.at(r.arrays[compiler.WatchedMap], compiler.WatchedSize)
					require.NoError(t, err)
					binary.LittleEndian.PutUint64(slot[compiler.WatchedAddr:], w.Addr+uint64(w.Path[len(w.Path)-1].Off))
					for _, value := range tc.writes {
						r.writeMemory(memory, value, 0xffff_ffff_8100_0010)
					}
					want := tc.want
					if arch.BreaksBefore {
						want = tc.before
					}
					require.Equal(t, want, r.shownWrites(), arch.Name)
					require.Equal(t, uint64(len(tc.writes)), binary.LittleEndian.Uint64(slot[compiler.WatchedHits:]))
				}
			}
		})
	}
}

// shownWrites returns the values of all records.
func (r *rig) shownWrites() string {
	var all []string
	for _, rec := range r.records {
		ev := r.unit.Events[binary.LittleEndian.Uint32(rec)]
		w := ev.Probe.Watch
		var states []string
		for i, v := range ev.Items {
			slot := ev.Layout.Slots[i]
			n := int64(binary.LittleEndian.Uint64(rec[slot.Data:]))
			text := fmt.Sprint(n)
			if v.Scalar != nil && !v.Scalar.Signed {
				text = fmt.Sprint(uint64(n))
			}
			switch v {
			case w.Old, w.New:
				states = append(states, text)
			case w.At:
				require.Equal(r.t, uint64(0xffff_ffff_8100_0010), uint64(n))
			}
		}
		all = append(all, strings.Join(states, ">"))
	}
	return strings.Join(all, " ")
}

// The program that reads memory for user space returns the bytes, or an error.
func TestPeek(t *testing.T) {
	r := newWatch(t, compiler.AMD64, compilertest.WithProbes, "(int)@jiffies")
	r.put(watchedAt, []byte{1, 2, 3, 4, 5, 6, 7, 8})
	words, err := r.at(r.arrays[compiler.WatchedMap]+compiler.WatchedSize, 32)
	require.NoError(t, err)
	for _, tc := range []struct{ addr, size, data uint64 }{
		{watchedAt, 8, 0x0807060504030201}, {watchedAt + 2, 2, 0x0403}, {watchedAt + 7, 1, 8},
	} {
		binary.LittleEndian.PutUint64(words[compiler.PeekAddr:], tc.addr)
		binary.LittleEndian.PutUint64(words[compiler.PeekSize:], tc.size)
		require.NoError(t, r.run(r.unit.Collection.Programs[compiler.PeekProgram].Instructions, r.alloc(make([]byte, 8))))
		require.Zero(t, binary.LittleEndian.Uint64(words[compiler.PeekError:]))
		require.Equal(t, tc.data, binary.LittleEndian.Uint64(words[compiler.PeekData:]))
	}
	binary.LittleEndian.PutUint64(words[compiler.PeekAddr:], 8)
	require.NoError(t, r.run(r.unit.Collection.Programs[compiler.PeekProgram].Instructions, r.alloc(make([]byte, 8))))
	require.NotZero(t, binary.LittleEndian.Uint64(words[compiler.PeekError:]))
}

// What cannot be watched, and why.
func TestWatchRefused(t *testing.T) {
	for _, tc := range []struct{ text, want string }{
		{"(struct dev)@jiffies", "'(struct dev)@jiffies' has 32 bytes, and the hardware watches 1, 2, 4 or 8"},
		{"*(u32 *)0xffffffff81001102", "'*(u32 *)0xffffffff81001102' has 4 bytes and is not at a multiple of that, and the hardware watches aligned memory only"},
		{"@jiffies + 1", "'@jiffies + 1' is not memory that can be watched"},
		{"(u32 *)0xffffffff81001102", "'(u32 *)0xffffffff81001102' is not memory that can be watched"},
		{"(struct dev *)@jiffies:ip4", "':ip4' shows what '(struct dev *)@jiffies' points to, and it is the pointer that is watched"},
		{"@jiffies:string", "':string' shows what '@jiffies' points to, and it is the pointer that is watched"},
		{"(char *)@jiffies == \"eth0\"", "'(char *)@jiffies' is a pointer that is watched, and a condition on it cannot be about the string that it points to"},
		{"(char *)@jiffies if (char *)@jiffies ~ \"eth*\"", "'(char *)@jiffies' is a pointer that is watched, and a condition on it cannot be about the string"},
		{"@jiffie", "there is no variable 'jiffie' in this kernel"},
	} {
		trace, err := spec.ParseWatch(tc.text)
		require.NoError(t, err)
		_, err = resolve.All([]*spec.Trace{trace}, compilertest.NewTarget(t, compilertest.WithProbes), resolve.Wishes{})
		require.ErrorContains(t, err, tc.want, tc.text)
	}
	for _, tc := range []struct{ text, want string }{
		{"", "there is nothing to watch"},
		{"@jiffies, @jiffies", "expected 'if' or the end, not ','"},
		{"@jiffies if return == 5", "'return' is of a call, and a write is none"},
		{"@jiffies if $duration > 5", "of a write, there are $task $comm $pid $tid $ppid $uid $cgroup, of the process that writes, and $cpu"},
		{"@jiffies if count() > 5", "count() counts calls, and there is none"},
	} {
		_, err := spec.ParseWatch(tc.text)
		require.ErrorContains(t, err, tc.want, tc.text)
	}
	target := compilertest.NewTarget(t, compilertest.WithProbes)
	target.Arch = compiler.ARM64
	trace, err := spec.ParseWatch("(int)@jiffies > 5")
	require.NoError(t, err)
	_, err = resolve.All([]*spec.Trace{trace}, target, resolve.Wishes{})
	require.ErrorContains(t, err, "arm64 tells the value before the write only")
}
