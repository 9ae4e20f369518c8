package runtime

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler"
)

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
}
