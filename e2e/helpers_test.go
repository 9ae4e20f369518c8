//go:build linux

package e2e

import (
	"encoding/binary"
	"io"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/compiler/compilertest"
)

// testHelpers checks that helpers fail on this kernel as the compiler's tests have it,
// which let each call of a helper fail.
func testHelpers(t *testing.T, k *kernel) {
	for _, e := range compilertest.HelperErrors() {
		f := k.target().Features
		if e.New && !f.RuntimeAlloc {
			continue
		}
		if e.At == compilertest.InUpdate && !f.Trampoline { // the kernel runs no kprobe programs in an update from user space
			continue
		}
		t.Run(e.Name, func(t *testing.T) {
			r0, read := failHelper(t, e)
			want := []uint64{}
			for _, errno := range e.Errors {
				if want = append(want, -uint64(errno)); e.Half {
					want = append(want, uint64(-uint32(errno)))
				}
			}
			if len(want) == 0 {
				want = []uint64{0}
			}
			t.Logf("%v returns %#x", e.Helper, r0)
			require.Contains(t, want, r0, "%#x", r0)
			if e.Zeroes {
				require.Zero(t, read)
			}
		})
	}
}

// failHelper runs a program in which a helper fails. It returns R0, and what the program
// has instead of what it should have read.
func failHelper(t *testing.T, e compilertest.HelperError) (r0, read uint64) {
	program := &ebpf.ProgramSpec{Type: ebpf.RawTracepoint, Instructions: slices.Clone(e.Program), License: "GPL"}
	switch e.At {
	case compilertest.InIterator:
		program.Type, program.AttachType, program.AttachTo = ebpf.Tracing, ebpf.AttachTraceIter, "task"
	case compilertest.InUpdate:
		program.Type, program.AttachType, program.AttachTo = ebpf.Tracing, ebpf.AttachTraceFEntry, "lookup_elem_raw"
	}
	spec := &ebpf.CollectionSpec{
		Maps:     map[string]*ebpf.MapSpec{compilertest.HelperResult: {Type: ebpf.Array, KeySize: 4, ValueSize: 16, MaxEntries: 1}},
		Programs: map[string]*ebpf.ProgramSpec{"fail": program},
	}
	maps.Copy(spec.Maps, e.Maps)
	c, err := ebpf.NewCollection(spec)
	require.NoError(t, err, "%+v", err)
	defer c.Close()
	runFailing(t, e, c)
	var result [16]byte
	require.NoError(t, c.Maps[compilertest.HelperResult].Lookup(uint32(0), &result))
	return binary.LittleEndian.Uint64(result[:]), binary.LittleEndian.Uint64(result[8:])
}

// runFailing runs the program of an error where it belongs.
func runFailing(t *testing.T, e compilertest.HelperError, c *ebpf.Collection) {
	program := c.Programs["fail"]
	switch e.At {
	case compilertest.InTestRun:
		_, err := program.Run(&ebpf.RunOptions{})
		require.NoError(t, err)
	case compilertest.InIterator:
		it, err := link.AttachIter(link.IterOptions{Program: program})
		require.NoError(t, err)
		defer it.Close()
		rows, err := it.Open()
		require.NoError(t, err)
		defer rows.Close()
		_, err = io.ReadAll(rows)
		require.ErrorIs(t, err, unix.E2BIG)
	case compilertest.InInterrupt:
		l, err := link.AttachRawTracepoint(link.RawTracepointOptions{Name: "hrtimer_expire_entry", Program: program})
		require.NoError(t, err)
		defer l.Close()
		time.Sleep(10 * time.Millisecond) // a timer ends it
	case compilertest.InUpdate:
		l, err := link.AttachTracing(link.TracingOptions{Program: program})
		require.NoError(t, err)
		defer l.Close()
		require.NoError(t, c.Maps["map"].Update(^uint64(0), uint64(0), ebpf.UpdateAny))
	}
}
