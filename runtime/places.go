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

// maxTries limits the search for bad places: finding one of a thousand takes ten
// tries. A try that fails takes a millisecond, or with names a millisecond for
// each hundred thousand symbols; one that succeeds takes an RCU grace period, too.
const maxTries = 200

var errTooManyBad = errors.New("too many functions of this link cannot be hooked, and the search for them was given up: name fewer")

// badPlace is a place that cannot be attached to.
type badPlace struct {
	compiler.Place
	err error
}

// badPlaces returns the places that make a link of several fail, which the kernel
// does not tell. err is the error of the link with all of them.
func badPlaces(places []compiler.Place, err error, try func([]compiler.Place) error) []badPlace {
	b := bisection{try: try}
	b.find(places, err)
	return b.bad
}

func allBad(places []compiler.Place, err error) []badPlace {
	var bad []badPlace
	for _, p := range places {
		bad = append(bad, badPlace{p, err})
	}
	return bad
}

type bisection struct {
	try   func([]compiler.Place) error
	tries int
	bad   []badPlace
}

// find adds the bad places among places, which together fail with err.
func (b *bisection) find(places []compiler.Place, err error) {
	switch {
	case len(places) == 1 || !ofPlace(err):
		b.bad = append(b.bad, allBad(places, err)...)
		return
	case b.tries >= maxTries:
		b.bad = append(b.bad, allBad(places, errTooManyBad)...)
		return
	}
	left, right := places[:len(places)/2], places[len(places)/2:]
	b.tries++
	leftErr := b.try(left)
	if leftErr == nil {
		b.find(right, err)
		return
	}
	b.find(left, leftErr)
	b.tries++
	if err := b.try(right); err != nil {
		b.find(right, err)
	}
}

// ofPlace reports whether an error is about a function to attach to, and not
// about the program, the user or the machine.
func ofPlace(err error) bool {
	for _, e := range []error{os.ErrNotExist, unix.EINVAL, unix.EBUSY, unix.EADDRNOTAVAIL, unix.ERANGE, unix.EILSEQ} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

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
// for the places around it that are not. Other errors are returned unchanged. The
// kernel knows the place as an offset from a symbol.
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
		runtime.GOARCH == compiler.ARM64.Name && offset%4 != 0 && errors.Is(err, unix.EINVAL)
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
	fd, err = unix.PerfEventOpen(&attr, -1, 0, -1, unix.PERF_FLAG_FD_CLOEXEC)
	runtime.KeepAlive(name)
	return fd, err
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
