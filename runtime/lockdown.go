package runtime

import (
	"errors"
	"regexp"
	"strings"
)

// lockdownFile tells how far the kernel is locked down. It is there only where
// securityfs is mounted, and the kernel knows of lockdown.
const lockdownFile = "/sys/kernel/security/lockdown"

var errLockdown = errors.New("the kernel is locked down (" + lockdownFile + " is confidentiality), so that no program may read its memory: " +
	"boot it with lockdown=integrity, or without lockdown")

// locked says whether the kernel keeps its memory confidential. Programs that
// read none by a helper could still be loaded, but the administrator's wish is
// plain.
func locked(readFile func(string) ([]byte, error)) bool {
	text, err := readFile(lockdownFile)
	return err == nil && strings.Contains(string(text), "[confidentiality]")
}

// noProbeRead is how the verifier of a kernel that is locked down refuses the
// helpers that read kernel memory; there is no other reason to refuse them.
// Where the newer ones are refused, cilium takes those that they replaced.
var noProbeRead = regexp.MustCompile(`(unknown func|cannot use helper) bpf_probe_read(_kernel)?(_str)?#`)

// refusedByLockdown finds out by the verifier's log, where there is no
// lockdownFile.
func refusedByLockdown(log []string) bool {
	for _, line := range log {
		if noProbeRead.MatchString(line) {
			return true
		}
	}
	return false
}
