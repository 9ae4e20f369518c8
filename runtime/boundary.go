package runtime

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/compiler"
)

// longestInstruction is that of x86-64, in bytes.
const longestInstruction = 15

// refusedOffset explains why there is no kprobe inside of a function: if it is
// in the middle of an instruction, the kernel is asked which places around it
// are not. Other reasons remain as they are. The place is known to the kernel
// as an offset from a symbol.
func refusedOffset(place compiler.Place, symbol string, offset uint64, why error) error {
	if !errors.Is(openKprobe(symbol, offset), unix.EILSEQ) {
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

// openKprobe makes a kprobe that does nothing, and takes it away again.
func openKprobe(symbol string, offset uint64) error { return openPerfProbe(symbol, offset, 0) }

// perfReturn is the option of a kretprobe.
const perfReturn = 1

// openPerfProbe does that with options.
func openPerfProbe(symbol string, offset, options uint64) error {
	kind, err := kprobeType()
	if err != nil {
		return err
	}
	name, err := unix.BytePtrFromString(symbol)
	if err != nil {
		return err
	}
	attr := unix.PerfEventAttr{
		Type: kind, Size: unix.PERF_ATTR_SIZE_VER1, Bits: unix.PerfBitDisabled,
		Config: options, Ext1: uint64(uintptr(unsafe.Pointer(name))), Ext2: offset,
	}
	fd, err := unix.PerfEventOpen(&attr, -1, 0, -1, unix.PERF_FLAG_FD_CLOEXEC)
	runtime.KeepAlive(name)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

// kprobeType is the type of perf events that are kprobes.
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
