package render

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/runtime"
	"github.com/ksnoop/ksnoop/runtime/cgroup"
)

// knownContainers are containers by their cgroups.
type knownContainers map[uint64]cgroup.Container

func (k knownContainers) Of(id uint64) (cgroup.Container, bool) {
	c, ok := k[id]
	return c, ok
}

// TestContainers verifies that a container is shown by its name or id in each format, and
// in JSON beside the cgroup.
func TestContainers(t *testing.T) {
	id := strings.Repeat("0123456789abcdef", 4)
	known := knownContainers{
		7: {Runtime: "docker", ID: id, Name: "web\x1b"}, 8: {Runtime: "podman", ID: id}, 9: {Runtime: "lxc", Name: "box"},
	}
	item := func(name, format string) *compiler.Value {
		v := plain(name, u64Type)
		v.Format, v.Base.Builtin = format, compiler.CgroupID
		return v
	}
	container, number := item("$container", compiler.ContainerFormat), item("$cgroup", "")
	for _, tc := range []struct {
		cgroup             uint64
		text, json, beside string
	}{
		{7, `"web\033"`, `"web\u001b"`, `,"container":{"runtime":"docker","id":"` + id + `","name":"web\u001b"}`},
		{8, `"0123456789ab"`, `"0123456789ab"`, `,"container":{"runtime":"podman","id":"` + id + `"}`},
		{9, `"box"`, `"box"`, `,"container":{"runtime":"lxc","name":"box"}`},
		{10, `""`, `""`, ""},
	} {
		ev := newEvent(compiler.EntryEvent, runtime.Value{Value: container, Data: words(tc.cgroup)}, runtime.Value{Value: number, Data: words(tc.cgroup)})
		show := func(format string) string {
			out, err := New(&compiler.Unit{}, Options{Format: format, Values: dumpDefaults, Containers: known})
			require.NoError(t, err)
			require.NoError(t, out.Event(ev))
			var text strings.Builder
			require.NoError(t, out.Flush(&text))
			return text.String()
		}
		require.Contains(t, show("compact"), "$container="+tc.text+", $cgroup=")
		require.Regexp(t, `\$container = \n +`+regexp.QuoteMeta(tc.text)+",\n", show("text"))
		lines := show("json")
		require.NoError(t, strictSchema(t, "trace").Lines(lines))
		require.Contains(t, lines, `"$container":`+tc.json+`,"$cgroup":`)
		if tc.beside == "" {
			require.NotContains(t, lines, `"container"`)
		} else {
			require.Contains(t, lines, "}"+tc.beside+"}\n")
		}
	}
	ev := newEvent(compiler.EntryEvent, runtime.Value{Value: number, Data: words(7)})
	p := newJSON(Options{Values: dumpDefaults}, nil)
	require.NoError(t, p.Event(ev), "nobody looks for containers")
	require.NotContains(t, string(p.text), "container")
}

// TestContainerRows verifies that the cgroups of a container share a row, and so do all
// that are in none, but not containers of the same name.
func TestContainerRows(t *testing.T) {
	a, b := strings.Repeat("a", 64), strings.Repeat("b", 64)
	known := knownContainers{7: {Runtime: "docker", ID: a, Name: "web"}, 8: {Runtime: "docker", ID: a, Name: "web"}, 9: {Runtime: "docker", ID: b, Name: "web"}}
	v := plain("$container", u64Type)
	v.Format, v.Base.Builtin = compiler.ContainerFormat, compiler.CgroupID
	table := &runtime.Table{Label: "f", Key: []*compiler.Value{v}, Aggregates: []*compiler.Aggregate{{Name: "count()", Kind: compiler.Count}}}
	for cgroup, calls := range []uint64{7: 1, 8: 20, 9: 3, 10: 400, 11: 5000} {
		if calls > 0 {
			table.Rows = append(table.Rows, runtime.Row{
				Key: []runtime.Value{{Value: v, Data: words(uint64(cgroup))}}, Calls: calls, Cells: []runtime.Cell{{Number: runtime.NewUint(calls)}},
			})
		}
	}
	show := func(format string, look Look, arrange Arrangement) string {
		out, err := New(&compiler.Unit{}, Options{Format: format, Values: dumpDefaults, Containers: known, Look: look, Arrange: arrange})
		require.NoError(t, err)
		var text strings.Builder
		require.NoError(t, out.Flush(&text))
		text.Reset()
		require.NoError(t, out.Table(table))
		require.NoError(t, out.Flush(&text))
		return text.String()
	}
	lines := show("json", Look{}, Arrangement{})
	require.NoError(t, strictSchema(t, "trace").Lines(lines))
	require.Contains(t, lines, `{"key":{"$container":""},"count":5400},{"key":{"$container":"web"},`)
	require.Equal(t, 3, strings.Count(lines, `"key"`))
	require.Regexp(t, `(?m)^ +"" +5400\n +"web" +21\n +1 more row$`, show("text", Look{}, Arrangement{Top: 2}))
	require.Equal(t, 3, strings.Count(show("compact", Look{NoHeader: true}, Arrangement{}), "count()="))

	// Sorted by their names, and not by the numbers of cgroups.
	known[7], known[8], known[9] = cgroup.Container{Runtime: "lxc", Name: "web"}, cgroup.Container{Runtime: "lxc", Name: "mail"}, cgroup.Container{Runtime: "podman", ID: a}
	require.Regexp(t, `(?s)""[^\n]*5400\n +"aaaaaaaaaaaa" +3\n +"mail" +20\n +"web" +1\n`, show("text", Look{}, Arrangement{Sort: "$container"}))
}

// TestSharedSymbols verifies that a second printer with the same Symbols leaves the first
// one its containers.
func TestSharedSymbols(t *testing.T) {
	cgroupID := plain("$cgroup", u64Type)
	cgroupID.Base.Builtin = compiler.CgroupID
	symbols := symbolsOf(namedSymbols)
	out, err := New(&compiler.Unit{}, Options{Format: "json", Symbols: symbols, Containers: knownContainers{7: {Runtime: "lxc", Name: "box"}}})
	require.NoError(t, err)
	_, err = New(&compiler.Unit{}, Options{Format: "json", Symbols: symbols})
	require.NoError(t, err)
	_, err = NewValues(Options{Symbols: symbols})
	require.NoError(t, err)
	require.NoError(t, out.Event(newEvent(compiler.EntryEvent, runtime.Value{Value: cgroupID, Data: words(7)})))
	var text strings.Builder
	require.NoError(t, out.Flush(&text))
	require.Contains(t, text.String(), `"container":{"runtime":"lxc","name":"box"}`)
}
