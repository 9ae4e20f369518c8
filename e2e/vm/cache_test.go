package vm

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestFailingMirror checks that a mirror that fails is asked again, that then the
// kernel of an earlier day serves, and that without one the error says what failed.
func TestFailingMirror(t *testing.T) {
	suite := Suite{Name: "trixie", Line: "6.12", Arch: AMD64}
	for _, test := range []struct {
		name     string
		failures int    // of apt-get update
		cached   string // the release chosen two days ago
		want     string
		wantErr  string
	}{
		{name: "fails once", failures: 1, want: "6.12.9-cloud-amd64"},
		{name: "fails twice, an older kernel is there", failures: 2, cached: "6.12.8-cloud-amd64", want: "6.12.9-cloud-amd64"},
		{name: "is down, an older kernel is there", failures: 99, cached: "6.12.8-cloud-amd64", want: "6.12.8-cloud-amd64"},
		{name: "is down", failures: 99, wantErr: "fetch a kernel for amd64 from trixie: run "},
	} {
		t.Run(test.name, func(t *testing.T) {
			calls := fakeApt(t, test.failures)
			c := Cache{Dir: t.TempDir()}
			if test.cached != "" {
				k := c.kernel(suite, test.cached)
				require.NoError(t, os.Mkdir(k.Dir, 0o755))
				require.NoError(t, os.WriteFile(k.image(), nil, 0o644))
				require.NoError(t, c.choose(suite, test.cached))
				old := time.Now().Add(-2 * refresh)
				require.NoError(t, os.Chtimes(filepath.Join(c.Dir, suite.choice()), old, old))
			}
			k, err := c.Kernel(t.Context(), suite)
			asked, readErr := os.ReadFile(calls)
			require.NoError(t, readErr)
			require.Len(t, asked, min(test.failures+1, tries))
			if test.wantErr != "" {
				require.ErrorContains(t, err, test.wantErr)
				require.ErrorContains(t, err, "the mirror is down")
				return
			}
			require.NoError(t, err)
			require.Equal(t, test.want, k.Release)
			require.FileExists(t, k.image())
		})
	}
}

// fakeApt puts commands in front of all others that answer as apt's do for a mirror
// with one kernel, but for the first updates, which fail. It returns the path of a
// file that gets a byte at each update.
func fakeApt(t *testing.T, failures int) (calls string) {
	dir := t.TempDir()
	calls = filepath.Join(dir, "calls")
	for name, text := range map[string]string{
		"apt-get": fmt.Sprintf(`case "$*" in
*indextargets*) echo http://127.0.0.1/debian;;
*update*) printf u >> %[1]s; [ "$(wc -c < %[1]s)" -gt %[2]d ] || { echo the mirror is down >&2; exit 100; };;
*download*) : > kernel.deb;;
esac`, calls, failures),
		"apt-cache": "echo linux-image-6.12.9-cloud-amd64",
		"dpkg-deb":  `mkdir -p "$3" && cd "$3" && : > vmlinuz-6.12.9 && for m in dummy loop overlay; do : > $m.ko; done`,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+text+"\n"), 0o755))
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return calls
}
