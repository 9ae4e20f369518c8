package verdict

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEmulatedARM(t *testing.T) {
	require.True(t, emulatedARM("0x00000000000f0510\n"), "QEMU's max")
	require.False(t, emulatedARM("0x00000000411fd070\n"), "Cortex-A57")
	require.False(t, emulatedARM("0x00000000413fd0c1\n"), "Neoverse N1")
	require.False(t, emulatedARM(""))
}

func TestEmulatedAMD(t *testing.T) {
	const (
		guest = "processor\t: 0\nmodel name\t: Intel Core Processor (Haswell)\nflags\t\t: fpu sse2 hypervisor\n\nprocessor\t: 1\n"
		metal = "processor\t: 0\nmodel name\t: AMD EPYC 7B13\nflags\t\t: fpu sse2\n"
		all   = "processor\t: 0\nmodel name\t: QEMU TCG CPU version 2.5+\nflags\t\t: fpu sse2 hypervisor\n"
	)
	require.True(t, emulatedAMD(all, "", ""), "QEMU's max, also on a machine without DMI")
	require.True(t, emulatedAMD(guest, "QEMU\n", "tsc hpet acpi_pm \n"), "a named processor")
	require.False(t, emulatedAMD(guest, "QEMU\n", "kvm-clock tsc acpi_pm \n"), "the same with KVM")
	require.False(t, emulatedAMD(guest, "Google\n", "tsc acpi_pm \n"), "another hypervisor")
	require.False(t, emulatedAMD(guest, "QEMU\n", ""), "nothing is known of the clocks")
	require.False(t, emulatedAMD(metal, "Dell Inc.\n", "tsc hpet acpi_pm \n"))
	require.False(t, emulatedAMD("", "", ""))
}
