package term

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func newPipe(t *testing.T) (*os.File, *Stdout) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	t.Cleanup(func() {
		r.Close()
		w.Close()
	})
	o := NewStdout(w)
	o.grace = time.Millisecond
	return r, o
}

// TestStdoutReader verifies that a reader gets everything, after Hurry too, if it
// reads.
func TestStdoutReader(t *testing.T) {
	for _, hurried := range []bool{false, true} {
		r, o := newPipe(t)
		o.grace = time.Hour
		if hurried {
			Hurry(o)
		}
		want := bytes.Repeat([]byte("0123456789"), 50_000)
		got := make(chan []byte)
		go func() {
			all, _ := io.ReadAll(r)
			got <- all
		}()
		n, err := o.Write(want)
		require.NoError(t, err)
		require.Equal(t, len(want), n)
		require.NoError(t, o.file.Close())
		require.Equal(t, want, <-got)
	}
}

// TestStdoutNonBlocking verifies that a reader gets everything if another program, such as
// the command, has made the file non-blocking and fills it.
func TestStdoutNonBlocking(t *testing.T) {
	var fds [2]int
	require.NoError(t, unix.Pipe2(fds[:], unix.O_CLOEXEC))
	r, w := os.NewFile(uintptr(fds[0]), "reader"), os.NewFile(uintptr(fds[1]), "writer")
	defer r.Close()
	o := NewStdout(w)
	o.atOnce = 1 << 20 // more than there is room for
	require.NoError(t, unix.SetNonblock(fds[1], true))
	want := bytes.Repeat([]byte("0123456789"), 50_000)
	failed := make(chan error, 1)
	go func() {
		_, err := o.Write(want)
		failed <- errors.Join(err, w.Close())
	}()
	got, err := io.ReadAll(r)
	require.NoError(t, err)
	require.NoError(t, <-failed)
	require.Equal(t, want, got)
}

// TestStdoutHurry verifies that a write to a reader that never reads ends after
// Hurry, whether that is called before or during the write.
func TestStdoutHurry(t *testing.T) {
	for _, before := range []bool{true, false} {
		_, o := newPipe(t)
		if before {
			Hurry(o)
		} else {
			go Hurry(o)
		}
		n, err := o.Write(make([]byte, 1<<20))
		require.Equal(t, 1<<16, n) // the capacity of a pipe
		require.ErrorContains(t, err, "is full and nobody reads it: what was still to be shown is dropped")
		_, err = o.Write([]byte("more"))
		require.ErrorContains(t, err, "nobody reads")
	}
	Hurry(io.Discard) // no effect on another writer
}

func TestStdoutReaderGone(t *testing.T) {
	r, o := newPipe(t)
	require.NoError(t, r.Close())
	_, err := o.Write([]byte("text"))
	require.ErrorIs(t, err, ErrReaderGone)
	var message bytes.Buffer
	PrintErrors(&message, errors.Join(err, unix.EIO))
	require.Equal(t, "ksnoop: input/output error\n", message.String())
}

func TestStdoutFull(t *testing.T) {
	f, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	require.NoError(t, err)
	defer f.Close()
	_, err = NewStdout(f).Write([]byte("text"))
	require.EqualError(t, err, "stdout (/dev/full): no space left on device: make room there, or show less")
}

func TestStdoutFile(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "out"))
	require.NoError(t, err)
	want := make([]byte, 3*pipeBuf)
	_, err = NewStdout(f).Write(want)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	got, err := os.ReadFile(f.Name())
	require.NoError(t, err)
	require.Equal(t, want, got)
}
