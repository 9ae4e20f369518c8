package runtime

import (
	"bufio"
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// denied says why the kernel permits this process no bpf(2), the likeliest
// reason first, with the cure.
func denied(readFile func(string) ([]byte, error)) string {
	status := readStatus(readFile)
	const refusal = "the kernel does not permit it"
	if missing := missingCapabilities(status); len(missing) > 0 {
		return fmt.Sprintf(refusal+": ksnoop lacks %s: give it what is missing, or run it as root", strings.Join(missing, " and "))
	}
	if !initialUserNamespace(readFile) {
		return refusal + ": the capabilities of a user namespace do not count: run ksnoop as root outside of it"
	}
	if status["Seccomp"] == filtered {
		return refusal + ": a seccomp filter refuses bpf(2): allow it in the profile of the container or service"
	}
	return refusal + ", though ksnoop has CAP_BPF and CAP_PERFMON: a security module may refuse bpf(2) (/sys/kernel/security/lsm)"
}

// kprobesDenied says the same of perf_event_open(2) for kprobes.
func kprobesDenied(readFile func(string) ([]byte, error)) string {
	status := readStatus(readFile)
	switch {
	case locked(readFile):
		return errLockdown.Error()
	case !hasCapability(status, unix.CAP_SYS_ADMIN) || !initialUserNamespace(readFile):
		level := "too high"
		if b, err := readFile("/proc/sys/kernel/perf_event_paranoid"); err == nil {
			level = strings.TrimSpace(string(b))
		}
		return "kernel.perf_event_paranoid is " + level + ", which keeps kprobes from users without CAP_SYS_ADMIN"
	case status["Seccomp"] == filtered:
		return "a seccomp filter refuses perf_event_open(2): allow it in the profile of the container or service"
	}
	return "the kernel does not permit it, though ksnoop has CAP_SYS_ADMIN: a security module may refuse perf_event_open(2) (/sys/kernel/security/lsm)"
}

// filtered is SECCOMP_MODE_FILTER.
const filtered = "2"

// mayLoad says whether nothing is missing that every program takes.
func mayLoad(readFile func(string) ([]byte, error)) bool {
	return len(missingCapabilities(readStatus(readFile))) == 0
}

// readStatus reads the lines of /proc/self/status.
func readStatus(readFile func(string) ([]byte, error)) map[string]string {
	status := map[string]string{}
	text, err := readFile("/proc/self/status")
	if err != nil {
		return nil // the kernel's answer is all there is
	}
	for s := bufio.NewScanner(bytes.NewReader(text)); s.Scan(); {
		name, value, _ := strings.Cut(s.Text(), ":")
		status[name] = strings.TrimSpace(value)
	}
	return status
}

// missingCapabilities are those that a process with this status lacks for
// tracing. CAP_SYS_ADMIN stands for both.
func missingCapabilities(status map[string]string) (missing []string) {
	if hasCapability(status, unix.CAP_SYS_ADMIN) {
		return nil
	}
	if !hasCapability(status, unix.CAP_BPF) {
		missing = append(missing, "CAP_BPF")
	}
	if !hasCapability(status, unix.CAP_PERFMON) {
		missing = append(missing, "CAP_PERFMON")
	}
	return missing
}

// hasCapability is true, too, if that cannot be found out: then nothing is said
// of it.
func hasCapability(status map[string]string, capability int) bool {
	effective, err := strconv.ParseUint(status["CapEff"], 16, 64)
	return err != nil || effective>>capability&1 != 0
}

// initialUserNamespace says whether users are numbered as the kernel does, as
// in no other namespace that anyone sets up.
func initialUserNamespace(readFile func(string) ([]byte, error)) bool {
	text, err := readFile("/proc/self/uid_map")
	return err != nil || strings.Join(strings.Fields(string(text)), " ") == "0 0 4294967295"
}
