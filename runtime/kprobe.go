package runtime

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strconv"
	"strings"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/compiler"
)

// longestInstruction is the length of the longest x86-64 instruction, in bytes.
const longestInstruction = 15

// TryOffset asks the kernel whether it allows a kprobe at a probe's offset in its
// function. The error is the [*AttachError] that [Session.Attach] would return, or
// [os.ErrPermission] for users who may not ask.
func (k *Kernel) TryOffset(p *compiler.Probe) error {
	if p.Offset == 0 {
		return nil
	}
	place := compiler.Place{Probe: p, Symbol: p.Func.Symbol, Offset: p.Offset}
	if len(p.Func.Addrs) > 0 {
		place.Addr = p.Func.Addrs[0] // an offset in several functions is refused
	}
	symbol, offset, err := k.kprobePlace(place)
	if err == nil {
		err = openKprobe(symbol, offset)
	}
	if err == nil || errors.Is(err, os.ErrPermission) {
		return err
	}
	return &AttachError{p, compiler.Kprobe, refusedOffset(place, symbol, offset, err)}
}

// kprobePlace returns a place as the kernel takes it: as an offset from a symbol.
// For an address, in a module too, the symbol is the beginning of the kernel's text.
// Modules of arm64 lie in front of that: there the symbol is "", and offset is the
// address.
func (k *Kernel) kprobePlace(place compiler.Place) (symbol string, offset uint64, err error) {
	if place.Addr == 0 {
		return place.Symbol, place.Offset, nil
	}
	text, err := k.text()
	if addr := place.Addr + place.Offset; addr < text {
		return "", addr, err
	}
	return textSymbol, place.Offset + place.Addr - text, err
}

// refusedOffset returns an error that explains why there is no kprobe inside of a
// function. If the offset is in the middle of an instruction, it asks the kernel
// for the places around it that are not. Other errors are returned unchanged. symbol
// and offset are what kprobePlace returns for the place.
func refusedOffset(place compiler.Place, symbol string, offset uint64, why error) error {
	if !misplaced(openKprobe(symbol, offset), place.Offset) {
		return why
	}
	var begin []string
	try := func(by int64) bool {
		at := int64(place.Offset) + by
		ok := at >= 0 && openKprobe(symbol, offset+uint64(by)) == nil
		if ok {
			begin = append(begin, fmt.Sprintf("+%d", at))
		}
		return ok
	}
	for by := int64(-1); by > -longestInstruction && !try(by); by-- {
	}
	for by := int64(1); by < longestInstruction && !try(by); by++ {
	}
	if len(begin) == 0 {
		return fmt.Errorf("no instruction begins at +%d, nor close to it", place.Offset)
	}
	return fmt.Errorf("no instruction begins at +%d: the nearest ones begin at %s", place.Offset, strings.Join(begin, " and "))
}

// misplaced reports whether err is that of an offset at which no instruction
// begins. On arm64 the kernel has no error of its own for it, but instructions have
// 4 bytes.
func misplaced(err error, offset uint64) bool {
	return errors.Is(err, unix.EILSEQ) ||
		goruntime.GOARCH == compiler.ARM64.Name && offset%4 != 0 && errors.Is(err, unix.EINVAL)
}

// openKprobe makes a kprobe that does nothing, and removes it again.
func openKprobe(symbol string, offset uint64) error { return openPerfProbe(symbol, offset, 0) }

// perfReturn is the option for a kretprobe.
const perfReturn = 1

// openPerfProbe makes a kprobe with options, and removes it again.
func openPerfProbe(symbol string, offset, options uint64) error {
	fd, err := perfProbe(symbol, offset, options)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

// perfProbe makes a kprobe with options, as a perf event. Without a symbol, offset
// is an address.
func perfProbe(symbol string, offset, options uint64) (fd int, err error) {
	kind, err := kprobeType()
	if err != nil {
		return 0, err
	}
	name, err := unix.BytePtrFromString(symbol)
	if err != nil {
		return 0, err
	}
	attr := unix.PerfEventAttr{
		Type: kind, Size: unix.PERF_ATTR_SIZE_VER1, Bits: unix.PerfBitDisabled,
		Config: options, Ext1: uint64(uintptr(unsafe.Pointer(name))), Ext2: offset,
	}
	fd, err = openOnCPU(&attr)
	goruntime.KeepAlive(name)
	return fd, err
}

// openOnCPU opens a perf event of a kprobe, which is called on all CPUs whichever its
// event belongs to: the first one or, if that is offline, the first that runs.
func openOnCPU(attr *unix.PerfEventAttr) (fd int, err error) {
	fd, err = unix.PerfEventOpen(attr, -1, 0, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if !errors.Is(err, unix.ENODEV) {
		return fd, err
	}
	cpus, unknown := OnlineCPUs()
	if unknown != nil || len(cpus) == 0 || cpus[0] == 0 {
		return fd, err
	}
	return unix.PerfEventOpen(attr, -1, cpus[0], -1, unix.PERF_FLAG_FD_CLOEXEC)
}

// kprobeType returns the type number of the perf events that are kprobes.
func kprobeType() (uint32, error) {
	const kind = "/sys/bus/event_source/devices/kprobe/type"
	b, err := os.ReadFile(kind)
	if errors.Is(err, os.ErrNotExist) {
		return 0, errors.New("this kernel is built without CONFIG_KPROBE_EVENTS")
	}
	if err != nil {
		return 0, err
	}
	number, err := strconv.ParseUint(strings.TrimSpace(string(b)), 10, 32)
	if err != nil {
		return 0, fmt.Errorf("read %s: %w", kind, err)
	}
	return uint32(number), nil
}

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
func staleEvents(r io.Reader, alive func(pid int) bool) (stale []string) {
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
