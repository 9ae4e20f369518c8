package runtime

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/cilium/ebpf"
)

// tracefsDirs are the directories where tracefs may be mounted: its own, and one
// below debugfs, which mounts it on use.
var tracefsDirs = []string{"/sys/kernel/tracing", "/sys/kernel/debug/tracing"}

// openTracefs opens a file of tracefs for reading. Root may do this, and processes
// with CAP_DAC_READ_SEARCH.
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

// tracefsCure returns why tracefs cannot be written to, and what would change
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
// kprobe.session can be attached to, and with its module, which is "" for the
// kernel itself. The bytes are valid during the call only. Names may come more
// than once. It returns an error if tracefs cannot be read.
func (k *Kernel) Hooks(visit func(function, module []byte)) error {
	f, err := openTracefs("available_filter_functions")
	if err != nil {
		return fmt.Errorf("read which functions can be traced: %w", err)
	}
	defer f.Close()
	if err := parseHooks(f, visit); err != nil {
		return fmt.Errorf("read %s: %w", f.Name(), err)
	}
	return nil
}

// parseHooks parses lines like "vfs_read" and "nf_hook [nf_tables]".
func parseHooks(r io.Reader, visit func(function, module []byte)) error {
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

// groupPrefix begins the names of the groups of ksnoop's events in tracefs. The
// process id, a number and 16 random digits follow.
const groupPrefix = "ksnoop"

// newGroup returns a name for the group of one more event.
func (s *Session) newGroup() string {
	s.groups++
	return fmt.Sprintf("%s_%d_%d", groupPrefix, os.Getpid(), s.groups)
}

// removeStale removes the events that a killed ksnoop has left in tracefs, each
// with its return instances. The kernel does not remove events that are in use by
// a live ksnoop in another PID namespace.
func removeStale() {
	f, err := openTracefs("kprobe_events")
	if err != nil {
		return
	}
	defer f.Close()
	events := staleEvents(f, func(pid int) bool {
		_, err := os.Stat(fmt.Sprintf("/proc/%d", pid))
		return err == nil
	})
	for _, event := range events {
		// One write for each: the kernel stops at the first that is in use.
		if w, err := os.OpenFile(f.Name(), os.O_WRONLY|os.O_APPEND, 0); err == nil {
			_, _ = w.WriteString("-:" + event)
			w.Close()
		}
	}
}

// staleEvents returns the events of processes that are not alive, from lines like
// "r4096:ksnoop_7_1_a0b1/vfs_read vfs_read".
func staleEvents(r io.Reader, alive func(pid int) bool) []string {
	var stale []string
	for s := bufio.NewScanner(r); s.Scan(); {
		head, _, _ := strings.Cut(s.Text(), " ")
		_, event, _ := strings.Cut(head, ":")
		var pid, number int
		if n, _ := fmt.Sscanf(event, groupPrefix+"_%d_%d_", &pid, &number); n == 2 && !alive(pid) {
			stale = append(stale, event)
		}
	}
	return stale
}

// profileMissed returns how many calls were missed by ksnoop's kretprobe whose
// group in tracefs begins with group. kprobe_profile has no groups, so its lines
// are found by those of kprobe_events, which have the same order.
func profileMissed(group string) (uint64, error) {
	events, err := openTracefs("kprobe_events")
	if err != nil {
		return 0, err
	}
	defer events.Close()
	profile, err := openTracefs("kprobe_profile")
	if err != nil {
		return 0, err
	}
	defer profile.Close()
	n, err := parseProfile(events, profile, group)
	if err != nil {
		return 0, fmt.Errorf("read %s: %w", profile.Name(), err)
	}
	return n, nil
}

// parseProfile parses lines like "r32:ksnoop_7_1_a0b1/vfs_read vfs_read" and
// " vfs_read  12  3".
func parseProfile(events, profile io.Reader, group string) (missed uint64, err error) {
	ours, counts := bufio.NewScanner(events), bufio.NewScanner(profile)
	for ours.Scan() && counts.Scan() {
		head, _, _ := strings.Cut(ours.Text(), " ")
		_, event, _ := strings.Cut(head, ":")
		if !strings.HasPrefix(event, group+"_") {
			continue
		}
		_, name, _ := strings.Cut(event, "/")
		var got string
		var hits uint64
		if _, err := fmt.Sscan(counts.Text(), &got, &hits, &missed); err != nil {
			return 0, fmt.Errorf("parse %q: %w", counts.Text(), err)
		}
		if got != name {
			return 0, fmt.Errorf("found event %s instead of %s: another program changes the probes", got, name)
		}
		return missed, nil
	}
	return 0, fmt.Errorf("no event of group %s", group)
}
