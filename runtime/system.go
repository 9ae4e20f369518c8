package runtime

import (
	"errors"
	"fmt"
	"os"
	goruntime "runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// System identifies a running system.
type System struct {
	Kernel string // release of the kernel, as uname -r prints it
	Host   string // name of the host; may be empty
	Boot   string // id of the boot; "" where procfs is not mounted
}

// ThisSystem returns the running system.
func ThisSystem() (System, error) {
	u, err := uname()
	if err != nil {
		return System{}, err
	}
	s := System{Kernel: unix.ByteSliceToString(u.Release[:]), Host: unix.ByteSliceToString(u.Nodename[:])}
	if id, err := os.ReadFile("/proc/sys/kernel/random/boot_id"); err == nil {
		s.Boot = strings.TrimSpace(string(id))
	}
	return s, nil
}

// OnlineCPUs returns the numbers of the CPUs that run, in ascending order.
func OnlineCPUs() ([]int, error) { return cpusIn("/sys/devices/system/cpu/online") }

// PossibleCPUs returns the numbers of the CPUs that may ever run. Each of them has
// per-CPU variables.
func PossibleCPUs() ([]int, error) { return cpusIn("/sys/devices/system/cpu/possible") }

// cpusIn returns the CPUs that a file lists. Without sysfs, it returns as many as this
// process can use.
func cpusIn(file string) ([]int, error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		cpus := make([]int, goruntime.NumCPU())
		for i := range cpus {
			cpus[i] = i
		}
		return cpus, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the CPUs: %w", err)
	}
	return ParseCPUs(strings.TrimSpace(string(text)))
}

// mostCPUs bounds the number of a CPU.
const mostCPUs = 1 << 16

var errCPUs = errors.New("the CPUs are not numbers and ranges such as 0-3,8")

// ParseCPUs returns the numbers in a list such as 0-3,8.
func ParseCPUs(list string) (cpus []int, err error) {
	for part := range strings.SplitSeq(list, ",") {
		from, to, ranged := strings.Cut(part, "-")
		if !ranged {
			to = from
		}
		first, err := strconv.ParseUint(from, 10, 32)
		last, wrong := strconv.ParseUint(to, 10, 32)
		if err != nil || wrong != nil || last < first || last >= mostCPUs {
			return nil, errCPUs
		}
		for cpu := first; cpu <= last; cpu++ {
			cpus = append(cpus, int(cpu))
		}
	}
	return cpus, nil
}
