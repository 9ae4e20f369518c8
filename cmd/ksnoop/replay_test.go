package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ksnoop/ksnoop/btfdump"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/fixture"
	"github.com/ksnoop/ksnoop/runtime/render"
	"github.com/stretchr/testify/require"
)

// TestReplay verifies that replay prints what trace prints, byte for byte.
func TestReplay(t *testing.T) {
	values := btfdump.Options{EmitStrings: true, Indent: " "}
	zeroes := btfdump.Options{EmitStrings: true, Indent: " ", EmitZeroes: true, SkipNames: true}
	names := btfdump.Options{EmitStrings: true, Indent: " ", SkipNames: true}
	for _, run := range traceRuns(t) {
		var file bytes.Buffer
		run.record(t, &file, symbolTable(t))
		path := filepath.Join(t.TempDir(), "recording")
		require.NoError(t, os.WriteFile(path, file.Bytes(), 0o644))
		for _, tc := range []struct {
			options string
			o       render.Options
		}{
			{"", render.Options{Values: values, Look: render.Look{Time: render.Mono}}},
			{"-o compact --time wall", render.Options{Format: "compact", Values: values, Look: render.Look{Time: render.Wall}}},
			{"-o ftrace", render.Options{Format: "ftrace", Values: values}},
			{"-o ftrace --time wall --skip-names", render.Options{Format: "ftrace", Values: names, Look: render.Look{Time: render.Wall}}},
			{"-o json", render.Options{Format: "json", Values: values}},
			{"-o json --time wall", render.Options{Format: "json", Values: values, Look: render.Look{Time: render.Wall}}},
			{"-o json --emit-zeroes --skip-names", render.Options{Format: "json", Values: zeroes}},
			{"--time delta --emit-zeroes --skip-names --no-header", render.Options{Values: zeroes, Look: render.Look{Time: render.Delta, NoHeader: true}}},
		} {
			t.Run(run.name+" "+tc.options, func(t *testing.T) {
				want := run.traced(t, tc.o)
				status, stdout, stderr := runLine(append([]string{"replay", path}, strings.Fields(tc.options)...)...)
				require.Zero(t, status, stderr)
				require.Equal(t, want, stdout)
				require.Regexp(t, "ring buffer was full|spans that began at", stderr)
				if run.name == "values" || run.name == "tables" {
					require.Contains(t, stdout, "vfs_open+0x", "addresses have names")
				}
				if run.name == "values" {
					require.Contains(t, stdout, "main+0x", "frames of processes, too")
					require.Contains(t, stdout, "a container", "and containers")
				}
			})
		}
	}
}

// TestReplayPart verifies that replay shows a part of the time, and of the functions.
func TestReplayPart(t *testing.T) {
	run := traceRuns(t)[0]
	var file bytes.Buffer
	run.record(t, &file, nil)
	path := filepath.Join(t.TempDir(), "recording")
	require.NoError(t, os.WriteFile(path, file.Bytes(), 0o644))
	count := func(options ...string) int {
		status, stdout, stderr := runLine(append([]string{"replay", path, "-o", "json"}, options...)...)
		require.Zero(t, status, stderr)
		return strings.Count(stdout, `{"type":"event"`)
	}
	require.Equal(t, 300, count())
	require.Equal(t, 100, count("--from", "2010000000"))
	require.Equal(t, 50, count("--from", "2010000000", "--to", "2500000000"))
	require.Equal(t, 101, count("--from", "1s"), "from the first clock pair, at 1 s, on")
	require.Equal(t, 300, count("--from", "0"))
	require.Equal(t, 300-99, count("--from", "0s"), "before that is the first clock pair")
	require.Equal(t, 0, count("--to", "0"))
	require.Equal(t, 300, count("--from", "0", "--to", "9223372036s"))
	status, stdout, stderr := runLine("replay", path, "--from", "2s", "--to", "1.5s")
	require.Equal(t, 2, status)
	require.Empty(t, stdout)
	require.Equal(t, "ksnoop: --from is 2s, and --to is 1.5s, which is earlier: exchange them\n", stderr)
	require.Equal(t, 300, count("--func", "vfs_*", "--func", "tp:tick"))
	require.Less(t, count("--func", "vfs_op?n"), 200)
	status, stdout, stderr = runLine("replay", path, "--func", "vfs_opne")
	require.Equal(t, 2, status)
	require.Empty(t, stdout)
	require.Equal(t, "ksnoop: --func is \"vfs_opne\": the recording has no such function: did you mean 'vfs_open'?\n", stderr)
	status, _, stderr = runLine("replay", path, "--func", "tcp_*")
	require.Equal(t, 2, status)
	require.Equal(t, "ksnoop: --func is \"tcp_*\": the recording has no such function: ksnoop info "+path+" lists its functions\n", stderr)
}

// TestReplayPartOfTables verifies that replay shows the tables of some functions, and
// those of which a condition leaves rows.
func TestReplayPartOfTables(t *testing.T) {
	runs := traceRuns(t)
	run := runs[slices.IndexFunc(runs, func(r *traceRun) bool { return r.name == "tables" })]
	var file bytes.Buffer
	run.record(t, &file, nil)
	path := filepath.Join(t.TempDir(), "recording")
	require.NoError(t, os.WriteFile(path, file.Bytes(), 0o644))
	const span = "vfs_open => vfs_read"
	for _, tc := range []struct {
		options []string
		want    []string // labels of the tables
		without string   // a function in no row
	}{
		{nil, []string{"vfs_read", "vfs_open", "vfs_[or]*", "tp:t*", span}, "none"},
		{[]string{"--func", "vfs_*"}, []string{"vfs_read", "vfs_open", "vfs_[or]*", span}, "none"},
		{[]string{"--func", "*_open"}, []string{"vfs_open", "vfs_[or]*", span}, "vfs_read"},
		{[]string{"--func", "vfs_read", "--func", "tick"}, []string{"vfs_read", "vfs_[or]*", "tp:t*", span}, "vfs_open"},
		{[]string{"--func", "tp:tick"}, []string{"tp:t*"}, "none"},
		{[]string{"if $comm == \"nobody\""}, nil, "none"},
	} {
		status, stdout, stderr := runLine(append([]string{"replay", path}, tc.options...)...)
		require.Zero(t, status, stderr)
		require.NotContains(t, stdout, "no calls")
		labels := []string{}
		for _, m := range regexp.MustCompile(`(?m)^(\S.*) in 2s:$`).FindAllStringSubmatch(stdout, -1) {
			labels = append(labels, m[1])
		}
		require.Equal(t, slices.Repeat(tc.want, 2), labels, tc.options)
		require.NotRegexp(t, `(?m)^  `+tc.without+` `, stdout, tc.options)
	}
}

// TestDamagedRecording verifies that what is before the damage of a recording is
// shown, and that an exact sentence says what is missing.
func TestDamagedRecording(t *testing.T) {
	run := traceRuns(t)[0]
	var file bytes.Buffer
	run.record(t, &file, symbolTable(t))
	whole := file.Bytes()
	blocks := blockStarts(whole)
	require.Greater(t, len(blocks), 5)
	third := blocks[3]
	shown := 0 // after the first item, each block has 50
	for _, step := range run.steps[:51] {
		if step.Record != nil {
			shown++
		}
	}
	flipped := bytes.Clone(whole)
	flipped[third+30] ^= 1
	for _, tc := range []struct {
		name    string
		content []byte
		want    string
	}{
		{"no end", whole[:third], "the recording has no end: it goes on, or its process was killed, or the disk was full"},
		{"cut", whole[:third+20], fmt.Sprintf("the recording is damaged at byte %d, and cannot be read from there on: the file ends in the middle of a block", third)},
		{"header cut", whole[:third+2], fmt.Sprintf("the recording is damaged at byte %d, and cannot be read from there on: the file ends in the middle of a block", third)},
		{"flipped", flipped, fmt.Sprintf("the recording is damaged at byte %d, and cannot be read from there on: the checksum of a block is wrong", third)},
		{"block missing", append(bytes.Clone(whole[:third]), whole[blocks[4]:]...), fmt.Sprintf("the recording is damaged at byte %d, and cannot be read from there on: block 4 is where block 3 must be", third)},
		{"twice", append(bytes.Clone(whole), whole...), fmt.Sprintf("the recording ends at byte %d, and %[1]d bytes that follow are not read: if files were joined, replay each by its name", len(whole))},
		{"more", append(bytes.Clone(whole), "garbage"...), fmt.Sprintf("the recording ends at byte %d, and 7 bytes that follow are not read: if files were joined, replay each by its name", len(whole))},
		{"nothing", nil, "it is empty: nothing was recorded, or its file system was full"},
		{"other", []byte("#!/bin/sh and more text"), "it is not a recording of ksnoop record"},
		{"magic cut", whole[:5], "it ends after 5 bytes, before its first block"},
		{"version", append([]byte("ksnoop-record\x00\x00\x01"), whole[16:]...), "its format has version 1, and this ksnoop reads version 2: use a ksnoop of the same version as the one that recorded"},
		{"no block", whole[:16], "the recording is damaged at byte 16, and cannot be read from there on: the file ends in the middle of a block"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "recording")
			require.NoError(t, os.WriteFile(path, tc.content, 0o644))
			status, stdout, stderr := runLine("replay", "-o", "json", path)
			require.Equal(t, 1, status)
			require.True(t, strings.HasSuffix(stderr, "ksnoop: read "+path+": "+tc.want+"\n"), stderr)
			require.Equal(t, len(tc.content) <= len(whole), strings.Count(stderr, "\n") == 1, "before it come losses")
			if bytes.HasPrefix(tc.content, whole[:third]) {
				want := shown
				if bytes.HasPrefix(tc.content, whole) {
					want = 300
				}
				require.Equal(t, want, strings.Count(stdout, `{"type":"event"`), "of the blocks before")
			}
		})
	}
}

// TestInfoOfRecording verifies what info says of whole and of damaged recordings.
func TestInfoOfRecording(t *testing.T) {
	run := traceRuns(t)[0]
	var file bytes.Buffer
	run.record(t, &file, nil)
	dir := t.TempDir()
	path := filepath.Join(dir, "recording")
	require.NoError(t, os.WriteFile(path, file.Bytes(), 0o644))
	status, stdout, stderr := runLine("info", path)
	require.Zero(t, status, stderr)
	require.Regexp(t, `^\S*recording: a recording of ksnoop 1
  system   h, Linux 6.12.0-test \(amd64\), boot b
  specs    vfs_read
  began    2023-11-14T22:13:21Z
  lasted   2s
  records  300: \d+ of vfs_read \(entry\), .*
  losses   \d+ lost, \d+ without room, \d+ unreadable, 0 unpaired, \d+ missed( \(the kernel does not count all\))?
$`, stdout)
	var lost, unreadable, missed uint64
	for _, n := range run.counts.Events {
		lost, unreadable = lost+n.Lost, unreadable+n.Unreadable
	}
	for _, m := range run.counts.Missed {
		missed += m.N
	}
	require.Contains(t, stdout, fmt.Sprintf("losses   %d lost, 0 without room, %d unreadable, 0 unpaired, %d missed", lost, unreadable, missed))
	cut := filepath.Join(dir, "cut")
	require.NoError(t, os.WriteFile(cut, file.Bytes()[:file.Len()-5], 0o644))
	schema := fixture.Schema(t, "info")
	for _, tc := range []struct {
		path, want string
		status     int
	}{
		{path, `"realtime":1700000000000000000,"begin":1000000000,"end":3000000000,"specs":["vfs_read"],"events":[{"func":"vfs_read","kind":"entry","records":`, 0},
		{path, fmt.Sprintf(`"lost":%d,"losses":{"lost":%[1]d,"noroom":0,"unreadable":%d,"unpaired":0,"missed":%d,`, lost, unreadable, missed), 0},
		{cut, `"damage":"the recording is damaged at byte `, 1},
	} {
		status, stdout, stderr := runLine("info", "-o", "json", tc.path)
		require.Equal(t, tc.status, status, stderr)
		require.Contains(t, stdout, tc.want)
		require.Equal(t, tc.status == 0, strings.Contains(stdout, `"lost":`))
		require.NoError(t, schema.Lines(stdout))
	}
	for n, want := range map[int]string{
		0: "it is empty: nothing was recorded, or its file system was full", 5: "it ends after 5 bytes, before its first block",
		15: "it ends after 15 bytes, before its first block", 16: "the recording is damaged at byte 16, and cannot be read from there on: the file ends in the middle of a block",
	} {
		t.Chdir(dir)
		require.NoError(t, os.WriteFile("tr", file.Bytes()[:n], 0o644))
		status, _, stderr = runLine("info", "tr")
		require.Equal(t, 1, status)
		require.Equal(t, "ksnoop: read tr: "+want+"\n", stderr)
	}
	status, _, stderr = runLine("info", "-")
	require.Equal(t, 2, status)
	require.Equal(t, "ksnoop: info needs the name of a recording, and - is standard input: write it to a file, as in ksnoop info FILE\n", stderr)
	var errs bytes.Buffer
	require.Equal(t, 2, runInto(t, "out", &errs, "info", "-"))
	require.Contains(t, errs.String(), "ksnoop: info needs the name of a recording")
	status, _, stderr = runLine("info", path, "--file", "/nosuch")
	require.Equal(t, 2, status)
	require.Contains(t, stderr, "/nosuch")
}
