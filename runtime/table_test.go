package runtime

import (
	"encoding/binary"
	"math"
	"math/big"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler"
)

// TestSumCell verifies that a sum of small negative numbers is in its lower half alone, which
// others may read before the upper one is added, and that it does not overflow there.
func TestSumCell(t *testing.T) {
	a := &compiler.Aggregate{Kind: compiler.Sum, Value: &compiler.Value{Scalar: &compiler.Scalar{Size: 4, Signed: true}}}
	const calls = 1 << 34
	low := int64(-11 * calls)
	cell := newCell(a, &compiler.TableLayout{}, calls, binary.NativeEndian.AppendUint64(binary.NativeEndian.AppendUint64(nil, uint64(low)), 0))
	require.Equal(t, "-188978561024", cell.Number.String())
}

// TestTableJoined verifies that rows that look the same become one, with all aggregates
// of both, and that the others and the table itself stay as they are.
func TestTableJoined(t *testing.T) {
	all := []*compiler.Aggregate{
		{Kind: compiler.Count}, {Kind: compiler.Sum}, {Kind: compiler.Avg}, {Kind: compiler.Min}, {Kind: compiler.Max}, {Kind: compiler.Hist},
	}
	bucket := func(from, to, n uint64) Bucket { return Bucket{NewUint(from), NewUint(to), n} }
	row := func(key string, calls, sum, least, most uint64, buckets ...Bucket) Row {
		return Row{Key: []Value{{Data: []byte(key)}}, Calls: calls, Cells: []Cell{
			{Number: NewUint(calls)}, {Number: NewUint(sum)}, {Number: NewUint(sum)}, {Number: NewUint(least)}, {Number: NewUint(most)}, {Buckets: buckets},
		}}
	}
	one, two, three := row("a1", 2, 2, 1, 1, bucket(1, 1, 2)), row("b", 1, 9, 9, 9, bucket(8, 15, 1)), row("a2", 1, 5, 5, 5, bucket(4, 7, 1))
	table := &Table{Time: 9, Aggregates: all, Full: 7, Rows: []Row{one, two, three}}
	joined := table.Joined(func(v *Value) []byte { return v.Data[:1] })
	want := row("a1", 3, 7, 1, 5, bucket(1, 1, 2), bucket(2, 3, 0), bucket(4, 7, 1))
	require.Equal(t, &Table{Time: 9, Aggregates: all, Full: 7, Rows: []Row{want, two}}, joined)
	require.Equal(t, []Row{one, two, three}, table.Rows)
	require.Equal(t, uint64(2), table.Rows[0].Cells[5].Buckets[0].Count)
	require.Equal(t, table, table.Joined(func(v *Value) []byte { return v.Data }))
	longer := &Table{Aggregates: all, Rows: []Row{row("a", 1, 2, 2, 2, bucket(2, 3, 1)), row("a", 2, 2, 1, 1, bucket(1, 1, 2))}}
	longer.Rows[0].Key[0].Cut = true
	require.Equal(t, longer, longer.Joined(func(v *Value) []byte { return v.Data }), "one string is cut, and the other one is not")
}

// TestTableJoinedOfGlob verifies that no bucket is lost of a function whose numbers have
// another sign than those of the glob's first function.
func TestTableJoinedOfGlob(t *testing.T) {
	hist := func(signed bool) *compiler.Aggregate {
		return &compiler.Aggregate{Kind: compiler.Hist, Value: &compiler.Value{Scalar: &compiler.Scalar{Size: 8, Signed: signed}}}
	}
	for _, signed := range []bool{false, true} {
		last := map[bool]int{false: 64, true: 64 + 64}[signed] // 2^63 and more; -2^63
		row := func(n uint64) Row {
			return Row{Func: "g", Calls: 1, Cells: []Cell{{Buckets: bucketsOf(hist(signed), func(i int, _ Int) uint64 {
				return map[int]uint64{0: n, 3: n, last: n}[i]
			})}}}
		}
		table := &Table{ByFunction: true, Aggregates: []*compiler.Aggregate{hist(!signed)}, Rows: []Row{row(1), row(2)}}
		joined := table.Joined(func(*Value) []byte { return nil })
		require.Equal(t, row(3).Cells, joined.Rows[0].Cells, "signed %t", signed)
		require.Equal(t, uint64(3), joined.Rows[0].Cells[0].Buckets[map[bool]int{false: 64, true: 0}[signed]].Count)
	}
}

// TestTableJoinedLinear verifies that histograms that begin at the least value, below which
// there is nothing to count, are joined bucket by bucket.
func TestTableJoinedLinear(t *testing.T) {
	for _, test := range []struct {
		number    compiler.Scalar
		low, high int64
	}{
		{compiler.Scalar{Size: 8}, 0, 30}, {compiler.Scalar{Size: 1, Signed: true}, -128, -98}, {compiler.Scalar{Size: 1}, 226, 256}, {compiler.Scalar{Size: 4, Signed: true}, -10, 20},
	} {
		a := &compiler.Aggregate{Kind: compiler.Linear, Value: &compiler.Value{Scalar: &test.number}, Low: uint64(test.low), High: uint64(test.high), Step: 10}
		row := func(counts ...uint64) Row {
			return Row{Calls: 1, Cells: []Cell{{Buckets: bucketsOf(a, func(i int, _ Int) uint64 { return counts[i] })}}}
		}
		table := &Table{Aggregates: []*compiler.Aggregate{a}, Rows: []Row{row(0, 1, 0, 2, 0), row(0, 3, 4, 0, 0)}}
		joined := table.Joined(func(*Value) []byte { return nil })
		require.Equal(t, row(0, 4, 4, 2, 0).Cells, joined.Rows[0].Cells, "from %d", test.low)
	}
}

// TestLookUpEach reads a table as if the kernel did not permit iterators: every
// element once, with its own key, and without what follows it in the map.
func TestLookUpEach(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("makes a map as root")
	}
	const keys = 1000
	m, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Hash, KeySize: 8, ValueSize: 16, MaxEntries: keys})
	require.NoError(t, err)
	defer m.Close()
	want, got := map[uint64]uint64{}, map[uint64]uint64{}
	for key := range uint64(keys) {
		want[key] = 3 * key
		require.NoError(t, m.Put(key, [2]uint64{3 * key, 7}))
	}
	l := &compiler.TableLayout{Size: 8}
	require.NoError(t, lookUpEach(m, l, func(key, element []byte) error {
		require.Len(t, element, l.Size)
		got[binary.NativeEndian.Uint64(key)] = binary.NativeEndian.Uint64(element)
		return nil
	}))
	require.Equal(t, want, got)
	require.ErrorIs(t, lookUpEach(m, l, func(key, element []byte) error { return os.ErrClosed }), os.ErrClosed)
}

// TestInt compares Int with math/big.
func TestInt(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	number := func() (Int, *big.Int) {
		switch v := random.Uint64() >> random.IntN(64); random.IntN(3) {
		case 0:
			return NewUint(v), new(big.Int).SetUint64(v)
		case 1:
			return NewInt(int64(v)), big.NewInt(int64(v))
		default:
			return NewInt(-int64(v)).shifted(), new(big.Int).Lsh(big.NewInt(-int64(v)), 32)
		}
	}
	for range 10_000 {
		a, bigA := number()
		b, bigB := number()
		sum, bigSum := a.Add(b), new(big.Int).Add(bigA, bigB)
		require.Equal(t, bigSum.String(), sum.String())
		require.Equal(t, bigA.Cmp(bigB), a.Cmp(b))
		require.Equal(t, 0, sum.Cmp(sum))
		near, _ := new(big.Float).SetInt(bigSum).Float64()
		require.LessOrEqual(t, math.Abs(near-sum.Float64()), 1e-15*math.Abs(near))
		v, ok := sum.Uint64()
		require.Equal(t, bigSum.IsUint64(), ok)
		if ok {
			require.Equal(t, bigSum.Uint64(), v)
		}
	}
	require.Equal(t, "0", Int{}.String())
}
