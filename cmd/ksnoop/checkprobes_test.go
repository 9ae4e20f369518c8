package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/exit"
)

// TestCheckProbeFile verifies that every spec of a probe file is checked, under its
// name.
func TestCheckProbeFile(t *testing.T) {
	dir := checkedKernels(t)
	probes := filepath.Join(dir, "tcp.probes")
	write := func(require1, text string) {
		require.NoError(t, os.WriteFile(probes, []byte("ksnoop-probes 1\nsuite s\n"+require1+"\nrun true\n"+text), 0o644))
	}
	const text = `
assert same      same(file->flags > 5)                    never
assert renamed   any-of {account_io __account_io}(file)   at-least 1
assert balanced  inlined() ~ gone()                       difference <= 10
assert stack     -s same gone inlined                     at-least 1
metric counted   same(count)                              sum
assert whole     same(file)                               changed
assert part      roomy(room->number)                      changed
evidence same    same(file->pos)                          last 5
`
	write("require func same", text)
	status, stdout, stderr := checked(t, dir, probes)
	require.Equal(t, exit.Failure, status, stderr)
	require.Equal(t, `
  SPEC              old  new
  same              ok   ok
  renamed           ok   ok
  balanced          ok   no function
  stack             ok   no function
  whole             ok   ok
  part              ok   ok
  counted           ok   no argument
  evidence of same  ok   type

new: balanced: there is no function gone in this kernel
new: stack: there is no function gone in this kernel
new: counted: same has no argument 'count' (it has idmap, file)
new: evidence of same: struct file has no member 'pos'
`[1:], stdout)
	for _, requires := range []string{"require func gone", "require btf struct file\nrequire func gone"} {
		write(requires, text)
		status, stdout, stderr = checked(t, dir, probes)
		require.Zero(t, status, stdout+stderr)
		require.Contains(t, stdout, "  evidence of same  ok   skip\n")
		require.Contains(t, stdout, "new: counted: the file requires func gone: there is no function gone in this kernel\n")
	}
	write("require btf union file", text)
	status, stdout, _ = checked(t, dir, probes)
	require.Zero(t, status)
	require.Contains(t, stdout, "old, new: same: the file requires btf union file\n")
	write("require kernel >= 6.12", text)
	status, stdout, _ = checked(t, dir, "--kernel-features", "6.18", "--kernel-features", "6.1", "-o", "ktap", probes)
	require.Zero(t, status)
	require.Contains(t, stdout, "ok 16 check.evidence of same on new # SKIP the file requires kernel >= 6.12, and this is 6.1")
	// What test cannot measure does not fit in check either.
	write("", "assert room roomy(room) unchanged\nmetric total same(file) sum\nassert rows same(max(file->flags)) each max(file->flags) < 256\n")
	status, stdout, _ = checked(t, dir, probes)
	require.Equal(t, exit.Failure, status)
	require.Equal(t, `
  SPEC   old   new
  room   type  type
  rows   ok    type
  total  type  type

old, new: room: 'room' has 300 bytes, and at most 256 can be compared: name a part of it
new: rows: 256 does not fit 'max(file->flags)', which is unsigned char and holds 0 to 255
old, new: total: 'file' is a pointer to struct file, and numbers are counted: name what it points to
`[1:], stdout)
	// The only copy of a function is what test counts, too.
	write("", "assert copied inlined(return < 0) never\nassert either any-of {account_io inlined}() never\nassert arguments inlined(count) never\n")
	status, stdout, _ = checked(t, dir, "--symbols", dir+"/old/map", "--symbols", dir+"/new/map", probes)
	require.Equal(t, exit.Failure, status)
	require.Contains(t, stdout, `
  copied     ok   ok
  either     ok   ok
  arguments  ok   suffix only
`)
	write("", "assert\n")
	status, stdout, stderr = checked(t, dir, probes)
	require.Equal(t, exit.Usage, status)
	require.Empty(t, stdout)
	require.Contains(t, stderr, "tcp.probes:5:")
}

// TestCheckTwoProbeFiles verifies that a line is checked although another file has one of its
// name and spec, as the files may differ in what they require and what they measure.
func TestCheckTwoProbeFiles(t *testing.T) {
	dir := checkedKernels(t)
	var files []string
	for name, text := range map[string]string{
		"a": "require kernel >= 99\nassert lost same(nosuch) never\nassert shown same(file) at-least 1\n",
		"b": "assert lost same(nosuch) never\nmetric shown same(file) sum\n",
	} {
		file := filepath.Join(dir, name+".probes")
		require.NoError(t, os.WriteFile(file, []byte("ksnoop-probes 1\nsuite s\n"+text), 0o644))
		files = append(files, file)
	}
	slices.Sort(files)
	status, stdout, stderr := checked(t, dir, append(files, files[0], "--kernel-features", "6.12")...)
	require.Equal(t, exit.Failure, status, stderr)
	require.Contains(t, stdout, `
  lost       skip         skip
  shown      skip         skip
  lost (2)   no argument  no argument
  shown (2)  type         type
`)
}

// TestCheckCommentedProbeFile verifies that a probe file is known by its first statement.
func TestCheckCommentedProbeFile(t *testing.T) {
	dir := checkedKernels(t)
	file := filepath.Join(dir, "tcp.txt")
	require.NoError(t, os.WriteFile(file, []byte("\ufeff# SPDX-License-Identifier: GPL-2.0\n\nksnoop-probes 1\nsuite s\nassert known same() never\n"), 0o644))
	status, stdout, stderr := checked(t, dir, file)
	require.Zero(t, status, stdout+stderr)
	require.Contains(t, stdout, "  known  ok   ok\n")
}
