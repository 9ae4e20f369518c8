package codegen

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/compilertest"
	"github.com/ksnoop/ksnoop/compiler/resolve"
)

// sizes returns the sizes that records of an event may have.
func sizes(ev *compiler.EventType) (all []int) {
	p := program{event: ev}
	for _, room := range p.forms() {
		all = append(all, ev.Layout.SizeFor(room))
	}
	return all
}

// A record has the size that its longest string needs, and the strings are whole
// whatever that is.
func TestRecordsAsLongAsStrings(t *testing.T) {
	const most = 500
	room := map[int]int{0: 48, 1: 48, 46: 48, 47: 256, 48: 256, 49: 256, 254: 256, 255: 504, 256: 504, 499: 504, 500: 504, 501: 504, 5000: 504}
	for _, one := range []int{0, 1, 46, 47, 48, 49, 254, 255, 256, 499, 500, 501, 5000} {
		for _, other := range []int{0, 46, 47, 255, 500} {
			t.Run(fmt.Sprint(one, "/", other), func(t *testing.T) {
				backEnds(t, func(t *testing.T, f compiler.Features) {
					r := newRig(t, f, compiler.Options{MaxBytes: most}, "p read a=+0(%di):string b=+0(%dx):string pos")
					a, b := strings.Repeat("a", one), strings.Repeat("b", other)
					r.do(call{args: []uint64{r.alloc([]byte(a + "\x00")), 0, r.alloc([]byte(b + "\x00")), 7}})
					require.Len(t, r.records, 1)
					ev := r.unit.Events[0]
					require.Equal(t, ev.Layout.SizeFor(max(room[one], room[other])), len(r.records[0]))
					require.Equal(t, []string{fmt.Sprintf("entry a=%q b=%q pos=7", a[:min(one, most+1)], b)}, r.shown())
				})
			})
		}
	}
}

// A string that cannot be read takes no more room than a short one, and the other
// is shown with it.
func TestUnreadableStringsAreShort(t *testing.T) {
	long := strings.Repeat("x", 300)
	for _, addr := range []uint64{0, 8, 0x7fff_0000_0000, 1 << 63, 0xdead_0000_0000_0100, 0xffff_8000_0000_0000, ^uint64(0), ^uint64(4094)} {
		for text, room := range map[string]int{"short": 48, long: 504} {
			backEnds(t, func(t *testing.T, f compiler.Features) {
				r := newRig(t, f, compiler.Options{MaxBytes: 500}, "p read a=+0(%di):string b=+0(%dx):string")
				r.do(call{args: []uint64{addr, 0, r.alloc([]byte(text + "\x00")), 0}})
				require.Len(t, r.records, 1)
				require.Equal(t, r.unit.Events[0].Layout.SizeFor(room), len(r.records[0]))
				require.Equal(t, []string{fmt.Sprintf("entry a=*fault(%#x) b=%q", addr, text)}, r.shown())
			})
		}
	}
}

// A long string whose record finds no room is counted as lost once, and what was
// reserved before is given up.
func TestLongStringsFindNoRoom(t *testing.T) {
	backEnds(t, func(t *testing.T, f compiler.Features) {
		r := newRig(t, f, compiler.Options{CountCalls: true}, "p read a=+0(%di):string", "r read $retval")
		r.large = 1000
		call := func(n int) call {
			return call{args: []uint64{r.alloc([]byte(strings.Repeat("a", n) + "\x00")), 0, 0, 0}, result: []uint64{0}}
		}
		for _, n := range []int{10, 300, 100} {
			r.do(call(n))
		}
		require.Len(t, r.records, 5)
		require.Equal(t, compiler.Counters{Lost: 1, Matched: 3}, r.counters(0))
		require.Equal(t, compiler.Counters{Matched: 3}, r.counters(1))
	})
}

// A string that is kept until the return keeps its place among the kept values.
func TestKeptStrings(t *testing.T) {
	for _, n := range []int{3, 47, 300} {
		backEnds(t, func(t *testing.T, f compiler.Features) {
			r := newRig(t, f, compiler.Options{MaxBytes: 500}, "read(buf->dev->name, count, return == 3)")
			buf, _ := bufAndDev(r.machine)
			r.do(call{args: []uint64{buf, 0, 5, 0}, result: []uint64{3}})
			require.Equal(t, []string{`call buf->dev->name="eth0" count=5 return=3`}, r.shown(), n)
		})
	}
}

// Only pointers that can point to strings are read: reading others would clear the
// whole slot.
func TestElsewhereIsNotRead(t *testing.T) {
	for _, arch := range []*compiler.Arch{compiler.AMD64, compiler.ARM64} {
		for _, tc := range []struct {
			format string
			addr   uint64
			read   bool
		}{
			{"string", 0xffff_8880_0000_0000, true}, {"string", 0xffff_ffff_8100_0000, true}, {"string", 0xff11_0000_0000_0000, arch == compiler.AMD64},
			{"string", 0xfff1_0000_0000_0000, true}, {"string", 0, false}, {"string", 0x7fff_ffff_ffff, false}, {"string", ^uint64(1), false},
			{"string", 0xdead_0000_0000_0100, false}, {"string", 0x00f1_8000_0000_0000, arch == compiler.ARM64},
			{"ustring", 0x7fff_ffff_f000, true}, {"ustring", 0, true}, {"ustring", 0xffff_8880_0000_0000, false},
			{"ustring", 0xaa00_7fff_ffff_f000, arch == compiler.ARM64},
		} {
			target := compilertest.NewTarget(t, compilertest.WithProbes)
			if arch == compiler.ARM64 {
				target = onARM64(t, compilertest.WithProbes)
			}
			r := newRigOn(t, target, compiler.Options{}, resolve.Wishes{}, "read(count:"+tc.format+")")
			r.do(call{args: []uint64{0, 0, tc.addr, 0}})
			require.Equal(t, tc.read, r.strings == 1, "%s %s %#x", arch.Name, tc.format, tc.addr)
		}
	}
}
