package runtime

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/cilium/ebpf"
)

// tracefsDirs is where tracefs may be: its own place, and below debugfs, which
// mounts it on use.
var tracefsDirs = []string{"/sys/kernel/tracing", "/sys/kernel/debug/tracing"}

// openTracefs opens a file of tracefs for reading. Root may, or whoever has
// CAP_DAC_READ_SEARCH.
func openTracefs(name string) (*os.File, error) {
	var errs []error
	for _, dir := range tracefsDirs {
		f, err := os.Open(filepath.Join(dir, name))
		if err == nil {
			return f, nil
		}
		errs = append(errs, err)
	}
	if errors.Is(errs[0], os.ErrPermission) {
		return nil, fmt.Errorf("%w: tracefs is root's (CAP_DAC_READ_SEARCH reads it, too)", errs[0])
	}
	return nil, fmt.Errorf("%w: tracefs is not mounted (mount -t tracefs tracefs %s)", errs[0], tracefsDirs[0])
}

// tracefsCure says why tracefs cannot be written to, and what would change
// that.
func tracefsCure(err error) string {
	switch {
	case errors.Is(err, os.ErrPermission):
		return "which is root's to write (permission denied)"
	case errors.Is(err, os.ErrNotExist), errors.Is(err, ebpf.ErrNotSupported):
		return "which is not mounted (mount -t tracefs tracefs " + tracefsDirs[0] + ")"
	}
	return "which answers: " + err.Error()
}

// Hooks calls visit with each function that fentry, kprobe.multi and
// kprobe.session can be attached to, with the module that it is in, "" for the
// kernel itself. The bytes are valid during the call only. Names may come more
// than once. The error says why tracefs cannot be read.
func (k *Kernel) Hooks(visit func(function, module []byte)) error {
	f, err := openTracefs("available_filter_functions")
	if err != nil {
		return fmt.Errorf("read which functions can be traced: %w", err)
	}
	defer f.Close()
	if err := readHooks(f, visit); err != nil {
		return fmt.Errorf("read %s: %w", f.Name(), err)
	}
	return nil
}

// readHooks reads lines like "vfs_read" and "nf_hook [nf_tables]".
func readHooks(r io.Reader, visit func(function, module []byte)) error {
	s := bufio.NewScanner(r)
	for s.Scan() {
		function, module, _ := bytes.Cut(s.Bytes(), []byte{' '})
		// The place of a weak function that another one replaced (5.19 to
		// 6.14).
		if len(function) == 0 || bytes.HasPrefix(function, []byte("__ftrace_invalid_address__")) {
			continue
		}
		visit(function, bytes.Trim(module, "[]"))
	}
	return s.Err()
}
