package verdict

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/term"
	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/runtime"
	"github.com/ksnoop/ksnoop/runtime/cgroup"
)

// named has a container for each cgroup.
type named struct{}

func (named) Of(id uint64) (cgroup.Container, bool) {
	return cgroup.Container{Runtime: "lxc", Name: fmt.Sprint("box", id)}, true
}

// TestContainersOfTable verifies that a table has a row for each container, by its name.
func TestContainersOfTable(t *testing.T) {
	key := &compiler.Value{
		Name: "$container", Type: &btf.Int{Name: "u64", Size: 8}, Format: compiler.ContainerFormat,
		Base: compiler.Base{Builtin: compiler.CgroupID}, Scalar: &compiler.Scalar{Size: 8},
	}
	table := &runtime.Table{Key: []*compiler.Value{key}, Aggregates: []*compiler.Aggregate{{Name: "count()", Kind: compiler.Count}}}
	for id := range uint64(2) {
		table.Rows = append(table.Rows, runtime.Row{
			Key:   []runtime.Value{{Value: key, Data: binary.LittleEndian.AppendUint64(nil, id), Full: 8}},
			Calls: 1, Cells: []runtime.Cell{{Number: runtime.NewInt(1)}},
		})
	}
	r := &testResult{table: table}
	require.NoError(t, (&tester{streams: &term.Streams{}, containers: named{}}).showTable(r))
	shown := strings.Join(r.Notes, "\n")
	for _, name := range []string{`"box0"`, `"box1"`} {
		require.Contains(t, shown, name)
		require.Contains(t, string(r.json), name)
	}
}
