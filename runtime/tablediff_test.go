package runtime

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler"
)

// TestTableAfter verifies that a table without an earlier one has what was counted
// since.
func TestTableAfter(t *testing.T) {
	kinds := []*compiler.Aggregate{{Kind: compiler.Count}, {Kind: compiler.Sum}, {Kind: compiler.Hist}}
	row := func(key string, calls uint64, sum int64, counts ...uint64) Row {
		r := Row{Key: []Value{{Data: []byte(key)}}, Calls: calls, Cells: []Cell{{Number: NewUint(calls)}, {Number: NewInt(sum)}, {}}}
		for i, n := range counts {
			r.Cells[2].Buckets = append(r.Cells[2].Buckets, Bucket{From: NewInt(int64(i)), To: NewInt(int64(i)), Count: n})
		}
		return r
	}
	before := &Table{Time: 5, Aggregates: kinds, Full: 2, Unread: 1, Rows: []Row{row("a", 3, -6, 1, 1, 1), row("b", 1, 1, 1)}}
	now := &Table{Time: 9, Aggregates: kinds, Full: 7, Unread: 1, Rows: []Row{row("a", 5, -10, 1, 2, 1, 0, 1), row("b", 1, 1, 1), row("c", 2, 4, 2)}}
	later := now.After(before)
	want := row("a", 2, -4)
	for i, n := range []uint64{1, 0, 0, 1} {
		want.Cells[2].Buckets = append(want.Cells[2].Buckets, Bucket{From: NewInt(int64(i + 1)), To: NewInt(int64(i + 1)), Count: n})
	}
	require.Equal(t, &Table{Since: 5, Time: 9, Aggregates: kinds, Full: 5, Rows: []Row{want, row("c", 2, 4, 2)}}, later)
	require.Empty(t, now.After(now).Rows)
	require.Equal(t, uint64(5), now.Rows[0].Calls, "the table itself does not change")
}
