package main

import (
	"bufio"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestExporterDeb verifies that dpkg installs the exporter beside ksnoop, and keeps its
// probe file when that was changed.
func TestExporterDeb(t *testing.T) {
	requireProgram(t, "dpkg")
	requireRoot(t)
	file := filepath.Join(everything(t), "ksnoop-exporter_"+packageTestVer+"_amd64.deb")
	root := dpkgRoot(t)
	sh(t, "dpkg", "--root="+root, "-i", filepath.Join(everything(t), "ksnoop_"+packageTestVer+"_amd64.deb"))
	sh(t, "dpkg", "--root="+root, "-i", file)
	checkExporter(t, root)
	probes := filepath.Join(root, "etc/ksnoop/node.probes")
	require.NoError(t, os.WriteFile(probes, []byte("changed\n"), 0o644))
	sh(t, "dpkg", "--root="+root, "-i", file)
	text, err := os.ReadFile(probes)
	require.NoError(t, err)
	require.Equal(t, "changed\n", string(text))
	sh(t, "dpkg", "--root="+root, "-P", "ksnoop-exporter")
	require.NoFileExists(t, probes)
	require.NoFileExists(t, filepath.Join(root, "usr/bin/ksnoop-exporter"))
	require.FileExists(t, filepath.Join(root, "usr/bin/ksnoop"))
}

// TestExporterRPM verifies the same of rpm.
func TestExporterRPM(t *testing.T) {
	requireProgram(t, "rpm")
	requireRoot(t)
	root := t.TempDir()
	rpm := func(args ...string) string {
		return sh(t, "rpm", append([]string{"--root", root, "--dbpath", "/var/lib/rpm"}, args...)...)
	}
	rpm("-i", filepath.Join(everything(t), "ksnoop-"+packageTestVer+"-1.x86_64.rpm"))
	rpm("-i", filepath.Join(everything(t), "ksnoop-exporter-"+packageTestVer+"-1.x86_64.rpm"))
	checkExporter(t, root)
	require.Equal(t, "/etc/ksnoop/node.probes\n", rpm("-q", "--configfiles", "ksnoop-exporter"))
	rpm("-e", "ksnoop-exporter")
	require.NoFileExists(t, filepath.Join(root, "usr/bin/ksnoop-exporter"))
	require.FileExists(t, filepath.Join(root, "usr/bin/ksnoop"))
}

// checkExporter examines what is installed, and runs it as its service does: as a user
// without rights, with the service's capabilities, of which none is superfluous.
func checkExporter(t *testing.T, root string) {
	for name, mode := range map[string]os.FileMode{
		"usr/bin/ksnoop-exporter": 0o755, "etc/ksnoop/node.probes": 0o644, "usr/lib/systemd/system/ksnoop-exporter.service": 0o644,
		"usr/share/doc/ksnoop-exporter/copyright": 0o644, "usr/share/doc/ksnoop-exporter/exporter.md": 0o644,
	} {
		info, err := os.Stat(filepath.Join(root, name))
		require.NoError(t, err)
		require.Equal(t, mode, info.Mode(), name)
	}
	unit := readUnit(t, filepath.Join(root, "usr/lib/systemd/system/ksnoop-exporter.service"))
	require.Equal(t, "/usr/bin/ksnoop-exporter /etc/ksnoop/node.probes", unit["ExecStart"], "at the default address, which is of this machine")
	require.Equal(t, "yes", unit["DynamicUser"])
	require.Equal(t, "CAP_BPF CAP_PERFMON", unit["AmbientCapabilities"])
	require.Equal(t, unit["AmbientCapabilities"], unit["CapabilityBoundingSet"])

	if !mayTrace(t) {
		t.Skip("the exporter is not run: that needs CAP_BPF and CAP_PERFMON")
	}
	// for any user: the directories of tests are root's alone
	place, err := os.MkdirTemp("", "ksnoop-exporter")
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(place) })
	require.NoError(t, os.Chmod(place, 0o755))
	sh(t, "cp", filepath.Join(root, "usr/bin/ksnoop-exporter"), filepath.Join(root, "etc/ksnoop/node.probes"), place)
	service := func(capabilities string) *exec.Cmd {
		return exec.Command("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--no-new-privs", "--bounding-set", "-all,"+capabilities,
			"--inh-caps", "-all,"+capabilities, "--ambient-caps", "-all,"+capabilities,
			filepath.Join(place, "ksnoop-exporter"), "--listen", "127.0.0.1:0", filepath.Join(place, "node.probes"))
	}
	url := serving(t, service("+bpf,+perfmon"))
	require.Equal(t, "ksnoop-exporter is ready\n", page(t, url+"/-/ready"))
	counted := regexp.MustCompile(`(?m)^ksnoop_node_syscalls_total\{id="\d+"\} [1-9]`)
	require.Regexp(t, counted, page(t, url+"/metrics"))
	for _, one := range []string{"+bpf", "+perfmon"} {
		out, err := service(one).CombinedOutput()
		require.Error(t, err)
		require.Contains(t, string(out), "ksnoop-exporter: ")
	}
}

// mayTrace reports whether this process has the capabilities of the service.
func mayTrace(t *testing.T) bool {
	status, err := os.ReadFile("/proc/self/status")
	require.NoError(t, err)
	_, text, ok := strings.Cut(string(status), "\nCapEff:\t")
	require.True(t, ok)
	text, _, _ = strings.Cut(text, "\n")
	has, err := strconv.ParseUint(text, 16, 64)
	require.NoError(t, err)
	const both = 1<<38 | 1<<39 // CAP_PERFMON, CAP_BPF
	return has&both == both
}

// readUnit returns the settings of a unit of systemd.
func readUnit(t *testing.T, name string) map[string]string {
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	unit := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && !strings.HasPrefix(line, "#") {
			require.NotContains(t, unit, key)
			unit[key] = value
		}
	}
	return unit
}

// serving starts an exporter, and returns its address when it serves.
func serving(t *testing.T, cmd *exec.Cmd) string {
	said, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	log := ""
	for lines := bufio.NewScanner(said); lines.Scan(); {
		log += lines.Text() + "\n"
		if _, url, ok := strings.Cut(lines.Text(), "metrics are counted, "); ok {
			go io.Copy(io.Discard, said)
			return strings.TrimSuffix(url, "/metrics")
		}
	}
	require.FailNow(t, "it does not serve", "%s", log)
	return ""
}

// page returns a page of an exporter.
func page(t *testing.T, url string) string {
	r, err := http.Get(url)
	require.NoError(t, err)
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, r.StatusCode, "%s", text)
	return string(text)
}
