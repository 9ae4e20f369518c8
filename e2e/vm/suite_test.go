package vm

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNewest(t *testing.T) {
	packages := []string{
		"linux-image-cloud-amd64", "linux-image-6.1.0-50-cloud-amd64", "linux-image-6.1.0-9-cloud-amd64",
		"linux-image-6.18.9+deb13-cloud-amd64", "linux-image-6.18.15+deb13-cloud-amd64",
		"linux-image-6.18.20+deb13-cloud-amd64-unsigned", "linux-image-6.18.30+deb13-amd64",
		"linux-headers-6.18.40+deb13-cloud-amd64", "linux-image-7.2.12+deb13-cloud-amd64",
		"linux-image-6.18.16+deb13-cloud-arm64",
	}
	for _, test := range []struct{ line, want string }{
		{"6.1", "6.1.0-50-cloud-amd64"},
		{"6.18", "6.18.15+deb13-cloud-amd64"},
		{"", "7.2.12+deb13-cloud-amd64"},
	} {
		got, err := Suite{Line: test.line, Arch: AMD64}.newest(packages)
		require.NoError(t, err)
		require.Equal(t, test.want, got)
	}
	_, err := Suite{Name: "bullseye", Line: "5.10", Arch: AMD64}.newest(packages)
	require.EqualError(t, err, "find a 5.10 kernel in bullseye: none among 10 packages")
}

func TestKernelPackages(t *testing.T) {
	packages := []string{"linux-image-7.2-cloud-amd64", "linux-binary-7.2-cloud-amd64",
		"linux-modules-7.2-cloud-amd64", "linux-image-6.1-cloud-amd64"}
	require.Equal(t, packages[:3], kernelPackages("7.2-cloud-amd64", packages))
	require.Equal(t, packages[3:], kernelPackages("6.1-cloud-amd64", packages))
}

func TestArguments(t *testing.T) {
	m := Machine{Kernel: Kernel{Dir: "k", Arch: AMD64}, Args: []string{"-a b"}, Append: "x=1"}
	require.Equal(t, `console=ttyS0 loglevel=5 panic=-1 oops=panic cryptomgr.notests no_timer_check x=1 -- "-a b"`, m.commandLine())
	require.Subset(t, m.arguments("k", "d"), []string{"-smp", "1", "file:d/console", "file:d/output", "-kernel", "k", "hpet=off"})
	m.CPUs = 2
	m.Seed = 7
	require.Equal(t, `console=ttyS0 loglevel=5 panic=-1 oops=panic cryptomgr.notests no_timer_check maxcpus=1 x=1 -- "-a b"`, m.commandLine())
	require.Subset(t, m.arguments("k", "d"), []string{"-smp", "2", "-icount", "shift=1,sleep=off", "-seed", "7", "base=2026-01-01,clock=vm"})
	m.Icount = true
	require.Equal(t, `console=ttyS0 loglevel=5 panic=-1 oops=panic cryptomgr.notests x=1 -- "-a b"`, m.commandLine())
	require.Subset(t, m.arguments("k", "d"), []string{"-smp", "1", "-icount", "shift=0,sleep=off,rr=record,rrfile=/dev/null", "max,cx16=off"})
	require.NotContains(t, m.arguments("k", "d"), "hpet=off")
	m.Kernel.Arch = ARM64
	require.Equal(t, `console=ttyAMA0 loglevel=5 panic=-1 oops=panic cryptomgr.notests x=1 -- "-a b"`, m.commandLine())
	require.Subset(t, m.arguments("k", "d"), []string{"-M", "virt", "max,pauth-impdef=on", "file:d/console", "file,id=s2,path=d/status"})
	m.Model = "cortex-a57"
	require.Subset(t, m.arguments("k", "d"), []string{"-cpu", "cortex-a57"})
}
