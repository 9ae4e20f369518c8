package codegen

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/compilertest"
	"github.com/ksnoop/ksnoop/compiler/resolve"
	"github.com/ksnoop/ksnoop/kallsyms"
)

var joinedSpecs = []string{
	"send(return)", "read(count, return)", "open(dfd == 0, return)", "work(mode, return)", "many(a, return)", "times(lhs, return)", "spill(n)",
	"print(fmt)", "free(data)", "nothing", "huge(big)", "do_exit(code)", "callback(fn)", "read(count)",
}

// Functions whose programs share a link show and count what they do alone. It
// makes no difference whether their addresses are known.
func TestJoinedLinks(t *testing.T) {
	for name, f := range map[string]compiler.Features{"multi": compilertest.WithMulti, "session": compilertest.WithKprobeSession} {
		for _, hidden := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/hidden %v", name, hidden), func(t *testing.T) {
				specs, target := joinedSpecs, compilertest.NewTarget(t, f)
				if hidden {
					zeros := regexp.MustCompile("(?m)^[0-9a-f]+").ReplaceAllString(compilertest.Symbols, "0000000000000000")
					var err error
					target.Symbols, err = kallsyms.Read(strings.NewReader(zeros), nil)
					require.NoError(t, err)
				}
				opts := compiler.Options{CountCalls: true, MaxBytes: 64}
				all := newRigOn(t, target, opts, resolve.Wishes{}, specs...)
				requireJoined(t, all, hidden)
				for i, spec := range specs[:len(specs)-1] {
					alone := newRigOn(t, target, opts, resolve.Wishes{}, spec)
					for _, r := range []*rig{alone, all} {
						fn := r.unit.Probes()[i%len(r.unit.Probes())].Func
						c := call{fn: fn.Name, args: make([]uint64, fn.Words()), result: []uint64{7, 8}}
						if fn.Result == nil || len(fn.Result.Words) < 2 {
							c.result = c.result[:1]
						}
						r.do(c)
					}
					want := alone.shown()
					if fn := alone.unit.Probes()[0].Func.Name; fn == "read" { // it is named twice
						want = []string{want[0], want[0], want[1]}
					}
					require.ElementsMatch(t, want, all.shown(), spec)
				}
			})
		}
	}
}

// requireJoined checks that there are links of many programs, that a link has no
// function twice, and that programs of one function do not ask for the cookie.
func requireJoined(t *testing.T, r *rig, hidden bool) {
	joined := 0
	for _, a := range r.unit.Attachments {
		places, of := map[string]bool{}, map[string]int{}
		for _, p := range a.Places {
			require.False(t, places[p.Symbol], p.Symbol)
			places[p.Symbol] = true
			of[a.ProgramAt(p)]++
		}
		for name, n := range of {
			require.Equal(t, a.Kind.Multi() && n > 1, calls(r.unit.Collection.Programs[name].Instructions, asm.FnGetAttachCookie), name)
		}
		if len(a.Jumps) == 0 {
			continue
		}
		joined++
		require.Greater(t, len(a.Jumps), 1)
		require.Equal(t, uint32(len(a.Jumps)), r.unit.Collection.Maps[a.JumpMap].MaxEntries)
		insns := r.unit.Collection.Programs[a.Program].Instructions
		require.Equal(t, hidden, calls(insns, asm.FnGetAttachCookie))
		require.Equal(t, !hidden, calls(insns, asm.FnGetFuncIp))
	}
	require.NotZero(t, joined)
}

func calls(insns asm.Instructions, fn asm.BuiltinFunc) bool {
	for _, in := range insns {
		if in.IsBuiltinCall() && asm.BuiltinFunc(in.Constant) == fn {
			return true
		}
	}
	return false
}

// Two names of one address are one place.
func TestJointHasAddressOnce(t *testing.T) {
	j := &joint{Attachment: compiler.Attachment{Kind: compiler.KprobeMulti}, byAddr: true, has: map[string]bool{}}
	left := func(symbol string, addr uint64) int {
		a := compiler.Attachment{Kind: compiler.KprobeMulti, Places: []compiler.Place{{Probe: &compiler.Probe{}, Symbol: symbol, Addr: addr}}}
		j.take(&a, false)
		return len(a.Places)
	}
	require.Zero(t, left("read", 0xffffffff81000100))
	require.Equal(t, 1, left("alias", 0xffffffff81000100))
	require.Equal(t, 1, left("send", 0), "its address is not known")
	require.Zero(t, left("send", 0xffffffff81000000))
	require.Len(t, j.Places, 2)
	require.Len(t, j.Jumps, 2)
}

// Few programs have a link each: a jump costs each call.
func TestFewAreNotJoined(t *testing.T) {
	for _, a := range newRig(t, compilertest.WithKprobeSession, compiler.Options{}, joinedSpecs[:10]...).unit.Attachments {
		require.Empty(t, a.Jumps)
	}
}

// A search ends at the last range that begins at the address, or before it. Every jump
// has its own index, which the kernel knows when it loads the program.
func TestFind(t *testing.T) {
	for _, base := range []uint64{0xffff_ffff_8100_0000, 0xffff_8000_8000_0000} { // of x86-64 and arm64
		for n := 1; n < 20; n++ {
			var places []compiler.Place
			for i := range n {
				places = append(places, compiler.Place{Addr: base + uint64((n-1-i)*64), Jump: i})
			}
			c := &code{}
			c.emit(asm.Mov.Reg(rContext, asm.R1), asm.FnGetFuncIp.Call(), asm.Mov.Reg(asm.R1, rContext))
			c.find(stretches(places), "jumps")
			c.label("missing")
			c.emit(asm.Mov.Imm(asm.R0, 0), asm.Return())
			requireFixedJumps(t, c.insns, n)
			jumps := &ebpf.MapSpec{Type: ebpf.ProgramArray, KeySize: 4, ValueSize: 4, MaxEntries: uint32(n)}
			m := newMachine(&compiler.Unit{Collection: &ebpf.CollectionSpec{Maps: map[string]*ebpf.MapSpec{"jumps": jumps}}})
			for _, p := range places {
				for _, behind := range []uint64{0, 4, 63} {
					m.ip = p.Addr + behind
					require.NoError(t, m.run(c.insns, 0))
					require.Equal(t, "jumps", m.jump)
					require.Equal(t, p.Jump, m.jumpTo)
				}
			}
		}
	}
}

// requireFixedJumps checks that n tail calls follow a constant index each.
func requireFixedJumps(t *testing.T, insns asm.Instructions, n int) {
	seen := map[int64]bool{}
	for i, in := range insns {
		if !in.IsBuiltinCall() || asm.BuiltinFunc(in.Constant) != asm.FnTailCall {
			continue
		}
		index := insns[i-1]
		require.Equal(t, asm.Mov.Imm(asm.R3, 0).OpCode, index.OpCode)
		require.Equal(t, asm.R3, index.Dst)
		require.False(t, seen[index.Constant])
		seen[index.Constant] = true
	}
	require.Len(t, seen, n)
}

// Equal notes of instructions are in memory once for all programs, of which a glob has
// thousands.
func TestSharedNotes(t *testing.T) {
	unit := newRigOn(t, compilertest.NewTarget(t, compilertest.WithMulti), compiler.Options{}, resolve.Wishes{}, joinedSpecs...).unit
	seen := map[notes]asm.Metadata{}
	shared := 0
	for _, a := range unit.Attachments {
		for _, name := range a.Jumps {
			for _, in := range unit.Collection.Programs[name].Instructions {
				of := notes{in.Reference(), in.Symbol(), in.Source()}
				if first, ok := seen[of]; ok && of != (notes{}) {
					require.True(t, in.Metadata == first, "%v: %v", name, in)
					shared++
				}
				seen[of] = in.Metadata
			}
		}
	}
	require.Greater(t, shared, len(seen))
}
