package vm

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// A Kernel is an unpacked kernel.
type Kernel struct {
	Release string // as uname -r prints it
	Arch    Arch
	Dir     string // holds vmlinuz and NAME.ko for the modules that tests load
}

// A Cache keeps unpacked kernels:
//
//	RELEASE/vmlinuz, RELEASE/NAME.ko   complete as soon as the directory exists
//	RELEASE/btf                        the kernel's types, once asked for
//	RELEASE/vmlinux                    the kernel without compression, once booted so
//	headers-RELEASE                    what modules for the kernel are built with
//	SUITE-ARCH                         the release last chosen; its age says when apt was asked
//	busybox                            a shell with its usual commands
//
// Several processes may share one.
type Cache struct {
	Dir string
}

// refresh is how long a suite's choice of kernel is valid before apt is asked
// again.
const refresh = 24 * time.Hour

// NewCache returns the user's cache, or one in the directory for temporary
// files if the user has no home directory.
func NewCache() Cache {
	dir, err := os.UserCacheDir()
	if err != nil {
		dir = os.TempDir()
	}
	// Kernels unpacked for another list of modules would lack some.
	return Cache{Dir: filepath.Join(dir, "ksnoop", "kernels", strings.Join(modules, "+"))}
}

// tries is how often a mirror is asked that fails, a second apart.
const tries = 3

// Kernel returns the suite's kernel. It asks apt at most once a day. If apt
// fails each time, it returns the kernel from an earlier day.
func (c Cache) Kernel(ctx context.Context, s Suite) (Kernel, error) {
	cached, age, err := c.lookup(s)
	if err == nil && age < refresh {
		return cached, nil
	}
	var fetched Kernel
	fetchErr := again(ctx, func() (err error) {
		fetched, err = c.fetch(ctx, s)
		return err
	})
	switch {
	case fetchErr == nil:
		return fetched, c.choose(s, fetched.Release)
	case err == nil:
		return cached, c.choose(s, cached.Release)
	}
	return Kernel{}, fmt.Errorf("fetch a kernel for %s from %s: %w", s.Arch, s.Name, fetchErr)
}

// again calls fetch until it succeeds, tries times at most, and returns its last error.
func again(ctx context.Context, fetch func() error) error {
	err := fetch()
	for n := 1; err != nil && ctx.Err() == nil && n < tries; n++ {
		time.Sleep(time.Second)
		err = fetch()
	}
	return err
}

// lookup returns the kernel last chosen for the suite and how long ago that
// was.
func (c Cache) lookup(s Suite) (Kernel, time.Duration, error) {
	path := filepath.Join(c.Dir, s.choice())
	release, err := os.ReadFile(path)
	if err != nil {
		return Kernel{}, 0, err
	}
	stat, err := os.Stat(path)
	if err != nil {
		return Kernel{}, 0, err
	}
	k := c.kernel(s, strings.TrimSpace(string(release)))
	_, err = os.Stat(k.image())
	return k, time.Since(stat.ModTime()), err
}

// choose records the suite's kernel and the time.
func (c Cache) choose(s Suite, release string) error {
	tmp, err := os.CreateTemp(c.Dir, ".choose-")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, err = fmt.Fprintln(tmp, release)
	if err := errors.Join(err, tmp.Close()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), filepath.Join(c.Dir, s.choice()))
}

// fetch asks apt for the newest kernel and unpacks it unless the cache has it.
func (c Cache) fetch(ctx context.Context, s Suite) (Kernel, error) {
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return Kernel{}, err
	}
	tmp, err := os.MkdirTemp(c.Dir, ".fetch-")
	if err != nil {
		return Kernel{}, err
	}
	defer os.RemoveAll(tmp)
	a, err := newApt(ctx, tmp, s.Name, s.Arch)
	if err != nil {
		return Kernel{}, err
	}
	packages, err := a.packages(ctx, "linux-")
	if err != nil {
		return Kernel{}, err
	}
	release, err := s.newest(packages)
	if err != nil {
		return Kernel{}, err
	}
	k := c.kernel(s, release)
	if _, err := os.Stat(k.image()); err == nil {
		return k, nil
	}
	unpacked, err := a.kernel(ctx, release, packages)
	if err != nil {
		return Kernel{}, err
	}
	// If the rename loses a race against another process, an equal kernel is
	// already there.
	if err := os.Rename(unpacked, k.Dir); err != nil && !errors.Is(err, fs.ErrExist) {
		return Kernel{}, err
	}
	return k, nil
}

func (c Cache) kernel(s Suite, release string) Kernel {
	return Kernel{Release: release, Arch: s.Arch, Dir: filepath.Join(c.Dir, release)}
}

func (k Kernel) image() string {
	return filepath.Join(k.Dir, "vmlinuz")
}

// modules returns the kernel's modules as files below /lib/modules in the
// guest.
func (k Kernel) modules() ([]File, error) {
	paths, err := filepath.Glob(filepath.Join(k.Dir, "*.ko"))
	var files []File
	for _, p := range paths {
		files = append(files, File{Path: "lib/modules/" + filepath.Base(p), Source: p})
	}
	return files, err
}
