//go:build linux

// Package tty implements the command tty of the guest, which runs a command at a
// terminal of its own and prints what that shows:
//
//	tty [-columns N] [-interrupt TEXT] COMMAND...
//
// When the terminal has shown a line with TEXT, Ctrl-C is pressed. The exit status is
// that of the command.
package tty

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// interrupt is the byte that a terminal sends for Ctrl-C.
const interrupt = "\x03"

// Main runs a command line.
func Main() {
	status, err := run(os.Args[1:], os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "tty:", err)
		os.Exit(126)
	}
	os.Exit(status)
}

func run(args []string, out io.Writer) (status int, err error) {
	flags := flag.NewFlagSet("tty", flag.ContinueOnError)
	columns := flags.Uint("columns", 80, "")
	until := flags.String("interrupt", "", "")
	if err := flags.Parse(args); err != nil {
		return 0, err
	}
	if flags.NArg() == 0 {
		return 0, errors.New("want a command")
	}
	cmd := exec.Command(flags.Arg(0), flags.Args()[1:]...)
	terminal, err := Start(cmd, uint16(*columns), 24)
	if err != nil {
		return 0, err
	}
	defer terminal.Close()
	if err := show(terminal, out, *until); err != nil {
		return 0, err
	}
	if err := cmd.Wait(); err != nil && cmd.ProcessState == nil {
		return 0, err
	}
	return cmd.ProcessState.ExitCode(), nil
}

// Start starts a command at a terminal of its own and returns the terminal: what is
// written to it are keys, and what it shows can be read until EIO.
func Start(cmd *exec.Cmd, columns, rows uint16) (*os.File, error) {
	terminal, side, err := open()
	if err != nil {
		return nil, fmt.Errorf("open a terminal: %w", err)
	}
	defer side.Close()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = side, side, side
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	err = unix.IoctlSetWinsize(int(side.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: columns, Row: rows})
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		terminal.Close()
		return nil, err
	}
	return terminal, nil
}

// open opens a terminal, and the side of it for commands.
func open() (terminal, side *os.File, err error) {
	if err := os.MkdirAll("/dev/pts", 0o755); err == nil && unix.Access("/dev/pts/ptmx", unix.F_OK) != nil {
		if err := unix.Mount("devpts", "/dev/pts", "devpts", 0, "ptmxmode=666"); err != nil {
			return nil, nil, err
		}
	}
	terminal, err = os.OpenFile("/dev/pts/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, err
	}
	fd := int(terminal.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		return nil, nil, err
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		return nil, nil, err
	}
	side, err = os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	return terminal, side, err
}

// show copies what a terminal shows until nobody has its other side open any more, and
// presses Ctrl-C when it has shown a line with a text.
func show(terminal io.ReadWriter, out io.Writer, until string) error {
	var shown []byte
	for part := make([]byte, 4096); ; {
		n, err := terminal.Read(part)
		shown = append(shown, part[:n]...)
		if _, err := out.Write(bytes.ReplaceAll(part[:n], []byte("\r"), nil)); err != nil {
			return err
		}
		if _, rest, ok := bytes.Cut(shown, []byte(until)); until != "" && ok && bytes.ContainsRune(rest, '\n') {
			until = ""
			if _, err := io.WriteString(terminal, interrupt); err != nil {
				return err
			}
		}
		if errors.Is(err, unix.EIO) || errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
