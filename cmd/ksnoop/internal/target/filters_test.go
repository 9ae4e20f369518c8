package target

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler/spec"
)

// TestConditions verifies that --comm and --uid become conditions of the language.
func TestConditions(t *testing.T) {
	comm := func(glob string) spec.Cond {
		cond, err := CommCondition("comm", glob)
		require.NoError(t, err)
		return cond
	}
	user := func(text string) spec.Cond {
		cond, err := UserCondition("uid", text, os.DevNull)
		require.NoError(t, err)
		return cond
	}
	for _, tc := range []struct {
		conds []spec.Cond
		specs []string
		want  []string
	}{
		{nil, []string{"a", "b(c > 1)"}, []string{"a", "b(c > 1)"}},
		{[]spec.Cond{user("7")}, []string{"a", "b(c > 1)"}, []string{"a if $uid == 7", "b(c > 1) if $uid == 7"}},
		{[]spec.Cond{comm(`ba"*`)}, []string{"a if b || c"}, []string{`a if $comm ~ "ba\"*" && (b || c)`}},
		{[]spec.Cond{comm("x"), user("0")}, []string{"a if b"}, []string{`a if $uid == 0 && ($comm ~ "x" && b)`}},
	} {
		traces, err := (&Specs{Texts: tc.specs, Conds: tc.conds}).Parse()
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
		id, err := findUser("uid", text, passwd)
		require.NoError(t, err, text)
		require.Equal(t, want, id)
	}
	for _, text := range []string{"x", "broken", "odd", "-1", "4294967296", ""} {
		_, err := findUser("uid", text, passwd)
		require.ErrorContains(t, err, "there is no such user in "+passwd+"; give the number")
	}
	_, err := findUser("uid", "bob", passwd+"/none")
	require.ErrorContains(t, err, "give the number")
}
