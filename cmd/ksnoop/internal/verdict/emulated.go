package verdict

import (
	"os"
	"slices"
	"strconv"
	"strings"
)

// Files that describe the CPU and the machine. Only arm64 has the main identification
// register, and only amd64 has the fields of cpuinfo that are looked at.
const (
	identification = "/sys/devices/system/cpu/cpu0/regs/identification/midr_el1"
	processor      = "/proc/cpuinfo"
	vendor         = "/sys/class/dmi/id/sys_vendor"
	clocks         = "/sys/devices/system/clocksource/clocksource0/available_clocksource"
)

// emulated reports whether the CPU is emulated.
func emulated() bool {
	read := func(file string) string {
		text, _ := os.ReadFile(file) // without it, nothing points to an emulation
		return string(text)
	}
	return emulatedARM(read(identification)) || emulatedAMD(read(processor), read(vendor), read(clocks))
}

// emulatedAMD reports whether an amd64 CPU is emulated. QEMU's processor with all
// features says so in its name. One with the name of a real processor is known by a
// machine of QEMU that has no clock of KVM: under KVM, Linux always has this clock.
func emulatedAMD(processor, vendor, clocks string) bool {
	if strings.HasPrefix(field(processor, "model name"), "QEMU TCG CPU") {
		return true
	}
	virtual := contains(field(processor, "flags"), "hypervisor") && strings.TrimSpace(vendor) == "QEMU"
	return virtual && clocks != "" && !contains(clocks, "kvm-clock")
}

// field returns the value of a field of the first CPU in a cpuinfo file, whose lines are
// like "model name	: AMD EPYC".
func field(cpuinfo, name string) string {
	for line := range strings.Lines(cpuinfo) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// contains reports whether a word is in a list that is separated by blanks.
func contains(list, word string) bool { return slices.Contains(strings.Fields(list), word) }

// emulatedARM reports whether an arm64 CPU with this identification is emulated.
// Arm reserves 0 in place of the implementer's code for software, and QEMU's
// processor with all features has it. A named processor under QEMU looks like a
// real one.
func emulatedARM(midr string) bool {
	n, err := strconv.ParseUint(strings.TrimSpace(midr), 0, 64)
	return err == nil && uint8(n>>24) == 0
}
