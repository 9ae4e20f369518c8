package main

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/resolve"
	"github.com/ksnoop/ksnoop/runtime"
	"github.com/ksnoop/ksnoop/runtime/recording"
	"github.com/stretchr/testify/require"
)

// randomRecording makes a recording of 400 events. which returns the number in the unit of
// each one.
func randomRecording(t *testing.T, unit *compiler.Unit, which func(int, *rand.Rand) int) (path string, shown []*runtime.Event) {
	var file bytes.Buffer
	w, err := recording.NewWriter(&file, unit, recording.Origin{Version: "1", Arch: "amd64", Clock: began}, nil)
	require.NoError(t, err)
	rnd := rand.New(rand.NewPCG(7, 8))
	for i := range 400 {
		rec := randomRecord(unit, which(i, rnd), rnd, time.Duration(i+1)*time.Millisecond)
		require.NoError(t, w.Record(rec))
		ev := new(runtime.Event)
		require.NoError(t, ev.Decode(unit, bytes.Clone(rec)))
		shown = append(shown, ev)
	}
	require.NoError(t, w.End(runtime.SessionCounts{Events: make([]runtime.Counts, len(unit.Events))}))
	path = filepath.Join(t.TempDir(), "recording")
	require.NoError(t, os.WriteFile(path, file.Bytes(), 0o644))
	return path, shown
}

// TestReplayCondition verifies that replay shows the events and rows for which a
// condition over recorded values holds.
func TestReplayCondition(t *testing.T) {
	unit := unitOf(t, resolve.Wishes{}, "vfs_read(count, file, file->flags, $cgroup, return)", "vfs_open(file->pos, path:ustring, path)")
	path, shown := randomRecording(t, unit, func(_ int, rnd *rand.Rand) int { return rnd.IntN(len(unit.Events)) })
	value := func(ev *runtime.Event, name string) *runtime.Value {
		i := slices.IndexFunc(ev.Values, func(v runtime.Value) bool { return v.Name == name })
		if i < 0 || ev.Values[i].Fault == compiler.ValueFault || ev.Values[i].Pointee == nil && ev.Values[i].Fault != compiler.NoFault {
			return nil
		}
		return &ev.Values[i]
	}
	either := func(ev *runtime.Event) bool {
		r, c := value(ev, "return"), value(ev, "count")
		return r != nil && r.Int64() == -2 || c != nil && c.Uint64() == 0
	}
	for _, tc := range []struct {
		cond string
		want func(ev *runtime.Event) bool
	}{
		{"if count > 100", func(ev *runtime.Event) bool { v := value(ev, "count"); return v != nil && v.Int64() > 100 }},
		{"if !(count > 100)", func(ev *runtime.Event) bool { v := value(ev, "count"); return v != nil && v.Int64() <= 100 }},
		{"if return < 0", func(ev *runtime.Event) bool { v := value(ev, "return"); return v != nil && v.Int64() < 0 }},
		{"if return == -ENOENT || count == 0", either},
		{"if count == 0 || return == -ENOENT", either},
		{"if count == 0 || $pid > 300", func(ev *runtime.Event) bool {
			v := value(ev, "count")
			return v != nil && v.Uint64() == 0 || ev.PID > 300
		}},
		{"if !(count > 100 && $pid > 300)", func(ev *runtime.Event) bool {
			v := value(ev, "count")
			return v != nil && v.Int64() <= 100 || ev.PID <= 300
		}},
		{"if file == NULL", func(ev *runtime.Event) bool { v := value(ev, "file"); return v != nil && v.Addr == 0 }},
		{`if path == "a text"`, func(ev *runtime.Event) bool {
			return slices.ContainsFunc(ev.Values, func(v runtime.Value) bool {
				return v.Name == "path" && v.Fault == compiler.NoFault && string(bytes.SplitN(v.Data, []byte{0}, 2)[0]) == "a text"
			})
		}},
		{`if $comm ~ "ca*"`, func(*runtime.Event) bool { return true }},
		{`if $comm != "cat"`, func(*runtime.Event) bool { return false }},
		{"if(return < 0)", func(ev *runtime.Event) bool { v := value(ev, "return"); return v != nil && v.Int64() < 0 }},
		{"if\tcount > 100", func(ev *runtime.Event) bool { v := value(ev, "count"); return v != nil && v.Int64() > 100 }},
		{"if $pid < 300 && $tid != 77777777", func(ev *runtime.Event) bool { return ev.PID < 300 }},
	} {
		t.Run(tc.cond, func(t *testing.T) {
			status, stdout, stderr := runLine("replay", "-o", "json", path, tc.cond)
			require.Zero(t, status, stderr)
			want := 0
			for _, ev := range shown {
				if tc.want(ev) {
					want++
				}
			}
			require.Equal(t, want, strings.Count(stdout, `{"type":"event"`))
		})
	}
}

// TestReplayConditionErrors verifies that a condition that cannot be asked is refused
// with its reason.
func TestReplayConditionErrors(t *testing.T) {
	run := traceRuns(t)[0]
	path := run.recorded(t)
	for _, tc := range []struct{ cond, want string }{
		{"if cuont > 1", "no record has 'cuont'\n  if cuont > 1\n     ^^^^^\n  did you mean 'count'?"},
		{"if $uid > 1 && nothing == 2", "no record has 'nothing'\n  if $uid > 1 && nothing == 2\n                 ^^^^^^^\n  a condition can have the values that were recorded, and $comm, $pid, $tid and $cpu"},
		{"if $pid == $tid", "a recorded value is compared with a constant, and '$tid' is none\n  if $pid == $tid\n             ^^^^"},
		{"if $pid == \"cat\"", "'$pid' is u32, which is not compared with a string"},
		{"if file->flags < \"1.2.3.4\"", "'file->flags' is an address, which is compared with == and !="},
		{"if", "a condition is missing after 'if'"},
		{"if ", "a condition is missing after 'if'"},
		{"if(cuont)", "no record has 'cuont'"},
		{"if\tcuont > 1", "no record has 'cuont'"},
		{"if!cuont", "no record has 'cuont'"},
		{"iffy", "replay takes one file of ksnoop record, not 2: as in ksnoop replay FILE 'if count > 4k'"},
	} {
		status, stdout, stderr := runLine("replay", path, tc.cond)
		require.Equal(t, 2, status)
		require.Empty(t, stdout)
		require.Contains(t, stderr, tc.want)
	}
	_, _, stderr := runLine("replay", path, "if", "count", "==", "1")
	require.Equal(t, "ksnoop: the shell has split 'if count == 1' at its blanks: put the condition in single quotes, as in ksnoop replay FILE 'if count > 4k'\n", stderr)
}

// TestReplayConditionFits verifies that a condition that fits a value of one event is
// asked of others that have one of the same name, which it does not fit.
func TestReplayConditionFits(t *testing.T) {
	unit := unitOf(t, resolve.Wishes{}, "vfs_read(return, count)", "vfs_open(return, path:string)")
	var file bytes.Buffer
	w, err := recording.NewWriter(&file, unit, recording.Origin{Version: "1", Arch: "amd64", Clock: began}, nil)
	require.NoError(t, err)
	rnd := rand.New(rand.NewPCG(9, 10))
	var returned []int64
	for i := range 200 {
		rec := randomRecord(unit, rnd.IntN(len(unit.Events)), rnd, time.Duration(i+1)*time.Millisecond)
		require.NoError(t, w.Record(rec))
		var ev runtime.Event
		require.NoError(t, ev.Decode(unit, rec))
		at := slices.IndexFunc(ev.Values, func(v runtime.Value) bool { return v.Name == "return" })
		if at >= 0 && ev.Values[at].Fault == compiler.NoFault {
			returned = append(returned, ev.Values[at].Int64())
		}
	}
	require.NoError(t, w.End(runtime.SessionCounts{Events: make([]runtime.Counts, len(unit.Events))}))
	path := filepath.Join(t.TempDir(), "recording")
	require.NoError(t, os.WriteFile(path, file.Bytes(), 0o644))
	for cond, want := range map[string]func(n int64) bool{
		"if return > 3000000000":    func(n int64) bool { return n > 3000000000 },
		"if return < 3000000000":    func(n int64) bool { return n < 3000000000 },
		"if !(return > 3000000000)": func(n int64) bool { return n <= 3000000000 },
		"if return < -3000000000":   func(n int64) bool { return n < -3000000000 },
		"if return != 3000000000":   func(int64) bool { return true },
		"if return == 3000000000":   func(int64) bool { return false },
	} {
		status, stdout, stderr := runLine("replay", "-o", "json", path, cond)
		require.Zero(t, status, stderr)
		n := 0
		for _, r := range returned {
			if want(r) {
				n++
			}
		}
		require.Equal(t, n, strings.Count(stdout, `{"type":"event"`), cond)
		status, _, stderr = runLine("replay", path, cond, "--func", "vfs_open")
		require.Equal(t, 2, status, "it fits no event that is shown")
		require.Contains(t, stderr, "3000000000 does not fit 'return', which is int")
	}
	status, _, stderr := runLine("replay", path, "if count > 1", "--func", "vfs_open")
	require.Equal(t, 2, status)
	require.Contains(t, stderr, "no record has 'count'")
}

// TestReplayOfContainers verifies that events and rows are found by the names and the ids
// of their containers.
func TestReplayOfContainers(t *testing.T) {
	for _, run := range traceRuns(t) {
		if run.name != "values" && run.name != "containers" {
			continue
		}
		path := run.recorded(t)
		shown := func(cond string) int {
			status, stdout, stderr := runLine("replay", "-o", "json", path, cond)
			require.Zero(t, status, stderr)
			return strings.Count(stdout, `"$container":`)
		}
		named := shown(`if $container ~ "a cont*"`)
		require.Equal(t, run.name == "values", named > 0, "the keys of the rows have no container")
		require.Positive(t, shown(`if $container != "a container\x1b"`))
		require.Equal(t, named, shown(`if $container == "a container\x1b"`))
		require.Equal(t, named, shown(`if $container == "`+strings.Repeat("ab", 32)+`"`))
		require.Zero(t, shown(`if $container == "another"`))
		status, _, stderr := runLine("replay", path, "if $container > 5")
		require.Equal(t, 2, status)
		require.Contains(t, stderr, "'$container' is a string, and 5 is none")
	}
}

// TestReplayConditionOfTables verifies that the reason why rows cannot be chosen by a value
// is about rows.
func TestReplayConditionOfTables(t *testing.T) {
	unit := unitOf(t, resolve.Wishes{}, "vfs_read(count, count())")
	var file bytes.Buffer
	w, err := recording.NewWriter(&file, unit, recording.Origin{Version: "1", Arch: "amd64", Clock: began}, nil)
	require.NoError(t, err)
	require.NoError(t, w.End(runtime.SessionCounts{Events: make([]runtime.Counts, len(unit.Events))}))
	path := filepath.Join(t.TempDir(), "recording")
	require.NoError(t, os.WriteFile(path, file.Bytes(), 0o644))
	status, _, stderr := runLine("replay", path, "if $pid > 1")
	require.Equal(t, 2, status)
	require.Equal(t, "ksnoop: no row of a table has '$pid'\n  if $pid > 1\n     ^^^^\n  a condition can have what the rows were counted by\n", stderr)
	status, _, stderr = runLine("replay", path, "if cuont > 1")
	require.Equal(t, 2, status)
	require.Contains(t, stderr, "did you mean 'count'?")
}

// TestReplayConditionOfGlob verifies that rows of the functions of a glob are chosen by the
// values of their own function, which have other types in another one.
func TestReplayConditionOfGlob(t *testing.T) {
	run := traceRunOf(t, "glob")
	path := run.recorded(t)
	for cond, shown := range map[string][2]bool{`if $arg1 ~ "*"`: {true, false}, "if return < 0": {true, true}, "if return > 0": {false, false}} {
		status, stdout, stderr := runLine("replay", path, cond)
		require.Zero(t, status, stderr)
		for i, function := range []string{"vfs_open", "vfs_read"} {
			require.Equal(t, shown[i], strings.Contains(stdout, "\n  "+function+" "), "%s: %s", cond, function)
		}
	}
}

// TestReplayConditionSeveral verifies that a condition is asked of all values of its name
// that it fits: of those of its format, and of both points of a span.
func TestReplayConditionSeveral(t *testing.T) {
	unit := unitOf(t, resolve.Wishes{}, "vfs_open(path:x, path:ustring)", "vfs_open(file) => vfs_read(file) on $tid")
	path, shown := randomRecording(t, unit, func(i int, _ *rand.Rand) int { return i % 2 * (len(unit.Events) - 1) })
	is := func(v *runtime.Value, name, format string) bool {
		return v.Name == name && v.Format == format && v.Fault == compiler.NoFault
	}
	isZero := func(v *runtime.Value) bool { return v.Name == "file" && v.Fault != compiler.ValueFault && v.Addr == 0 }
	isText := func(v *runtime.Value) bool { return is(v, "path", "ustring") && bytes.HasPrefix(v.Data, []byte("a t")) }
	for cond, holds := range map[string]func(v *runtime.Value) bool{
		"if file == NULL":          isZero,
		`if path:ustring ~ "a t*"`: isText,
		`if path ~ "a t*"`:         isText,
		"if path:x == 0":           func(v *runtime.Value) bool { return is(v, "path", "x") && v.Uint64() == 0 },
		`if file ~ "a t*"`:         nil, // refused
	} {
		status, stdout, stderr := runLine("replay", "-o", "json", path, cond)
		if holds == nil {
			require.Equal(t, 2, status)
			continue
		}
		require.Zero(t, status, stderr)
		want := 0
		for _, ev := range shown {
			for i := range ev.Values {
				if holds(&ev.Values[i]) {
					want++
					break
				}
			}
		}
		require.Positive(t, want, cond)
		require.Equal(t, want, strings.Count(stdout, `{"type":"event"`), cond)
	}
}
