package codegen

import (
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/compilertest"
	"github.com/ksnoop/ksnoop/compiler/resolve"
)

func TestFindComm(t *testing.T) {
	letters := func(n uint32) btf.Type {
		return &btf.Array{Type: compilertest.Char, Index: compilertest.Uint, Nelems: n}
	}
	able := compiler.Features{CurrentTask: true}
	for name, tc := range map[string]struct {
		features compiler.Features
		members  []btf.Member
		want     int
	}{
		"loaded":        {able, []btf.Member{{Name: "flags", Type: compilertest.Ulong}, {Name: "comm", Type: letters(16), Offset: 64}}, 8},
		"inside":        {able, []btf.Member{{Type: &btf.Struct{Size: 24, Members: []btf.Member{{Name: "comm", Type: letters(16), Offset: 64}}}, Offset: 64}}, 16},
		"before 5.11":   {compiler.Features{}, []btf.Member{{Name: "comm", Type: letters(16), Offset: 64}}, 0},
		"no name":       {able, []btf.Member{{Name: "flags", Type: compilertest.Ulong}}, 0},
		"another size":  {able, []btf.Member{{Name: "comm", Type: letters(32), Offset: 64}}, 0},
		"out of reach":  {able, []btf.Member{{Name: "comm", Type: letters(16), Offset: 8 * (1 << 15)}}, 0},
		"one of a kind": {able, []btf.Member{{Type: &btf.Union{Size: 16, Members: []btf.Member{{Name: "comm", Type: letters(16)}}}, Offset: 64}}, 0},
	} {
		b, err := btf.NewBuilder([]btf.Type{&btf.Struct{Name: "task_struct", Size: 1 << 16, Members: tc.members}}, nil)
		require.NoError(t, err)
		types, err := b.Spec()
		require.NoError(t, err)
		require.Equal(t, tc.want, resolve.FindComm(&compiler.Target{Kernel: types, Features: tc.features}), name)
	}
}

// The header and a predicate see the same name, whether loaded or copied.
func TestCommLoadedOrCopied(t *testing.T) {
	for _, comm := range []string{"", "worker", "fifteen letters"} {
		backEnds(t, func(t *testing.T, f compiler.Features) {
			for _, f.CurrentTask = range []bool{false, true} {
				r := newRig(t, f, compiler.Options{}, `read(count) if $comm == "`+comm+`"`)
				r.comm = comm
				r.do(call{args: []uint64{0, 0, 5, 0}})
				require.Len(t, r.records, 1)
				require.Equal(t, comm+"\x00", string(r.records[0][compiler.HeaderComm:][:len(comm)+1]))
				r.comm = "another"
				r.do(call{args: []uint64{0, 0, 5, 0}})
				require.Len(t, r.records, 1)
			}
		})
	}
}

// The name beside the one at return is that at entry, even if nothing else is of the entry.
func TestCommThatChanges(t *testing.T) {
	backEnds(t, func(t *testing.T, f compiler.Features) {
		r := newRig(t, f, compiler.Options{}, `read($comm, after($comm))`)
		leave := r.enter(call{args: []uint64{0, 0, 5, 0}})
		r.comm = "another"
		leave()
		require.Len(t, r.records, 1)
		values := string(r.records[0][compiler.HeaderSize:])
		require.Contains(t, values, "worker\x00")
		require.Contains(t, values, "another\x00")
	})
}
