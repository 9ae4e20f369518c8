//go:build linux

package e2e

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/e2e/script"
	"github.com/ksnoop/ksnoop/runtime"
	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"
)

// testTaken repeats the tests of calls that return, never return or find no room
// where every bucket is taken. What ksnoop keeps of calls is then in a hash map,
// where it is otherwise only for a thread that shares its bucket with another one.
func testTaken(t *testing.T, k *kernel) {
	k = &kernel{Kernel: k.Kernel, described: k.described, names: k.names, taken: true}
	t.Run("pairing", func(t *testing.T) { testPairing(t, k) })
	if !*full {
		return
	}
	t.Run("ends", func(t *testing.T) { testEnds(t, k) })
	t.Run("replaced", func(t *testing.T) { testReplaced(t, k) })
	t.Run("chain", func(t *testing.T) { testChain(t, k) })
	t.Run("measures", func(t *testing.T) { testMeasures(t, k) })
	if !k.target().Features.Preemptible { // the script has verdicts on what fentry follows, which counts its misses on all kernels
		t.Run("exits", testTakenExits)
	}
}

// testTakenExits runs the script of calls that never return with every bucket of
// its tracers taken, but for those that threads got while the last probes were attached.
func testTakenExits(t *testing.T) {
	taken := 0
	options := script.Options{Schemas: guestPages, Full: *full, Attached: func() error {
		n, err := takeBuckets()
		taken += n
		return err
	}}
	params, err := script.Params("", options)
	require.NoError(t, err)
	params.Files = []string{filepath.Join(guestScripts, "exits.txtar")}
	params.Deadline, _ = t.Deadline()
	testscript.RunT(sequential{t}, params)
	require.NotZero(t, taken)
}

// loadUnit loads a unit until the test ends, or until Close.
func (k *kernel) loadUnit(t *testing.T, unit *compiler.Unit) *runtime.Session {
	threads, size := unit.Collection.Maps["threads"], uint32(0)
	if threads != nil {
		size = unit.Collection.Maps["overflow"].ValueSize
		threads.Name = fmt.Sprint(bucketsName, size)
	}
	session, err := runtime.Load(unit, k.Kernel)
	require.NoError(t, err, "%+v", refusal(err))
	t.Cleanup(func() { session.Close() })
	require.Empty(t, session.Refused())
	if threads != nil && k.taken {
		taken, err := takeBuckets()
		require.NoError(t, err)
		require.GreaterOrEqual(t, taken, int(threads.ValueSize/size))
	}
	return session
}

const (
	// bucketsName begins the name of a map of buckets in these tests; their size follows.
	bucketsName = "threads"
	// firstSlot is the offset in a bucket of its first slot, which begins with 0 if no call
	// has it. Buckets begin with the address of the thread.
	firstSlot = 24
	// bucketsSize is the largest size of all buckets of a unit in bytes.
	bucketsSize = 1 << 20
	// takenByTest is the first byte of an element that stands for a bucket taken
	// by takeBuckets.
	takenByTest = 0xff
)

// takeBuckets takes all free buckets of all tracers, as a thread takes one: by the
// number of the bucket as a key of the hash map. It returns how many were free.
func takeBuckets() (taken int, err error) {
	err = eachMap(func(m *ebpf.Map, info *ebpf.MapInfo) error {
		if info.Name != "overflow" {
			return nil
		}
		value := make([]byte, m.ValueSize())
		value[0] = takenByTest
		for n := range bucketsSize / m.ValueSize() {
			err := m.Update(uint64(n), value, ebpf.UpdateNoExist)
			if errors.Is(err, ebpf.ErrKeyExist) {
				continue
			}
			if err != nil {
				return err
			}
			taken++
		}
		return nil
	})
	return taken, err
}

// eachMap passes all hash maps and arrays of the kernel to do.
func eachMap(do func(*ebpf.Map, *ebpf.MapInfo) error) error {
	for id := ebpf.MapID(0); ; {
		var err error
		id, err = ebpf.MapGetNextID(id)
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		if err == nil {
			err = withMap(id, do)
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
}

func withMap(id ebpf.MapID, do func(*ebpf.Map, *ebpf.MapInfo) error) error {
	m, err := ebpf.NewMapFromID(id)
	if err != nil {
		return err
	}
	defer m.Close()
	info, err := m.Info()
	if err != nil || m.Type() != ebpf.Hash && m.Type() != ebpf.Array {
		return err
	}
	return do(m, info)
}

// keptIn returns how many elements a map of kept calls has, other than those of
// takeBuckets.
func keptIn(m *ebpf.Map, name string) (n int, err error) {
	if name != "overflow" && !strings.HasPrefix(name, "calls") {
		return 0, nil
	}
	key, value := make([]byte, m.KeySize()), make([]byte, m.ValueSize())
	entries := m.Iterate()
	for entries.Next(key, value) {
		number := name == "overflow" && binary.NativeEndian.Uint64(key) < bucketsSize
		if !number || value[0] != takenByTest {
			n++
		}
	}
	return n, entries.Err()
}
