//go:build linux

package confine

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// names maps the names of the capabilities that scripts drop or keep to their
// numbers.
var names = map[string]uintptr{
	"bpf": unix.CAP_BPF, "perfmon": unix.CAP_PERFMON, "sys_admin": unix.CAP_SYS_ADMIN,
	"sys_resource": unix.CAP_SYS_RESOURCE, "syslog": unix.CAP_SYSLOG,
}

// capabilities returns a function that parses a list of capabilities.
func capabilities(to *[]uintptr) func(string) error {
	return func(list string) error {
		for name := range strings.SplitSeq(list, ",") {
			c, ok := names[name]
			if !ok {
				return fmt.Errorf("unknown capability %q", name)
			}
			*to = append(*to, c)
		}
		return nil
	}
}

// dropCapabilities removes capabilities from the bounding set, which limits the
// capabilities that root has in the command.
func (r *restrictions) dropCapabilities() error {
	drop := r.drop
	for c := range uintptr(unix.CAP_LAST_CAP + 1) {
		if r.only != nil && !slices.Contains(r.only, c) {
			drop = append(drop, c)
		}
	}
	for _, c := range drop {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil {
			return fmt.Errorf("drop capability %d: %w", c, err)
		}
	}
	return nil
}

// becomeUser changes to a user, who keeps some capabilities across exec as
// ambient ones.
func (r *restrictions) becomeUser() error {
	if r.user == 0 {
		return nil
	}
	if err := unix.Prctl(unix.PR_SET_KEEPCAPS, 1, 0, 0, 0); err != nil {
		return err
	}
	// The functions with these names in package syscall would change all
	// threads.
	if _, _, errno := unix.RawSyscall(unix.SYS_SETGROUPS, 0, 0, 0); errno != 0 {
		return errno
	}
	id := uintptr(r.user)
	for _, call := range []uintptr{unix.SYS_SETRESGID, unix.SYS_SETRESUID} {
		if _, _, errno := unix.RawSyscall(call, id, id, id); errno != 0 {
			return errno
		}
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	for _, c := range r.keep {
		sets[c/32].Permitted |= 1 << (c % 32)
		sets[c/32].Inheritable |= 1 << (c % 32)
	}
	if err := unix.Capset(&header, &sets[0]); err != nil {
		return fmt.Errorf("keep capabilities: %w", err)
	}
	for _, c := range r.keep {
		if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_RAISE, c, 0, 0); err != nil {
			return fmt.Errorf("keep capability %d: %w", c, err)
		}
	}
	return nil
}
