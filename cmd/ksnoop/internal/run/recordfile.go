package run

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/exit"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/target"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/term"
	"github.com/ksnoop/ksnoop/runtime/recording"
)

// FileOptions selects where Record writes.
type FileOptions struct {
	Name   string // - is standard output
	Rotate uint64 // size in bytes from which on the next file begins, or 0
	Keep   int    // number of files before the current one that are kept, or 0 for the default
}

// FileSize parses the value of --rotate.
func FileSize(option, text string) (uint64, error) {
	digits := strings.TrimRight(text, "KMG")
	shift, ok := map[string]int{"": 0, "K": 10, "M": 20, "G": 30}[text[len(digits):]]
	n, err := strconv.ParseUint(digits, 10, 64)
	if least := uint64(1 << 16); err != nil || !ok || n > math.MaxInt64>>shift || n<<shift < least {
		return 0, exit.Usagef("--%s is %q: it must be a number of bytes such as 64K, 100M or 2G, and 64K at least", option, text)
	}
	return n << shift, nil
}

// check returns an error unless the options say where to record these specs.
func (o *FileOptions) check(specs *target.Specs) error {
	switch {
	case o.Name == "" && len(specs.Texts) > 0:
		return exit.Usagef("record writes to no file: name it, as in ksnoop record -w FILE %s", specs.Texts[0])
	case o.Name == "":
		return exit.Usagef("record writes to no file: name it, as in ksnoop record -w FILE -f %s", specs.Files[0])
	case o.Keep > 0 && o.Rotate == 0:
		return exit.Usagef("--keep is for the files of --rotate: give their size, as in --rotate 100M")
	}
	return nil
}

// defaultKeep is the number of files before the current one that are kept by default.
const defaultKeep = 9

// recordFile is the file that Record writes to. With Rotate, FILE is the current one,
// FILE.1 the one before it, and so on.
type recordFile struct {
	FileOptions
	io.Writer
	out  io.Writer // where results go: a signal that ends writes there ends those to a pipe, too
	file *os.File  // nil for standard output
	part int       // number of files before this one
}

// openFile checks the options. The file is not created yet.
func openFile(o *FileOptions, s *term.Streams) (*recordFile, error) {
	f := &recordFile{FileOptions: *o, out: s.Out}
	if o.Name != "-" {
		return f, errors.Join(f.checkStreams(s), f.checkRotate())
	}
	if o.Rotate > 0 {
		return nil, exit.Usagef("--rotate begins new files, and -w - is standard output: name a file")
	}
	f.Writer = term.FileOf(s.Out)
	if file, ok := f.Writer.(*os.File); ok {
		if _, err := unix.IoctlGetTermios(int(file.Fd()), unix.TCGETS); err == nil {
			return nil, exit.Usagef("-w - writes a recording to standard output, which is a terminal: redirect it, as in ksnoop record -w - vfs_read | ssh HOST 'cat > FILE'")
		}
		if info, err := file.Stat(); err == nil && info.Mode()&fs.ModeDevice == 0 && term.LeadsTo(s.Err, info) {
			return nil, exit.Usagef("-w - writes a recording to standard output, where messages go, too: send those elsewhere, as in 2> FILE")
		}
		f.Writer = term.Beside(s.Out, file)
	}
	return f, nil
}

// checkStreams returns an error if what is printed would go to one of the files, too.
func (f *recordFile) checkStreams(s *term.Streams) error {
	for n := range f.kept() + 1 {
		if to := s.LeadTo(f.numbered(n)); to != "" && (n == 0 || f.Rotate > 0) {
			return exit.Usagef("the recording would be written to %s, where %s goes: name another file", f.numbered(n), to)
		}
	}
	return nil
}

// checkRotate returns an error if the file is to be rotated, and is a device or the
// like, which must keep its name, or if that would replace files that are not recordings.
func (f *recordFile) checkRotate() error {
	if f.Rotate == 0 {
		return nil
	}
	if info, err := os.Stat(f.Name); err == nil && !info.Mode().IsRegular() {
		return exit.Usagef("--rotate renames files, and %s is not a regular one: name another file", f.Name)
	}
	for n := 1; n <= f.kept(); n++ {
		if of, err := BytesOfMagic(f.numbered(n)); err == nil && of != 0 && of != len(recording.Magic) {
			return exit.Usagef("--rotate would replace %s, which is not a recording: name another file, or move that one", f.numbered(n))
		}
	}
	return nil
}

// kept returns the number of files before the current one that are kept.
func (f *recordFile) kept() int { return cmp.Or(f.Keep, defaultKeep) }

// BytesOfMagic returns how many bytes a regular file has of those that a recording begins
// with, or -1 if it begins otherwise.
func BytesOfMagic(name string) (int, error) {
	if info, err := os.Stat(name); err != nil || !info.Mode().IsRegular() {
		return -1, err
	}
	f, err := os.Open(name)
	if err != nil {
		return -1, err
	}
	defer f.Close()
	head := make([]byte, len(recording.Magic))
	if n, _ := io.ReadFull(f, head); string(head[:n]) == recording.Magic[:n] {
		return n, nil
	}
	return -1, nil
}

// numbered returns the name of the file that is the n-th one before the current one.
func (f *recordFile) numbered(n int) string {
	if n == 0 {
		return f.Name
	}
	return fmt.Sprintf("%s.%d", f.Name, n)
}

// removeEarlier removes the numbered files of a recording that had the same name: they
// would look like parts of this one.
func (f *recordFile) removeEarlier() error {
	for n := 1; f.Rotate > 0; n++ {
		name := f.numbered(n)
		of, _ := BytesOfMagic(name)
		if of != len(recording.Magic) && n > f.kept() {
			return nil
		}
		if of == len(recording.Magic) {
			if err := os.Remove(name); err != nil {
				return err
			}
		}
	}
	return nil
}

// create opens the file, or creates it, unless it is standard output. What it has of an
// earlier recording stays until clear is called. Only its owner may read it, as it has
// memory of the kernel.
func (f *recordFile) create() (err error) {
	if f.Name == "-" {
		return nil
	}
	if f.file, err = os.OpenFile(f.Name, os.O_WRONLY|os.O_CREATE, 0o600); err != nil {
		return fmt.Errorf("create %s: %w", f.Name, withRoom(errors.Unwrap(err)))
	}
	f.Writer = f.file
	if info, err := f.file.Stat(); err != nil || !info.Mode().IsRegular() {
		f.Writer = term.Beside(f.out, f.file)
		return err
	}
	return f.file.Chmod(0o600) // of a file that was there before
}

// clear removes what an earlier recording has left, in this file and in those that have
// its name with a number.
func (f *recordFile) clear() error {
	if f.file == nil || f.Writer != f.file { // standard output, a device or a pipe
		return nil
	}
	if f.part == 0 {
		if err := f.removeEarlier(); err != nil {
			return err
		}
	}
	if err := f.file.Truncate(0); err != nil {
		return fmt.Errorf("create %s: %w", f.Name, errors.Unwrap(err))
	}
	return nil
}

// Write writes to the file or to standard output, and says what its errors mean.
func (f *recordFile) Write(p []byte) (int, error) {
	n, err := f.Writer.Write(p)
	if errors.Is(err, unix.EPIPE) && f.Name == "-" {
		return n, term.ErrReaderGone
	}
	return n, withRoom(err)
}

// withRoom adds to an error what makes room, if that is what was missing.
func withRoom(err error) error {
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) || errors.Is(err, unix.EFBIG) {
		return fmt.Errorf("%w: make room there, or record less, as with --rotate 100M --keep 2", err)
	}
	return err
}

// full reports whether the next file is due.
func (f *recordFile) full(size int64) bool { return f.Rotate > 0 && uint64(size) >= f.Rotate }

// rotate renames the files and begins a new one.
func (f *recordFile) rotate() error {
	if err := f.Close(); err != nil {
		return err
	}
	for n := f.kept(); n > 0; n-- {
		if err := os.Rename(f.numbered(n-1), f.numbered(n)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("write the recording: %w", err)
		}
	}
	f.part++
	if err := f.create(); err != nil {
		return err
	}
	return f.clear()
}

// Close closes the file, unless that was done before.
func (f *recordFile) Close() error {
	file := f.file
	if f.file = nil; file == nil {
		return nil
	}
	if err := file.Close(); err != nil {
		return fmt.Errorf("write the recording: %w", err)
	}
	return nil
}
