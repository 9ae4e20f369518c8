package vm

import (
	"io"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/cavaliergopher/cpio"
)

// A File is an executable file of the guest's initramfs.
type File struct {
	Path   string   // in the guest, without the leading slash
	Source string   // on the host
	Names  []string // more paths, as hard links
}

// writeInitrd writes an initramfs of the files and their parent directories. Its
// bytes are a function of theirs: it has no times, and paths in order.
func writeInitrd(name string, files []File) (err error) {
	out, err := os.Create(name)
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := out.Close(); err == nil {
			err = closeErr
		}
	}()
	files = slices.SortedFunc(slices.Values(files), func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	w := cpio.NewWriter(out)
	made := map[string]bool{".": true}
	for _, f := range files {
		if err := writeDirs(w, path.Dir(f.Path), made); err != nil {
			return err
		}
		if err := writeFile(w, f); err != nil {
			return err
		}
	}
	return w.Close()
}

// writeDirs writes a directory after its parents.
func writeDirs(w *cpio.Writer, dir string, made map[string]bool) error {
	if made[dir] {
		return nil
	}
	if err := writeDirs(w, path.Dir(dir), made); err != nil {
		return err
	}
	made[dir] = true
	return w.WriteHeader(&cpio.Header{Name: dir, Mode: cpio.TypeDir | 0o755})
}

func writeFile(w *cpio.Writer, f File) error {
	in, err := os.Open(f.Source)
	if err != nil {
		return err
	}
	defer in.Close()
	stat, err := in.Stat()
	if err != nil {
		return err
	}
	h := cpio.Header{Name: f.Path, Mode: cpio.TypeReg | 0o755, Size: stat.Size(), Links: 1 + len(f.Names)}
	if err := w.WriteHeader(&h); err != nil {
		return err
	}
	if _, err := io.Copy(w, in); err != nil {
		return err
	}
	h.Size = 0 // the kernel finds the content by the inode that the writer has chosen
	for _, h.Name = range f.Names {
		if err := w.WriteHeader(&h); err != nil {
			return err
		}
	}
	return nil
}
