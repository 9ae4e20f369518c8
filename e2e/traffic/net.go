//go:build linux

package traffic

import (
	"golang.org/x/sys/unix"
)

// localhost is the local address with any free port.
var localhost = &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}

// udp sends datagrams over lo. ip_send_skb gets an skb->len of size + 28, which
// includes the UDP and the IP header.
func udp(o *options) error {
	receiver, err := listen(unix.SOCK_DGRAM)
	if err != nil {
		return err
	}
	to, err := unix.Getsockname(receiver)
	if err != nil {
		return err
	}
	sender, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	buf := make([]byte, o.size)
	return o.repeat(func() error {
		return unix.Sendto(sender, buf, 0, to)
	})
}

// udp6 sends datagrams to ::1 over lo, from a connected socket.
func udp6(o *options) error {
	receiver, err := unix.Socket(unix.AF_INET6, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	if err := unix.Bind(receiver, &unix.SockaddrInet6{Addr: [16]byte{15: 1}}); err != nil {
		return err
	}
	to, err := unix.Getsockname(receiver)
	if err != nil {
		return err
	}
	sender, err := unix.Socket(unix.AF_INET6, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	if err := unix.Connect(sender, to); err != nil {
		return err
	}
	buf := make([]byte, o.size)
	return o.repeat(func() error {
		_, err := unix.Write(sender, buf)
		return err
	})
}

// tcp sends over a connection to itself on lo: it calls tcp_v4_connect once,
// and then tcp_sendmsg and tcp_recvmsg n times with size bytes each.
func tcp(o *options) error {
	listener, err := listen(unix.SOCK_STREAM)
	if err != nil {
		return err
	}
	client, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	if err := o.start(unix.Gettid()); err != nil {
		return err
	}
	server, err := connect(client, listener)
	if err != nil {
		return err
	}
	buf := make([]byte, o.size)
	for range o.n {
		if err := unix.Sendto(client, buf, 0, nil); err != nil {
			return err
		}
		if _, _, err := unix.Recvfrom(server, buf, unix.MSG_WAITALL); err != nil {
			return err
		}
	}
	return nil
}

// listen returns a socket bound to localhost. A stream socket accepts
// connections.
func listen(typ int) (int, error) {
	fd, err := unix.Socket(unix.AF_INET, typ, 0)
	if err != nil {
		return -1, err
	}
	if err := unix.Bind(fd, localhost); err != nil {
		return -1, err
	}
	if typ == unix.SOCK_DGRAM {
		return fd, nil
	}
	return fd, unix.Listen(fd, 1)
}

// connect connects client to listener and returns the server's end.
func connect(client, listener int) (server int, err error) {
	to, err := unix.Getsockname(listener)
	if err != nil {
		return -1, err
	}
	if err := unix.Connect(client, to); err != nil {
		return -1, err
	}
	server, _, err = unix.Accept(listener)
	return server, err
}
