package vm

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// modules lists the modules that tests load.
var modules = []string{"dummy", "loop", "overlay"}

// keep moves the kernel image and the modules that tests load out of an unpacked
// package.
func keep(ctx context.Context, root, to string) error {
	if err := os.Mkdir(to, 0o755); err != nil {
		return err
	}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		module, compression, isModule := strings.Cut(d.Name(), ".ko")
		switch {
		case strings.HasPrefix(d.Name(), "vmlinuz"):
			return os.Rename(path, filepath.Join(to, "vmlinuz"))
		case isModule && slices.Contains(modules, module):
			return keepModule(ctx, path, compression, filepath.Join(to, module+".ko"))
		}
		return nil
	})
	if err != nil {
		return err
	}
	return complete(to)
}

// keepModule moves a module and decompresses it, because the guest has no
// program for that, and kernels before 5.17 cannot do it. It uses apt's own
// decompressor, which is present wherever apt is, unlike xz.
func keepModule(ctx context.Context, path, compression, to string) error {
	if compression == "" {
		return os.Rename(path, to)
	}
	out, err := output(exec.CommandContext(ctx, "/usr/lib/apt/apt-helper", "cat-file", path))
	if err != nil {
		return err
	}
	return os.WriteFile(to, []byte(out), 0o644)
}

// complete checks that the package had all files that are needed.
func complete(dir string) error {
	want := []string{"vmlinuz"}
	for _, m := range modules {
		want = append(want, m+".ko")
	}
	for _, name := range want {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("unpack kernel: %w", err)
		}
	}
	return nil
}
