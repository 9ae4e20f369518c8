package vm

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Headers returns the directory in which the packages are unpacked that modules for a
// kernel of the suite are built with. It fetches them once.
func (c Cache) Headers(ctx context.Context, s Suite, k Kernel) (string, error) {
	dir := filepath.Join(c.Dir, "headers-"+k.Release)
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	return dir, again(ctx, func() error { return c.fetchHeaders(ctx, s, k, dir) })
}

func (c Cache) fetchHeaders(ctx context.Context, s Suite, k Kernel, dir string) error {
	tmp, err := os.MkdirTemp(c.Dir, ".fetch-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	a, err := newApt(ctx, tmp, s.Name, s.Arch)
	if err != nil {
		return err
	}
	root, err := a.unpack(ctx, []string{"linux-headers-" + k.Release, "linux-headers-" + common(k.Release), "linux-kbuild-" + s.Line})
	if err != nil {
		return err
	}
	err = os.Rename(root, dir)
	if errors.Is(err, fs.ErrExist) {
		return nil // another process was faster
	}
	return err
}

// common returns the name of the headers that all kernels of a release share.
func common(release string) string { return flavour.ReplaceAllString(release, "-common") }

// BuildModule builds the module in source, a directory with NAME.c and Kbuild, for a
// kernel whose headers have been fetched. It returns the path of a file below dir, with the
// module's types. The compiler must be that of the kernel.
func (k Kernel) BuildModule(ctx context.Context, headers, source, dir string) (string, error) {
	name := filepath.Base(source)
	for _, file := range []string{name + ".c", "Kbuild"} {
		text, err := os.ReadFile(filepath.Join(source, file))
		if err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(dir, file), text, 0o644); err != nil {
			return "", err
		}
	}
	types, err := k.Types()
	if err != nil {
		return "", err
	}
	sources := filepath.Join(headers, "usr/src/linux-headers-")
	module := filepath.Join(dir, name+".ko")
	// The makefile of the headers names that of the common ones by its place in the
	// system. Without a file vmlinux there, the makefile adds no types.
	build := exec.CommandContext(ctx, "make", "-C", sources+k.Release, "-f", sources+common(k.Release)+"/Makefile", "M="+dir, "modules")
	out, err := build.CombinedOutput()
	if err == nil && strings.Contains(string(out), "warning:") {
		err = errors.New("it warns")
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", build, err, out)
	}
	describe := exec.CommandContext(ctx, "pahole", "-J", "--btf_base", types, module)
	describe.Env = append(os.Environ(), "LLVM_OBJCOPY=objcopy")
	if out, err := describe.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", describe, err, out)
	}
	return module, nil
}
