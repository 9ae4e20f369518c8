package render

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/runtime"
)

// Arrangement is which rows of tables are shown, and in which order.
type Arrangement struct {
	Sort string // an item of the spec, or "" for the first aggregate
	Top  int    // number of rows, or 0 for all
}

// column selects a part of the key, or an aggregate, to sort the rows of a table by.
// Its index is -1 if it is the function.
type column struct {
	key   bool
	index int
}

// Fits returns an error unless one of the tables has the item to sort by.
func (a Arrangement) Fits(tables []*runtime.Table) error {
	var first error
	for _, t := range tables {
		_, err := a.column(t)
		if err == nil {
			return nil
		}
		first = cmp.Or(first, err)
	}
	return first
}

func (a Arrangement) column(t *runtime.Table) (column, error) {
	names := columnNames(t)
	if a.Sort == "" {
		return column{index: 0}, nil
	}
	plain := func(name string) string { return strings.Join(strings.Fields(name), "") }
	for i, name := range names {
		if plain(name) != plain(a.Sort) {
			continue
		}
		keys := len(names) - len(t.Aggregates)
		if i >= keys {
			return column{index: i - keys}, nil
		}
		if t.ByFunction {
			i--
		}
		return column{key: true, index: i}, nil
	}
	if near, ok := spec.Nearest(a.Sort, slices.Values(names)); ok {
		return column{}, fmt.Errorf("--sort is %q: did you mean '%s'?", a.Sort, near)
	}
	return column{}, fmt.Errorf("--sort is %q: it must be an item of the spec: %s", a.Sort, strings.Join(names, ", "))
}

// functionColumn is the heading of the function's name in the tables of globs.
const functionColumn = "function"

// columnNames returns the names of all columns of a table.
func columnNames(t *runtime.Table) (names []string) {
	if t.ByFunction {
		names = append(names, functionColumn)
	}
	for _, v := range t.Key {
		names = append(names, v.Name)
	}
	for _, a := range t.Aggregates {
		names = append(names, a.Name)
	}
	return names
}

// arrange returns the rows to show: aggregates descend, keys ascend, and rows that are
// equal in that come by their keys. more is the number of rows that are left out.
// Cgroups of a container share a row, and n has the names of containers.
func (a Arrangement) arrange(t *runtime.Table, n *names) (rows []*runtime.Row, more int) {
	t = joinContainers(t, n)
	by, err := a.column(t)
	if err != nil {
		by = column{index: 0} // of another table
	}
	for i := range t.Rows {
		rows = append(rows, &t.Rows[i])
	}
	sort.SliceStable(rows, func(i, j int) bool {
		x, y := rows[i], rows[j]
		if by.key {
			return cmp.Or(compareKeys(x, y, by.index, n), compareRows(x, y, n)) < 0
		}
		return cmp.Or(compareCells(t.Aggregates[by.index].Kind, y, x, by.index), compareRows(x, y, n)) < 0
	})
	if a.Top > 0 && len(rows) > a.Top {
		rows, more = rows[:a.Top], len(rows)-a.Top
	}
	return rows, more
}

// compareRows compares the keys of rows.
func compareRows(x, y *runtime.Row, n *names) int {
	result := strings.Compare(x.Func, y.Func)
	for i := range x.Key {
		result = cmp.Or(result, compareKeys(x, y, i, n))
	}
	return result
}

// compareKeys compares a part of the keys of two rows: numbers as numbers, containers by
// their names, anything else by its bytes.
func compareKeys(x, y *runtime.Row, i int, n *names) int {
	if i < 0 {
		return strings.Compare(x.Func, y.Func)
	}
	a, b := &x.Key[i], &y.Key[i]
	switch {
	case a.Format == compiler.ContainerFormat:
		return strings.Compare(n.container(a.Uint64()).String(), n.container(b.Uint64()).String())
	case a.Scalar == nil || a.Text != compiler.NoText:
		return bytes.Compare(a.Data, b.Data)
	case a.Scalar.Signed:
		return cmp.Compare(a.Int64(), b.Int64())
	}
	return cmp.Compare(a.Uint64(), b.Uint64())
}

// compareCells compares an aggregate of two rows. Histograms are compared by the
// number of their values.
func compareCells(kind compiler.AggregateKind, x, y *runtime.Row, i int) int {
	switch kind {
	case compiler.Avg:
		return cmp.Compare(x.Mean(x.Cells[i].Number), y.Mean(y.Cells[i].Number))
	case compiler.Hist, compiler.Linear:
		return cmp.Compare(x.Calls, y.Calls)
	}
	return x.Cells[i].Number.Cmp(y.Cells[i].Number)
}
