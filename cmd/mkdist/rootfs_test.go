package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/goreleaser/nfpm/v2/deb"
	"github.com/stretchr/testify/require"
)

// installCommand returns the command of docs/install.md that begins with a word, for the
// test's packages.
func installCommand(t *testing.T, word string) string {
	page, err := os.ReadFile("../../docs/install.md")
	require.NoError(t, err)
	command := regexp.MustCompile(`(?m)^` + word + ` .*ksnoop.V.*$`).FindString(string(page))
	require.NotEmpty(t, command)
	version := packageTestVer
	if word == "tar" {
		version = testVersion
	}
	return strings.NewReplacer("ksnoop-V", "ksnoop-"+version, "ksnoop_V", "ksnoop_"+version).Replace(command)
}

// inDebian is a script that runs another one in a copy of this machine's root file
// system: what it writes is only in the memory of a mount namespace. Its first argument
// is an empty directory, the others are files for the other script.
const inDebian = `
mount -t tmpfs none "$1"
root=$1/root; mkdir "$1/upper" "$1/work" "$root"
mount -t overlay -o lowerdir=/,upperdir="$1/upper",workdir="$1/work" none "$root"
mount -t proc none "$root/proc"; mount --rbind /dev "$root/dev"
shift; cp "$@" "$root/mnt"
exec chroot "$root" sh -exc "cd /mnt; $SCRIPT"
`

// TestInDebian follows docs/install.md in the root file system of Debian, offline: apt
// installs the deb beside libbpf-tools, which has a ksnoop, too, and removes it, and tar
// unpacks the archive.
func TestInDebian(t *testing.T) {
	requireRoot(t)
	for _, name := range []string{"apt-get", "unshare"} {
		requireProgram(t, name)
	}
	if exec.Command("unshare", "--mount", "sh", "-ec", `mount -t tmpfs none /mnt; mkdir /mnt/u /mnt/w /mnt/m
		mount -t overlay -o lowerdir=/,upperdir=/mnt/u,workdir=/mnt/w none /mnt/m`).Run() != nil {
		t.Skip("this machine does not let root mount an overlay")
	}
	script := strings.Join([]string{
		"export DEBIAN_FRONTEND=noninteractive",
		"dpkg -i libbpf-tools*.deb", // which has a ksnoop, too
		strings.Replace(installCommand(t, "apt"), "install", "install -y", 1),
		"dpkg -V ksnoop; /usr/bin/ksnoop --version",
		"test -s /usr/share/man/man8/ksnoop.8.gz; test -s /usr/share/doc/ksnoop/docs/README.md",
		"apt-get remove -y ksnoop; test ! -e /usr/bin/ksnoop; test -s /usr/sbin/ksnoop",
		installCommand(t, "tar"), "/usr/local/bin/ksnoop --version",
	}, "\n")
	dir := everything(t)
	cmd := exec.Command("unshare", "--mount", "--net", "sh", "-ec", inDebian, "sh", t.TempDir(), otherPackage(t, "deb", deb.Default),
		filepath.Join(dir, "ksnoop_"+packageTestVer+"_amd64.deb"), filepath.Join(dir, "ksnoop-"+testVersion+"-linux-amd64.tar.gz"))
	cmd.Env = append(os.Environ(), "SCRIPT="+script)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Equal(t, 2, strings.Count(string(out), "\nksnoop version "+testVersion+"\n"), "%s", out)
}

// TestInFedora follows docs/install.md in a root file system that dnf makes, as Fedora has
// it: with its package manager, its place of the database and its layout, where /bin and
// /sbin are those of /usr. It holds no other package, as ksnoop needs none, and there is
// no network.
func TestInFedora(t *testing.T) {
	requireRoot(t)
	for _, name := range []string{"dnf", "rpm", "unshare"} {
		requireProgram(t, name)
	}
	root, home := t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(home, ".rpmmacros"), []byte("%_dbpath /usr/lib/sysimage/rpm\n"), 0o644))
	t.Setenv("HOME", home)
	require.NoError(t, os.MkdirAll(filepath.Join(root, "usr/bin"), 0o755))
	for _, name := range []string{"bin", "sbin", "usr/sbin"} {
		require.NoError(t, os.Symlink(filepath.Join("/", "usr/bin"), filepath.Join(root, name)))
	}
	dnf := func(command string) {
		options := "unshare --net dnf -y --installroot=" + root + " --releasever=42 --disablerepo=* --setopt=cachedir=" + home + " --nogpgcheck"
		args := strings.Fields(strings.Replace(command, "dnf", options, 1))
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Dir = everything(t)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s\n%s", cmd, out)
	}
	dnf(installCommand(t, "dnf"))
	require.Equal(t, "ksnoop version "+testVersion+"\n", sh(t, "chroot", root, "/bin/ksnoop", "--version"))
	checkInstalled(t, filepath.Join(root, "usr"), "ksnoop.8.gz")
	sh(t, "rpm", "--root", root, "-V", "ksnoop")
	dnf("dnf remove ksnoop")
	require.NoFileExists(t, filepath.Join(root, "usr/bin/ksnoop"))
}
