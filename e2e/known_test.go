//go:build linux

package e2e

import (
	"bytes"
	"encoding/binary"
	"io"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/btfdump"
	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/e2e/guest"
	"github.com/ksnoop/ksnoop/e2e/vm"
	"github.com/ksnoop/ksnoop/runtime"
)

// TestKnown compares what is shown of calls, before and after them, with what a module notes
// itself: see testdata/known. It is built for 6.1 alone, whose compiler Debian 12 has: the tools
// among the headers of later kernels need a later C library, and 5.10 has no types of modules.
func TestKnown(t *testing.T) {
	onlyWithFull(t)
	t.Parallel()
	requireMachine(t, vm.AMD64)
	for program, pkg := range map[string]string{"make": "make", "gcc-12": "gcc-12", "pahole": "dwarves"} {
		_, err := vm.Install(t.Context(), program, pkg)
		require.NoError(t, err)
	}
	const line = "6.1"
	kernel := kernelOf(t, line)
	headers, err := vm.NewCache().Headers(t.Context(), suiteOf(vm.AMD64, line), kernel)
	if err != nil {
		t.Logf("missing: headers of %s: %s", line, oneLine(err))
		t.SkipNow()
	}
	module, err := kernel.BuildModule(t.Context(), headers, "testdata/known", t.TempDir())
	require.NoError(t, err)
	files := []vm.File{{Path: knownModule[1:], Source: module}}
	// One CPU each: with two, 6.1 did not come up with preempt=full.
	for _, m := range []vm.Machine{{Append: "preempt=voluntary"}, {Append: "preempt=full"}} {
		t.Run(m.Append, func(t *testing.T) {
			m.Files = files
			testOn(t, line, m, "^TestGuestKnown$")
		})
	}
}

const (
	knownModule = "/lib/modules/known.ko"
	knownDevice = "/dev/known"
	knownCopies = 32768 // how many calls the module notes
)

// knownMembers lists the members of struct known in the order in which the module notes
// them. The last one is an array of characters.
var knownMembers = [...]string{
	"number", "low", "mid", "high", "wide", "list[0]", "list[1]", "list[2]", "list[3]", "list[4]",
	"part.kind", "part.deep.sum", "part.deep.words[0]", "part.deep.words[1]", "part.deep.words[2]",
	"part.id", "part.half[0]", "part.half[1]", "name",
}

// A knownCopy is the module's note of a call: struct copy. Pairs are before and after.
type knownCopy struct {
	Returned uint64
	Result   int64
	Out      [2]int64
	Members  [2][len(knownMembers)]int64
}

// pair returns a value of a spec before and after the call.
func (c *knownCopy) pair(value string) [2]int64 {
	switch value {
	case "return":
		return [2]int64{c.Result, c.Result}
	case "*out":
		return c.Out
	}
	i := slices.Index(knownMembers[:], strings.TrimPrefix(value, "k->"))
	return [2]int64{c.Members[0][i], c.Members[1][i]}
}

// changed reports whether the call has changed any of these values.
func (c *knownCopy) changed(values ...string) bool {
	return slices.ContainsFunc(values, func(value string) bool { p := c.pair(value); return p[0] != p[1] })
}

// knownSpecs lists what is traced, each with the calls that must be shown.
var knownSpecs = []struct {
	spec  string
	shown func(c *knownCopy) bool
}{
	{
		"known_change(nr, after(k->low), after(k->high), k->wide, after(k->wide), after(k->part.half[1]), *out, after(*out), return)",
		func(c *knownCopy) bool { return true },
	},
	{
		"known_change(nr, diff(k))",
		func(c *knownCopy) bool { return c.Members[0] != c.Members[1] },
	},
	{
		"known_change(nr, diff(k->high), diff(k->part.deep.words[2]), diff(*out), return)",
		func(c *knownCopy) bool { return c.changed("k->high", "k->part.deep.words[2]", "*out") },
	},
	{
		"known_change(nr, after(k->high) < 0, k->number, after(k->number)) if after(k->number) > k->number && after(*out) != return || diff(k->mid)",
		func(c *knownCopy) bool {
			number := c.pair("k->number")
			rises := number[1] > number[0] && c.Out[1] != c.Result
			return c.pair("k->high")[1] < 0 && (rises || c.changed("k->mid"))
		},
	},
}

// TestGuestKnown runs in the machines that TestKnown boots.
func TestGuestKnown(t *testing.T) {
	if !guest.Inside() {
		t.Skip("runs inside a virtual machine, see TestKnown")
	}
	f, err := os.Open(knownModule)
	require.NoError(t, err)
	defer f.Close()
	require.NoError(t, unix.FinitModule(int(f.Fd()), "", 0))
	k := openKernel(t)
	for _, attach := range k.kinds(t) {
		t.Run(string(attach), func(t *testing.T) { testKnown(t, k, attach) })
	}
}

// testKnown traces calls by one attach kind, 200,000 with -full. Each spec has a session
// of its own, with room for calls as deep as these.
func testKnown(t *testing.T, k *kernel, attach compiler.Kind) {
	if attach == compiler.Fentry && k.target().Features.Preemptible {
		require.Error(t, k.refused(t, attach, knownSpecs[0].spec)) // see testPairing
		return
	}
	calls, ended, shown, missed := 0, 0, 0, uint64(0)
	for seed := uint32(0); calls < rounds(10_000, 200_000); seed++ {
		var tracers []*tracer
		for _, s := range knownSpecs {
			tracers = append(tracers, k.trace(t, attach, compiler.Options{}, s.spec))
		}
		copies := makeKnown(t, seed)
		for i, tr := range tracers {
			events, n := compareKnown(t, tr, copies, knownSpecs[i].shown)
			require.NoError(t, tr.Close())
			shown, missed = shown+events, missed+n
		}
		for i := range copies {
			ended += int(1 - copies[i].Returned)
		}
		calls += len(copies)
	}
	t.Logf("%d calls, in %d of which their thread has ended: %d events, %d missed", calls, ended, shown, missed)
	require.Greater(t, 100*ended, calls)
}

// makeKnown has the module make some 20,000 calls, in threads that stay and in those that
// end, and returns what it notes of them.
func makeKnown(t *testing.T, seed uint32) []knownCopy {
	device, err := os.OpenFile(knownDevice, os.O_RDWR, 0)
	require.NoError(t, err)
	defer device.Close()
	var number atomic.Uint32
	threads(t, 4, func(i int) error {
		for j := range uint32(120) {
			thread, exits := uint32(0), uint32(0)
			switch j % 4 {
			case 1:
				thread = 1
			case 3:
				thread, exits = 1, 1
			}
			order := []uint32{9, thread, exits, seed<<16 + number.Add(1)}
			var b bytes.Buffer
			if err := binary.Write(&b, binary.LittleEndian, order); err != nil {
				return err
			}
			if _, err := unix.Write(int(device.Fd()), b.Bytes()); err != nil {
				return err
			}
		}
		return nil
	})
	text, err := io.ReadAll(device)
	require.NoError(t, err)
	copies := make([]knownCopy, len(text)/binary.Size(knownCopy{}))
	require.NoError(t, binary.Read(bytes.NewReader(text), binary.LittleEndian, copies))
	require.Less(t, len(copies), knownCopies)
	return copies
}

// compareKnown compares the events with the copies. Each call that must be shown is shown
// once, unless the kernel has missed it. It returns the number of events, and of the
// programs' runs that were missed.
func compareKnown(t *testing.T, tr *tracer, copies []knownCopy, shown func(*knownCopy) bool) (events int, missed uint64) {
	seen := make([]int, len(copies))
	tr.events(t, func(ev *runtime.Event) {
		events++
		nr := number(ev, "nr")
		require.Less(t, nr, uint64(len(copies)))
		seen[nr]++
		for i := range ev.Values {
			requireKnown(t, &ev.Values[i], &copies[nr])
		}
	})
	require.Equal(t, compiler.Counters{}, tr.counters(t))
	missed = tr.missed(t)
	absent := 0
	for nr := range copies {
		want := 0
		if copies[nr].Returned == 1 && shown(&copies[nr]) {
			want = 1
		}
		require.LessOrEqual(t, seen[nr], want, "call %d: %+v", nr, copies[nr])
		absent += want - seen[nr]
	}
	require.LessOrEqual(t, uint64(absent), missed)
	return events, missed
}

// requireKnown compares a value of an event with the copy of its call.
func requireKnown(t *testing.T, v *runtime.Value, c *knownCopy) {
	require.Zero(t, v.Fault, v.Name)
	if v.Name == "nr" || v.Hidden {
		return // nr tells which call it is, and a hidden value is compared with its diff
	}
	if v.Name == "diff(k)" {
		requireChanges(t, btfdump.Changes(v.DataType(), v.Was.Data, v.Data), c)
		return
	}
	name, after := v.Name, 0
	if of, ok := strings.CutPrefix(v.Name, "after("); ok {
		name, after = strings.TrimSuffix(of, ")"), 1
	}
	if of, ok := strings.CutPrefix(v.Name, "diff("); ok {
		name, after = strings.TrimSuffix(of, ")"), 1
		require.Equal(t, knownBytes(c.pair(name)[0], len(v.Was.Data)), v.Was.Data, v.Name)
	}
	require.Equal(t, knownBytes(c.pair(name)[after], len(v.Data)), v.Data, v.Name)
}

// requireChanges checks that the members that differ are those of the copy, with
// the same bytes before and after the call.
func requireChanges(t *testing.T, changes []btfdump.Change, c *knownCopy) {
	for i, name := range knownMembers {
		before, after := c.Members[0][i], c.Members[1][i]
		if before == after {
			continue
		}
		require.NotEmpty(t, changes, name)
		change := changes[0]
		changes = changes[1:]
		require.Equal(t, name, change.Member)
		require.Equal(t, knownBytes(before, len(change.Before)), change.Before, name)
		require.Equal(t, knownBytes(after, len(change.After)), change.After, name)
	}
	require.Empty(t, changes)
}

// knownBytes returns the bytes of a member of the given size.
func knownBytes(n int64, size int) []byte {
	return binary.LittleEndian.AppendUint64(nil, uint64(n))[:size]
}
