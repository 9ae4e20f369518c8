package vm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// keyring verifies downloads. It is part of Debian's apt.
const keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"

// apt runs apt on one suite with its own state, so that the machine's sources
// and package lists do not change and no root is needed.
type apt struct {
	dir     string
	options []string
}

// newApt downloads the index of the suite for an architecture into dir, from the
// machine's own mirror.
func newApt(ctx context.Context, dir, suite string, arch Arch) (*apt, error) {
	mirror, err := debianMirror(ctx)
	if err != nil {
		return nil, err
	}
	for _, d := range []string{"state/lists/partial", "cache/archives/partial"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			return nil, err
		}
	}
	source := fmt.Sprintf("deb [arch=%s targets=Packages signed-by=%s] %s %s main\n", arch, keyring, mirror, suite)
	if err := os.WriteFile(filepath.Join(dir, "sources.list"), []byte(source), 0o644); err != nil {
		return nil, err
	}
	// Container images have apt delete the machine's archives after each update,
	// which another apt may be about to install.
	noHooks := filepath.Join(dir, "apt.conf")
	if err := os.WriteFile(noHooks, []byte("#clear APT::Update::Post-Invoke;\n#clear APT::Update::Post-Invoke-Success;\n"), 0o644); err != nil {
		return nil, err
	}
	a := &apt{dir: dir, options: []string{
		"-c", noHooks,
		"-o", "Dir::State=" + filepath.Join(dir, "state"),
		"-o", "Dir::State::status=/dev/null",
		"-o", "Dir::Cache=" + filepath.Join(dir, "cache"),
		"-o", "Dir::Etc::sourcelist=" + filepath.Join(dir, "sources.list"),
		"-o", "Dir::Etc::sourceparts=-",
		"-o", "Acquire::Languages=none",
		"-o", "Acquire::Retries=3",
		"-o", "APT::Architecture=" + string(arch),
		"-o", "APT::Sandbox::User=root", // the default user may not be allowed to enter dir
	}}
	_, err = a.run(ctx, "apt-get", "--error-on=any", "update")
	return a, err
}

// debianMirror returns the mirror in the configuration of the machine's apt.
func debianMirror(ctx context.Context) (string, error) {
	// It does not ask for the release files, because a fresh container has none.
	out, err := output(exec.CommandContext(ctx, "apt-get", "indextargets", "--no-release-info",
		"--format", "$(REPO_URI)", "Created-By: Packages"))
	if err != nil {
		return "", err
	}
	for uri := range strings.Lines(out) {
		if !strings.Contains(uri, "security") {
			return strings.TrimSpace(uri), nil
		}
	}
	return "", errors.New("find a Debian mirror: apt-get indextargets names none")
}

// packages returns the names of the suite's packages that begin with prefix.
func (a *apt) packages(ctx context.Context, prefix string) ([]string, error) {
	out, err := a.run(ctx, "apt-cache", "pkgnames", prefix)
	return strings.Fields(out), err
}

// kernel downloads and unpacks the kernel and returns a directory with only the
// files of Kernel.Dir.
func (a *apt) kernel(ctx context.Context, release string, packages []string) (string, error) {
	root, err := a.unpack(ctx, kernelPackages(release, packages))
	if err != nil {
		return "", err
	}
	kept := filepath.Join(a.dir, "kept")
	return kept, keep(ctx, root, kept)
}

// unpack downloads packages and returns the directory with their files.
func (a *apt) unpack(ctx context.Context, packages []string) (string, error) {
	if _, err := a.run(ctx, "apt-get", append([]string{"download"}, packages...)...); err != nil {
		return "", err
	}
	debs, err := filepath.Glob(filepath.Join(a.dir, "*.deb"))
	if err != nil {
		return "", err
	}
	root := filepath.Join(a.dir, "root")
	for _, deb := range debs {
		if _, err := output(exec.CommandContext(ctx, "dpkg-deb", "-x", deb, root)); err != nil {
			return "", err
		}
	}
	return root, nil
}

// kernelPackages returns the packages that hold a kernel. Since 6.19
// linux-image is empty and depends on the other two.
func kernelPackages(release string, packages []string) []string {
	var names []string
	for _, kind := range []string{"image", "binary", "modules"} {
		if name := "linux-" + kind + "-" + release; slices.Contains(packages, name) {
			names = append(names, name)
		}
	}
	return names
}

func (a *apt) run(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, append(a.options, args...)...)
	cmd.Dir = a.dir
	return output(cmd)
}

// output runs a command, with messages in English, and returns what it prints.
func output(cmd *exec.Cmd) (string, error) {
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	cmd.Env = append(os.Environ(), "LC_ALL=C", "DEBIAN_FRONTEND=noninteractive")
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("run %s: %w\n%s", cmd, err, bytes.TrimSpace(stderr.Bytes()))
	}
	return string(out), err
}
