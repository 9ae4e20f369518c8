package vm

import (
	"context"
	"os"
	"path/filepath"
)

// Busybox returns the path of a static program that is a shell with its usual
// commands, from Debian's stable suite. It fetches the program once.
func (c Cache) Busybox(ctx context.Context) (string, error) {
	program := filepath.Join(c.Dir, "busybox")
	if _, err := os.Stat(program); err == nil {
		return program, nil
	}
	return program, again(ctx, func() error { return c.fetchBusybox(ctx, program) })
}

func (c Cache) fetchBusybox(ctx context.Context, program string) error {
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(c.Dir, ".fetch-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	a, err := newApt(ctx, tmp, "stable", AMD64)
	if err != nil {
		return err
	}
	root, err := a.unpack(ctx, []string{"busybox-static"})
	if err != nil {
		return err
	}
	for _, path := range []string{"usr/bin/busybox", "bin/busybox"} {
		if err = os.Rename(filepath.Join(root, path), program); err == nil {
			return nil
		}
	}
	return err
}
