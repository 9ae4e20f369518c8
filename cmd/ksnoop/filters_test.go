package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler/spec"
)

// invoke is what an action gets of a command line.
func invoke(t *testing.T, args ...string) *invocation {
	_, c, err := readArgs(args)
	require.NoError(t, err)
	return c
}

// --comm and --uid are conditions of the language.
func TestConditions(t *testing.T) {
	for _, tc := range []struct {
		args []string
		want []string
	}{
		{[]string{"a", "b(c > 1)"}, []string{"a", "b(c > 1)"}},
		{[]string{"--uid", "7", "a", "b(c > 1)"}, []string{"a if $uid == 7", "b(c > 1) if $uid == 7"}},
		{[]string{"--comm", `ba"*`, "a if b || c"}, []string{`a if $comm ~ "ba\"*" && (b || c)`}},
		{[]string{"--comm", "x", "--uid=0", "a if b"}, []string{`a if $uid == 0 && ($comm ~ "x" && b)`}},
	} {
		traces, err := parse(invoke(t, tc.args...))
		require.NoError(t, err)
		for i, trace := range traces {
			require.Equal(t, tc.want[i], trace.String())
			again, err := spec.Parse(trace.String())
			require.NoError(t, err)
			require.Equal(t, trace.String(), again.String())
		}
	}
}

func TestFindUser(t *testing.T) {
	passwd := filepath.Join(t.TempDir(), "passwd")
	require.NoError(t, os.WriteFile(passwd, []byte("root:x:0:0:root:/root:/bin/sh\nbroken\nbob:x:1000:100::/:\nodd:x:none:1::/:\n"), 0o644))
	for text, want := range map[string]uint32{"0": 0, "4294967295": 4294967295, "root": 0, "bob": 1000} {
		id, err := findUser(text, passwd)
		require.NoError(t, err, text)
		require.Equal(t, want, id)
	}
	for _, text := range []string{"x", "broken", "odd", "-1", "4294967296", ""} {
		_, err := findUser(text, passwd)
		require.ErrorContains(t, err, "there is no such user in "+passwd+"; give the number")
	}
	_, err := findUser("bob", passwd+"/none")
	require.ErrorContains(t, err, "give the number")
}

func TestCgroupMounts(t *testing.T) {
	file := filepath.Join(t.TempDir(), "mountinfo")
	require.NoError(t, os.WriteFile(file, []byte(`22 28 0:20 / /sys rw - sysfs sysfs rw
31 22 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate
32 22 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu
33 22 0:26 / /mnt/my\040groups rw - cgroup2 none rw
`), 0o644))
	mounts, err := cgroupMounts(file)
	require.NoError(t, err)
	require.Equal(t, []string{"/sys/fs/cgroup", "/mnt/my groups"}, mounts)
}
