//go:build linux

package script

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
	"unsafe"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"
)

// idsKey is the key under which a script keeps the ids of the kernel's objects.
type idsKey struct{}

type knownIDs struct{ list []string }

// ids remembers the kernel's objects, or fails the script unless all newer ones
// go away. The kernel frees some of them only after a grace period.
func ids(ts *testscript.TestScript, args []string) {
	usage(ts, len(args) == 0 || len(args) == 1 && args[0] == "same", "ids [same]")
	known := ts.Value(idsKey{}).(*knownIDs)
	if len(args) == 0 {
		var err error
		known.list, err = Objects()
		ts.Check(err)
		return
	}
	left, err := AwaitObjects(known.list)
	ts.Check(err)
	if len(left) > 0 {
		ts.Fatalf("left behind: %s", strings.Join(left, ", "))
	}
}

// AwaitObjects waits until only the objects of before are left, and returns the
// others that remain.
func AwaitObjects(before []string) (left []string, err error) {
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(pause) {
		now, err := Objects()
		if err != nil {
			return nil, err
		}
		left = slices.DeleteFunc(now, func(o string) bool { return slices.Contains(before, o) })
		if len(left) == 0 {
			break
		}
	}
	return left, nil
}

// Objects lists the programs, maps and links of the kernel by their ids, and
// the events that were made in tracefs.
func Objects() ([]string, error) {
	var all []string
	for _, o := range []struct {
		kind string
		next uintptr
	}{
		{"program", unix.BPF_PROG_GET_NEXT_ID}, {"map", unix.BPF_MAP_GET_NEXT_ID}, {"link", unix.BPF_LINK_GET_NEXT_ID},
	} {
		for id := uint32(0); ; {
			var err error
			if id, err = nextID(o.next, id); errors.Is(err, unix.ENOENT) {
				break
			} else if err != nil {
				return nil, fmt.Errorf("list each %s: %w", o.kind, err)
			}
			all = append(all, fmt.Sprintf("%s %d", o.kind, id))
		}
	}
	events, err := os.ReadFile(tracefs + "/kprobe_events")
	if err != nil {
		return nil, err
	}
	return append(all, strings.FieldsFunc(string(events), func(r rune) bool { return r == '\n' })...), nil
}

// nextID returns the next id after another one.
func nextID(command uintptr, id uint32) (uint32, error) {
	attr := struct{ start, next, flags uint32 }{start: id}
	_, _, errno := unix.Syscall(unix.SYS_BPF, command, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr))
	if errno != 0 {
		return 0, errno
	}
	return attr.next, nil
}
