package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
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
	unrecorded := traceRuns(t) // the same runs
	for i, run := range traceRuns(t) {
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
				want := unrecorded[i].traced(t, tc.o)
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
	path := run.recorded(t)
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
	_, _, wrong := runLine("replay", path, "--from", "1m30")
	require.Contains(t, wrong, `--from is "1m30": it must be a time`)
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
	status, _, stderr = runLine("replay", path, "--func", "[^v]*")
	require.Equal(t, 2, status)
	require.Equal(t, "ksnoop: --func: a '^' after '['\n  [^v]*\n  ^^^^\n  everything but some is written [!v]\n", stderr)
}

// TestReplayPartOfTables verifies that replay shows the tables of some functions, and
// those of which a condition leaves rows.
func TestReplayPartOfTables(t *testing.T) {
	run := traceRunOf(t, "tables")
	path := run.recorded(t)
	const span = "vfs_open => vfs_read"
	for _, tc := range []struct {
		options []string
		want    []string // labels of the tables
		without string   // a function in no row
	}{
		{nil, []string{"vfs_read", "vfs_open", "vfs_[or]*", "tp:t*", span}, "none"},
		{[]string{"--func", "vfs_*"}, []string{"vfs_read", "vfs_open", "vfs_[or]*", span}, "none"},
		{[]string{"--func", "vfs_[r-]*"}, []string{"vfs_read", "vfs_[or]*", span}, "vfs_open"},
		{[]string{"--func", "[!-v]*"}, []string{"tp:t*"}, "none"},
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

// TestDamagedRecording verifies that all whole blocks of a damaged recording are shown, and
// that an exact sentence says what is missing.
func TestDamagedRecording(t *testing.T) {
	run := traceRuns(t)[0]
	var file bytes.Buffer
	run.record(t, &file, symbolTable(t))
	whole := file.Bytes()
	var other bytes.Buffer
	traceRuns(t)[1].record(t, &other, nil)
	blocks := blockStarts(whole)
	require.Greater(t, len(blocks), 6)
	contents := contentsOf(t, whole)
	events := func(from, to int) (n int) { // that blocks have
		for _, c := range contents[from:to] {
			n += recordsIn(t, c.entries)
		}
		return n
	}
	all, before := len(blocks), events(0, 3)
	third, fourth, fifth := blocks[3], blocks[4], blocks[5]
	changed := func(change func(file []byte)) []byte {
		f := bytes.Clone(whole)
		change(f)
		return f
	}
	without := func(from, to int) []byte { return append(bytes.Clone(whole[:from]), whole[to:]...) }
	const noEnd = "the recording has no end: it goes on, or its process was killed, or the disk was full"
	damaged := func(at int, reason string) string {
		return fmt.Sprintf("the recording is damaged at byte %d, and cannot be read from there on: %s", at, reason)
	}
	skipped := func(at, n int, reason string) string {
		return fmt.Sprintf("the recording is damaged at byte %d, and %d bytes are not read: %s", at, n, reason)
	}
	follows := func(at, n int) string {
		return fmt.Sprintf("the recording ends at byte %d, and %d bytes that follow are not read: if files were joined, replay each by its name", at, n)
	}
	for _, tc := range []struct {
		name    string
		content []byte
		want    string
		events  int
	}{
		{"no end", whole[:third], noEnd, before},
		{"cut", whole[:third+20], damaged(third, "the file ends in the middle of a block"), before},
		{"header cut", whole[:third+2], damaged(third, "the file ends in the middle of a block"), before},
		{"cut and zeros", changed(func(f []byte) { clear(f[third+100:]) }), damaged(third, "the checksum of a block is wrong"), before},
		{"only zeros", changed(func(f []byte) { clear(f[third:]) }), damaged(third, "no block begins there"), before},
		{"flipped", changed(func(f []byte) { f[third+30] ^= 1 }), skipped(third, fourth-third, "the checksum of a block is wrong"), before + events(4, all)},
		{"size changed", changed(func(f []byte) { f[third+8] ^= 0x55 }), skipped(third, fourth-third, "the checksum of a block is wrong"), before + events(4, all)},
		{"large size", changed(func(f []byte) { f[third+11] = 0x7f }), skipped(third, fourth-third, fmt.Sprintf("a block says that it has %d bytes", 0x7f<<24|fourth-third-blockHeader)), before + events(4, all)},
		{"zeros", changed(func(f []byte) { clear(f[third-3 : fourth+3]) }), skipped(blocks[2], fifth-blocks[2], "the checksum of a block is wrong"), events(0, 2) + events(5, all)},
		{"two places", changed(func(f []byte) { f[third+30] ^= 1; f[fifth+30] ^= 1 }),
			fmt.Sprintf("the recording is damaged at byte %d and in another place, and %d bytes are not read: the checksum of a block is wrong", third, fourth-third+blocks[6]-fifth), before + events(4, 5) + events(6, all)},
		{"flipped and cut", changed(func(f []byte) { f[third+30] ^= 1 })[:fifth+30],
			skipped(third, fourth-third, "the checksum of a block is wrong; ") + damaged(fifth, "the file ends in the middle of a block"), before + events(4, 5)},
		{"flipped without end", changed(func(f []byte) { f[third+30] ^= 1 })[:fifth], skipped(third, fourth-third, "the checksum of a block is wrong; "+noEnd), before + events(4, 5)},
		{"block missing", without(third, fourth), skipped(third, 0, "block 4 is where block 3 must be"), before + events(4, all)},
		{"block twice", append(bytes.Clone(whole[:fourth]), whole[third:]...), skipped(fourth, fourth-third, "block 3 is where block 4 must be"), events(0, all)},
		{"another recording", append(bytes.Clone(whole[:third]), other.Bytes()...), damaged(third, "no block begins there"), before},
		{"twice", append(bytes.Clone(whole), whole...), follows(len(whole), len(whole)), 300},
		{"more", append(bytes.Clone(whole), "garbage"...), follows(len(whole), 7), 300},
		{"nothing", nil, "it is empty: nothing was recorded, or its file system was full", 0},
		{"other", []byte("#!/bin/sh and more text"), "it is not a recording of ksnoop record", 0},
		{"magic cut", whole[:5], "it ends after 5 bytes, before its first block", 0},
		{"version", append([]byte("ksnoop-record\x00\x00\x01"), whole[16:]...), "its format has version 1, and this ksnoop reads version 2: use a ksnoop of the same version as the one that recorded", 0},
		{"no block", whole[:16], damaged(16, "the file ends in the middle of a block"), 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "recording")
			require.NoError(t, os.WriteFile(path, tc.content, 0o644))
			status, stdout, stderr := runLine("replay", "-o", "json", path)
			require.Equal(t, 1, status)
			require.True(t, strings.HasSuffix(stderr, "ksnoop: read "+path+": "+tc.want+"\n"), stderr)
			require.Equal(t, tc.events, strings.Count(stdout, `{"type":"event"`))
		})
	}
}

// TestFormatIsPinned verifies that the content of recordings has not changed since this
// version of the format: another one needs another number, which older ksnoops refuse.
func TestFormatIsPinned(t *testing.T) {
	var all bytes.Buffer
	for _, run := range traceRuns(t) {
		var file bytes.Buffer
		run.record(t, &file, symbolTable(t))
		all.Write(file.Bytes()[:16])
		for _, c := range contentsOf(t, file.Bytes()) {
			fmt.Fprintf(&all, "%d %d\n%s%s", len(c.entries), len(c.words), c.entries, c.words)
		}
	}
	require.Equal(t, "6870681fd982afc277190d904c578f84cf3dbe32a702d4c4ebec9cefccb239d0", fmt.Sprintf("%x", sha256.Sum256(all.Bytes())),
		"if an older ksnoop would misread such a file, the version of the format must change with it")
}

// recordsIn returns the number of records in the entries of a block.
func recordsIn(t *testing.T, entries []byte) (n int) {
	for len(entries) > 0 {
		if entries[0] == 2 {
			n++
		}
		size, head := binary.Uvarint(entries[1:])
		require.Positive(t, head)
		entries = entries[1+head+int(size):]
	}
	return n
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
	status, stdout, stderr = runLine("info", "tr", path, cut)
	require.Equal(t, 1, status)
	require.Equal(t, 2, strings.Count(stdout, ": a recording of ksnoop 1\n"), "those beside a damaged one are shown")
	require.Regexp(t, "^ksnoop: read tr: .*\nksnoop: read .*cut: the recording is damaged at byte \\d+, .*\n$", stderr)
	status, stdout, stderr = runLine("info", "--btf", fixture.Write(t), "vfs_read", path)
	require.Zero(t, status, stderr)
	require.Regexp(t, `(?s)^\S*recording: a recording of .*\nlong vfs_read\(struct file \*file, long count\);\n$`, stdout, "recordings are first")
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
