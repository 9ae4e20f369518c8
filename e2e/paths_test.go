//go:build linux

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/runtime"
)

// opened is a file whose path is traced, and what must be shown.
type opened struct {
	what, want string
	fd         int
}

// boundFile is a file that is mounted on one with another name.
const boundFile = "a file bound to a file"

// testPaths compares paths of files with those that the kernel shows in /proc.
func testPaths(t *testing.T, k *kernel) {
	files := pathFiles(t)
	for _, attach := range k.twoKinds(t) {
		for _, spec := range []string{
			"vfs_read(file:path, file->f_path:path) if count == 7001",
			"vfs_read(file->f_path.dentry:path, file:path, return) if count == 7001",
			"vfs_read(file:path, buf:ustring, $comm, file->f_path.dentry->d_name.name:string, return:x) if return != 70010",
		} {
			if !k.accepts(t, attach, spec) {
				continue
			}
			t.Run(fmt.Sprint(attach, "/", spec), func(t *testing.T) { comparePaths(t, k, attach, spec, files) })
		}
	}
}

// comparePaths reads from every file and compares what a spec shows.
func comparePaths(t *testing.T, k *kernel, attach compiler.Kind, spec string, files []opened) {
	caller := newCaller(t)
	tr := k.trace(t, attach, compiler.Options{TID: caller.tid, CountCalls: true}, spec)
	caller.do(func() {
		for _, f := range files {
			unix.Read(f.fd, make([]byte, 7001))
		}
	})
	i := 0
	tr.events(t, func(ev *runtime.Event) {
		if ev.Kind == compiler.ReturnEvent {
			return
		}
		f := files[i]
		i++
		for _, v := range ev.Values {
			if v.Text != compiler.PathText {
				continue
			}
			require.Equal(t, compiler.NoFault, v.Fault, "%s: %s", f.what, v.Reason())
			if v.Walk.Mount < 0 {
				name := f.want[strings.LastIndex(f.want, "/")+1:]
				if f.what == boundFile {
					name = "plain"
				}
				require.True(t, strings.HasSuffix(string(v.Data), name), "%s alone: %q", f.what, v.Data)
				continue
			}
			require.Equal(t, f.want, string(v.Data), f.what)
			require.Equal(t, strings.HasPrefix(f.want, ".../"), v.Cut, f.what)
		}
	})
	require.Equal(t, len(files), i)
	require.Zero(t, tr.counters(t).Lost)
}

// pathFiles opens files of all kinds.
func pathFiles(t *testing.T) (files []opened) {
	dir := t.TempDir()
	must := func(err error, what ...any) { require.NoError(t, err, what...) }
	add := func(what string, fd int, err error) *opened {
		must(err, what)
		t.Cleanup(func() { unix.Close(fd) })
		link, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
		must(err)
		files = append(files, opened{what, link, fd})
		return &files[len(files)-1]
	}
	open := func(what, path string) *opened {
		must(os.MkdirAll(filepath.Dir(path), 0o755))
		fd, err := unix.Open(path, unix.O_RDWR|unix.O_CREAT|unix.O_CLOEXEC, 0o644)
		return add(what, fd, err)
	}
	mount := func(source, target, system string, flags uintptr, data string) {
		must(os.MkdirAll(target, 0o755))
		must(unix.Mount(source, target, system, flags, data), target)
		t.Cleanup(func() { unix.Unmount(target, unix.MNT_DETACH) })
	}
	open("plain", dir+"/plain")
	root, err := unix.Open("/", unix.O_RDONLY, 0)
	add("root", root, err)
	open("control bytes", dir+"/a\x01\x1b[31mb\n \"\\/\xff\xfe")
	open("long names", dir+"/"+strings.Repeat("n", 255)+"/"+strings.Repeat("m", 255)+"/"+strings.Repeat("x", 254))

	mount("tmpfs", dir+"/outer", "tmpfs", 0, "")
	mount("tmpfs", dir+"/outer/in/side", "tmpfs", 0, "")
	open("two mounts", dir+"/outer/in/side/file")
	open("bound", dir+"/outer/in/side/deep/er/file")
	mount(dir+"/outer/in/side/deep", dir+"/outer/bind", "", unix.MS_BIND, "")
	open("a bind mount", dir+"/outer/bind/er/file")
	must(os.WriteFile(dir+"/outer/onto", nil, 0o644))
	must(unix.Mount(dir+"/plain", dir+"/outer/onto", "", unix.MS_BIND, ""))
	t.Cleanup(func() { unix.Unmount(dir+"/outer/onto", unix.MNT_DETACH) })
	open(boundFile, dir+"/outer/onto")
	mount("tmpfs", dir+"/outer/in/side", "tmpfs", 0, "")
	open("a mount over a mount", dir+"/outer/in/side/file")
	open("a file in proc", "/proc/self/comm")

	if overlay := dir + "/outer/overlay"; hasFileSystem(t, "overlay") {
		for _, d := range []string{"/l", "/u", "/w"} {
			must(os.MkdirAll(dir+"/outer"+d, 0o755))
		}
		must(os.WriteFile(dir+"/outer/l/low", nil, 0o644))
		mount("overlay", overlay, "overlay", 0, fmt.Sprintf("lowerdir=%s/outer/l,upperdir=%s/outer/u,workdir=%s/outer/w", dir, dir, dir))
		open("overlay", overlay+"/low")
		open("overlay, new", overlay+"/sub/new")
	}

	f := open("renamed", dir+"/before")
	must(os.Rename(dir+"/before", dir+"/outer/../after"))
	f.want = dir + "/after"
	f = open("deleted", dir+"/outer/gone")
	must(os.Remove(dir + "/outer/gone"))
	f.want = dir + "/outer/gone (deleted)"
	fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_RDWR, 0o600)
	add("never named", fd, err)

	// What is mounted nowhere any more: the kernel shows it as if it were the root.
	mount("tmpfs", dir+"/detached", "tmpfs", 0, "")
	open("of a detached mount", dir+"/detached/sub/file")
	must(unix.Unmount(dir+"/detached", unix.MNT_DETACH))
	f = &files[len(files)-1]
	f.want, err = os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f.fd))
	must(err)

	var pipe [2]int
	must(unix.Pipe2(pipe[:], unix.O_CLOEXEC|unix.O_NONBLOCK))
	t.Cleanup(func() { unix.Close(pipe[1]) })
	add("pipe", pipe[0], nil)
	fd, err = unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK, 0)
	add("socket", fd, err)
	fd, err = unix.Eventfd(1, unix.EFD_NONBLOCK)
	add("eventfd", fd, err)
	fd, err = unix.MemfdCreate("memory", 0)
	add("memory", fd, err)

	files = append(files, chrooted(t, dir+"/outer/jail"), deepFile(t, dir, 100), deepFile(t, dir, 200))
	return files
}

// chrooted opens a file in a thread whose root is a directory. The path to show is
// that from outside.
func chrooted(t *testing.T, jail string) opened {
	require.NoError(t, os.MkdirAll(jail+"/etc", 0o755))
	require.NoError(t, os.WriteFile(jail+"/etc/passwd", nil, 0o644))
	fd, done := make(chan int), make(chan bool)
	t.Cleanup(func() { close(done) }) // until then the namespace is there
	go func() {
		goruntime.LockOSThread() // the thread ends with the goroutine
		n := -1
		if unix.Unshare(unix.CLONE_FS|unix.CLONE_NEWNS) == nil && unix.Mount("", "/", "", unix.MS_PRIVATE|unix.MS_REC, "") == nil && unix.Chroot(jail) == nil {
			n, _ = unix.Open("/etc/passwd", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		}
		fd <- n
		<-done
	}()
	n := <-fd
	require.GreaterOrEqual(t, n, 0)
	t.Cleanup(func() { unix.Close(n) })
	return opened{"in a mount namespace, behind chroot", jail + "/etc/passwd", n}
}

// deepFile opens a file below n directories. If there are many, only the last names
// are shown.
func deepFile(t *testing.T, dir string, n int) opened {
	require.NoError(t, os.MkdirAll(dir+strings.Repeat("/d", n), 0o755))
	fd, err := unix.Open(dir+strings.Repeat("/d", n)+"/file", unix.O_RDWR|unix.O_CREAT|unix.O_CLOEXEC, 0o644)
	require.NoError(t, err)
	t.Cleanup(func() { unix.Close(fd) })
	want := dir + strings.Repeat("/d", n) + "/file"
	if n >= compiler.MostNames {
		want = "..." + strings.Repeat("/d", compiler.MostNames-1) + "/file"
	}
	return opened{fmt.Sprintf("below %d directories", n), want, fd}
}

// hasFileSystem reports whether the kernel has a file system.
func hasFileSystem(t *testing.T, name string) bool {
	all, err := os.ReadFile("/proc/filesystems")
	require.NoError(t, err)
	return strings.Contains(string(all), "\t"+name+"\n")
}
