package main

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// The version of the test's packages, as git describe prints it and as packages have
// it.
const (
	testVersion    = "v1.2.3-4-gabcdef0"
	packageTestVer = "1.2.3+4.gabcdef0"
)

var scratch string // directory shared by the tests

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "mkdist-test-")
	if err != nil {
		panic(err)
	}
	scratch = dir
	status := m.Run()
	os.RemoveAll(dir)
	os.Exit(status)
}

// made makes everything once from a copy of the sources, and returns the directory.
var made = sync.OnceValues(func() (string, error) { return makeIn(filepath.Join(scratch, "one")) })

// makeIn copies the sources to a directory and makes everything there.
func makeIn(dir string, environment ...string) (string, error) {
	if err := copySources("../..", dir); err != nil {
		return "", err
	}
	cmd := exec.Command("make", "dist", "image", "VERSION="+testVersion, "SOURCE_DATE_EPOCH=1700000000")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), environment...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", &exec.Error{Name: string(out), Err: err}
	}
	return filepath.Join(dir, "dist"), nil
}

// copySources copies everything but the history and the built files.
func copySources(from, to string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		switch {
		case d.IsDir() && (name == ".git" || name == "dist"):
			return fs.SkipDir
		case d.IsDir():
			return os.MkdirAll(filepath.Join(to, name), 0o755)
		case !d.Type().IsRegular() || name == "ksnoop":
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, name), content, 0o644)
	})
}

// everything returns the directory with the results.
func everything(t *testing.T) string {
	dir, err := made()
	require.NoError(t, err)
	return dir
}

// sh runs a command and returns its output.
func sh(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	require.NoError(t, err, "%s %v: %s", name, args, out)
	return string(out)
}

// requireProgram skips a test if a program is missing. In CI it fails instead, as a
// skip would hide that nothing is tested.
func requireProgram(t *testing.T, name string) {
	_, err := exec.LookPath(name)
	if err != nil && os.Getenv("CI") != "true" {
		t.Skip(err)
	}
	require.NoError(t, err)
}

// TestReproducible verifies that another directory, time and user give the same
// bytes.
func TestReproducible(t *testing.T) {
	one := everything(t)
	two, err := makeIn(filepath.Join(scratch, "another-directory"), "TZ=Asia/Tokyo", "LC_ALL=C", "USER=other", "GOAMD64=v3", "GOFLAGS=-buildvcs=auto")
	require.NoError(t, err)
	want, got := contents(t, one), contents(t, two)
	require.Len(t, got, len(want))
	for name, content := range want {
		require.True(t, bytes.Equal(content, got[name]), "%s differs", name)
	}
	var names []string
	for name := range want {
		if !strings.HasPrefix(name, "image/blobs") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	require.Equal(t, []string{
		"SHA256SUMS", "image/index.json", "image/oci-layout",
		"ksnoop-" + packageTestVer + "-1.aarch64.rpm", "ksnoop-" + packageTestVer + "-1.x86_64.rpm",
		"ksnoop-exporter-" + packageTestVer + "-1.aarch64.rpm", "ksnoop-exporter-" + packageTestVer + "-1.x86_64.rpm",
		"ksnoop-exporter-linux-amd64", "ksnoop-exporter-linux-arm64",
		"ksnoop-exporter-" + testVersion + "-linux-amd64.cdx.json", "ksnoop-exporter-" + testVersion + "-linux-arm64.cdx.json",
		"ksnoop-exporter_" + packageTestVer + "_amd64.deb", "ksnoop-exporter_" + packageTestVer + "_arm64.deb",
		"ksnoop-linux-amd64", "ksnoop-linux-arm64", "ksnoop-" + testVersion + "-image.tar",
		"ksnoop-" + testVersion + "-linux-amd64.cdx.json", "ksnoop-" + testVersion + "-linux-amd64.tar.gz",
		"ksnoop-" + testVersion + "-linux-arm64.cdx.json", "ksnoop-" + testVersion + "-linux-arm64.tar.gz",
		"ksnoop_" + packageTestVer + "_amd64.deb", "ksnoop_" + packageTestVer + "_arm64.deb",
	}, names)
}

// contents returns the content of all files of a directory.
func contents(t *testing.T, dir string) map[string][]byte {
	all := map[string][]byte{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		all[name], err = os.ReadFile(path)
		return err
	}))
	return all
}

// TestSums verifies that the checksums are those of all files.
func TestSums(t *testing.T) {
	requireProgram(t, "sha256sum")
	cmd := exec.Command("sha256sum", "-c", "SHA256SUMS")
	cmd.Dir = everything(t)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Equal(t, 19, strings.Count(string(out), ": OK\n"))
}

// TestMaterials verifies that the bills of materials name the modules in the binaries,
// with versions.
func TestMaterials(t *testing.T) {
	for program, module := range map[string]string{
		"ksnoop": "github.com/ksnoop/ksnoop", "ksnoop-exporter": "github.com/ksnoop/ksnoop/cmd/ksnoop-exporter",
	} {
		text, err := os.ReadFile(filepath.Join(everything(t), program+"-"+testVersion+"-linux-arm64.cdx.json"))
		require.NoError(t, err)
		var bill struct {
			BOMFormat string
			Metadata  struct {
				Component struct{ Name, Version string }
			}
			Components []struct {
				Name, Version, PURL string
				Pedigree            struct {
					Patches []struct {
						Type string
						Diff struct{ Text struct{ Content string } }
					}
				}
			}
		}
		require.NoError(t, json.Unmarshal(text, &bill))
		require.Equal(t, "CycloneDX", bill.BOMFormat)
		require.Equal(t, module, bill.Metadata.Component.Name)
		require.Equal(t, testVersion, bill.Metadata.Component.Version)
		versions := map[string]string{}
		for _, c := range bill.Components {
			versions[c.Name] = c.Version
			if patches := c.Pedigree.Patches; c.Name == "github.com/urfave/cli/v2" && program == "ksnoop" {
				require.Contains(t, c.PURL, "pkg:golang/github.com/urfave/cli/v2@v2.")
				require.Len(t, patches, 1)
				require.Equal(t, "unofficial", patches[0].Type)
				require.Contains(t, patches[0].Diff.Text.Content, "\n-var HelpPrinterCustom helpPrinterCustom = printHelpCustom\n+var HelpPrinterCustom helpPrinterCustom\n")
			} else {
				require.Empty(t, patches)
			}
		}
		require.NotContains(t, string(text), ".build/")
		require.NotEmpty(t, versions["std"])
		for line := range strings.Lines(sh(t, "go", "version", "-m", filepath.Join(everything(t), program+"-linux-arm64"))) {
			if f := strings.Fields(line); len(f) > 2 && f[0] == "dep" && !strings.HasPrefix(f[1], "github.com/ksnoop/") {
				require.Equal(t, f[2], versions[f[1]], f[1])
			}
		}
		require.NotEmpty(t, versions["github.com/cilium/ebpf"])
	}
}
