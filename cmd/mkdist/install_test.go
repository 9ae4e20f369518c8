package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/goreleaser/nfpm/v2"
	"github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
	"github.com/goreleaser/nfpm/v2/rpm"
	"github.com/stretchr/testify/require"
)

// checkInstalled runs the program below a prefix and examines the files installed
// with it.
func checkInstalled(t *testing.T, prefix, manual string) {
	program := filepath.Join(prefix, "bin/ksnoop")
	require.Equal(t, "ksnoop version "+testVersion+"\n", sh(t, program, "--version"))
	require.Contains(t, sh(t, program, "compile", "--btf", kernelTypes(t), "--attach", "kprobe", "vfs_read(count > 4096)"), "= *(u64 *)(r6 + 16)")
	for _, name := range []string{
		"share/man/man8/" + manual, "share/bash-completion/completions/ksnoop", "share/zsh/site-functions/_ksnoop",
		"share/fish/vendor_completions.d/ksnoop.fish", "share/doc/ksnoop/copyright", "share/doc/ksnoop/docs/spec.md", "share/doc/ksnoop/docs/trace.schema.json",
		"share/doc/ksnoop/docs/kubernetes/pod.yaml",
	} {
		info, err := os.Stat(filepath.Join(prefix, name))
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o644), info.Mode(), name)
		require.NotZero(t, info.Size(), name)
	}
}

func TestTarball(t *testing.T) {
	prefix := t.TempDir()
	sh(t, "tar", "-C", prefix, "-xzf", filepath.Join(everything(t), "ksnoop-"+testVersion+"-linux-amd64.tar.gz"), "--strip-components=1")
	checkInstalled(t, prefix, "ksnoop.8")
}

// TestDeb verifies that dpkg installs the package, alone and beside libbpf-tools, and
// removes it.
func TestDeb(t *testing.T) {
	requireProgram(t, "dpkg")
	requireRoot(t)
	file := filepath.Join(everything(t), "ksnoop_"+packageTestVer+"_amd64.deb")
	root := dpkgRoot(t)
	sh(t, "dpkg", "--root="+root, "-i", file)
	checkInstalled(t, filepath.Join(root, "usr"), "ksnoop.8.gz")
	require.Contains(t, sh(t, "dpkg", "--root="+root, "-s", "ksnoop"), "Version: "+packageTestVer+"\n")

	root = dpkgRoot(t)
	sh(t, "dpkg", "--root="+root, "-i", otherPackage(t, "deb", deb.Default))
	sh(t, "dpkg", "--root="+root, "-i", file)
	checkInstalled(t, filepath.Join(root, "usr"), "ksnoop.8.gz")
	require.FileExists(t, filepath.Join(root, "usr/sbin/ksnoop"))
	sh(t, "dpkg", "--root="+root, "-P", "ksnoop")
	require.NoFileExists(t, filepath.Join(root, "usr/bin/ksnoop"))
	require.FileExists(t, filepath.Join(root, "usr/sbin/ksnoop"))
}

func dpkgRoot(t *testing.T) string {
	root := t.TempDir()
	admin := filepath.Join(root, "var/lib/dpkg")
	require.NoError(t, os.MkdirAll(filepath.Join(admin, "info"), 0o755))
	require.NoError(t, os.MkdirAll(filepath.Join(admin, "updates"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(admin, "status"), nil, 0o644))
	return root
}

// TestRPM verifies that rpm installs the package, alone and beside a package that has
// /usr/sbin/ksnoop.
func TestRPM(t *testing.T) {
	requireProgram(t, "rpm")
	requireRoot(t)
	file := filepath.Join(everything(t), "ksnoop-"+packageTestVer+"-1.x86_64.rpm")
	root := t.TempDir()
	sh(t, "rpm", "--root", root, "--dbpath", "/var/lib/rpm", "-i", file)
	checkInstalled(t, filepath.Join(root, "usr"), "ksnoop.8.gz")
	require.Equal(t, "ksnoop-"+packageTestVer+"-1.x86_64\n", sh(t, "rpm", "--root", root, "--dbpath", "/var/lib/rpm", "-q", "ksnoop"))

	root = t.TempDir()
	sh(t, "rpm", "--root", root, "--dbpath", "/var/lib/rpm", "-i", otherPackage(t, "rpm", rpm.DefaultRPM))
	sh(t, "rpm", "--root", root, "--dbpath", "/var/lib/rpm", "-i", file)
	checkInstalled(t, filepath.Join(root, "usr"), "ksnoop.8.gz")
	require.FileExists(t, filepath.Join(root, "usr/sbin/ksnoop"))
}

// requireRoot skips the test for other users, who cannot install a package as root's.
func requireRoot(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("package managers install as root")
	}
}

// otherPackage returns a libbpf-tools package with only its ksnoop.
func otherPackage(t *testing.T, kind string, packager nfpm.Packager) string {
	program := filepath.Join(t.TempDir(), "ksnoop")
	require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\n"), 0o755))
	info := nfpm.WithDefaults(&nfpm.Info{
		Name: "libbpf-tools", Arch: "amd64", Platform: "linux", Version: "0.26.0", Maintainer: "nobody", Description: "other tools",
		Overridables: nfpm.Overridables{Contents: files.Contents{{Source: program, Destination: "/usr/sbin/ksnoop"}}},
	})
	dir := t.TempDir()
	require.NoError(t, write(dir, kind, packager, info))
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	require.Len(t, names, 1)
	return names[0]
}
