//go:build linux

package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

const (
	pipeReaders  = 25
	overlayUsers = 4
	pingers      = 4
	sleepers     = 4
)

func pipeRounds() int   { return rounds(200, 3200) }
func overlayOpens() int { return rounds(1000, 20_000) }
func pings() int        { return rounds(2000, 30_000) }
func wakeups() int      { return rounds(500, 4000) }

// readPipes starts threads that wait in the kernel for bytes, each in its own
// pipe, and one that writes to them in random order. Every read asks for as
// many bytes as it gets, and for a different number than all other reads at the
// time.
func readPipes(t *testing.T) (run func()) {
	var pipes [pipeReaders][2]int
	for i := range pipes {
		require.NoError(t, unix.Pipe2(pipes[i][:], 0))
	}
	t.Cleanup(func() {
		for _, p := range pipes {
			unix.Close(p[0])
			unix.Close(p[1])
		}
	})
	return func() {
		threads(t, pipeReaders+1, func(i int) error {
			if i == pipeReaders {
				return writePipes(pipes)
			}
			return readPipe(i, pipes[i][0])
		})
	}
}

func readPipe(reader, fd int) error {
	buf := make([]byte, 4096)
	for round := range pipeRounds() {
		want := pipeBytes(reader, round)
		if n, err := unix.Read(fd, buf[:want]); n != want {
			return fmt.Errorf("read %d bytes from a pipe: %d, %v", want, n, err)
		}
	}
	return nil
}

// pipeBytes returns the size of a reader's read, between 64 and what a pipe
// accepts at once.
func pipeBytes(reader, round int) int {
	return 65 + reader + pipeReaders*(round%30)
}

func writePipes(pipes [pipeReaders][2]int) error {
	random := rand.New(rand.NewPCG(1, 2))
	buf := make([]byte, 4096)
	for round := range pipeRounds() {
		for _, i := range random.Perm(pipeReaders) {
			if _, err := unix.Write(pipes[i][1], buf[:pipeBytes(i, round)]); err != nil {
				return err
			}
		}
		schedYield() // let all wait again
	}
	return nil
}

func schedYield() { unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }

// openOverlay opens a file through an overlay on an overlay, whose open opens
// the file below, and so on.
func openOverlay(t *testing.T) (run func()) {
	path := filepath.Join(mountOverlay(t), "file")
	return func() {
		threads(t, overlayUsers, func(int) error {
			for range overlayOpens() / overlayUsers {
				fd, err := unix.Open(path, unix.O_RDONLY, 0)
				if err != nil {
					return err
				}
				unix.Close(fd)
			}
			return nil
		})
	}
}

// mountOverlay returns the upper one of two overlays, which has a file.
func mountOverlay(t *testing.T) string {
	loadOverlay(t)
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "0"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "0", "file"), []byte("text"), 0o644))
	for i := range 2 {
		empty, top := filepath.Join(dir, fmt.Sprint("empty", i)), filepath.Join(dir, fmt.Sprint(i+1))
		require.NoError(t, os.Mkdir(empty, 0o755))
		require.NoError(t, os.Mkdir(top, 0o755))
		lower := fmt.Sprintf("lowerdir=%s/%d:%s", dir, i, empty)
		require.NoError(t, unix.Mount("overlay", top, "overlay", 0, lower))
		t.Cleanup(func() { require.NoError(t, unix.Unmount(top, 0)) })
	}
	return filepath.Join(dir, "2")
}

func loadOverlay(t *testing.T) {
	f, err := os.Open("/lib/modules/overlay.ko")
	require.NoError(t, err)
	defer f.Close()
	require.NoError(t, unix.FinitModule(int(f.Fd()), "", 0))
	t.Cleanup(func() { require.NoError(t, unix.DeleteModule("overlay", 0)) })
}

// ping sends echo requests to localhost and waits for the replies. The kernel
// makes these in softirqs, with the same functions.
func ping(t *testing.T) (run func()) {
	require.NoError(t, os.WriteFile("/proc/sys/net/ipv4/ping_group_range", []byte("0 0"), 0))
	return func() {
		threads(t, pingers, func(int) error {
			fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_ICMP)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			echo := make([]byte, 1008) // with the ICMP header
			for range pings() / pingers {
				echo[0] = 8 // request
				if err := unix.Sendto(fd, echo, 0, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
					return err
				}
				if _, _, err := unix.Recvfrom(fd, echo, 0); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

// wake starts threads that wake each other while timers wake others in
// interrupts, which occur in the middle of such calls.
func wake(t *testing.T) (run func()) {
	return func() {
		ping, pong := make(chan bool), make(chan bool)
		threads(t, 2+sleepers, func(i int) error {
			for n := range wakeups() {
				switch i {
				case 0:
					ping <- true
					<-pong
				case 1:
					<-ping
					pong <- true
				default:
					ts := unix.NsecToTimespec(int64(20_000 + n%1000*10))
					unix.ClockNanosleep(unix.CLOCK_MONOTONIC, 0, &ts, nil)
				}
			}
			return nil
		})
	}
}
