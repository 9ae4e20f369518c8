//go:build linux

package traffic

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// dummy sends frames through the network interface of module dummy, which it
// loads. dummy_xmit gets an skb->len of size. With -n 0 it only loads the
// module.
func dummy(o *options) error {
	if err := loadModule("/lib/modules/dummy.ko"); err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, 0)
	if err != nil {
		return err
	}
	index, err := interfaceUp(fd, "dummy0")
	if err != nil {
		return err
	}
	to := &unix.SockaddrLinklayer{Ifindex: int(index)}
	frame := make([]byte, max(o.size, 14)) // at least an Ethernet header
	return o.repeat(func() error {
		return unix.Sendto(fd, frame, 0, to)
	})
}

// loadModule loads a module unless it is loaded. It turns IPv6 off for new
// interfaces, which would send their own frames.
func loadModule(path string) error {
	if err := os.WriteFile("/proc/sys/net/ipv6/conf/default/disable_ipv6", []byte("1"), 0); err != nil {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.FinitModule(int(f.Fd()), "", 0); err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("load %s: %w", path, err)
	}
	return nil
}

// interfaceUp brings a network interface up and returns its index.
func interfaceUp(fd int, name string) (uint32, error) {
	ifr, err := unix.NewIfreq(name)
	if err != nil {
		return 0, err
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFINDEX, ifr); err != nil {
		return 0, fmt.Errorf("find %s: %w", name, err)
	}
	index := ifr.Uint32()
	ifr.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, ifr); err != nil {
		return 0, fmt.Errorf("bring %s up: %w", name, err)
	}
	return index, nil
}
