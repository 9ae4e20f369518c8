package codegen

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/compilertest"
	"github.com/ksnoop/ksnoop/compiler/resolve"
)

// iteration reads iterators in the interpreter.
type iteration struct {
	*rig
	number uint64 // of the object
}

func newIteration(t testing.TB, f compiler.Features, opts compiler.Options, spec string) *iteration {
	r, err := measuredRig(t, f, opts, resolve.Wishes{}, compiler.NoMeasure, spec)
	require.NoError(t, err)
	it := &iteration{rig: r}
	it.seqFile, it.seqRoom = r.alloc(make([]byte, 8)), 1<<15
	return it
}

// object runs the program for the next object, or at the end for none, and reports
// whether what it wrote has found room.
func (it *iteration) object(words ...uint64) (room bool) {
	before := len(it.seq)
	meta := it.alloc(le(it.seqFile, uint64(1), it.number))
	ctx := it.alloc(le(append([]uint64{meta}, words...)))
	at := it.unit.Attachments[0]
	require.Equal(it.t, compiler.Iter, at.Kind)
	it.typed.context(at.Places[0].Probe.Func, at.Kind, ctx)
	require.NoError(it.t, it.run(it.unit.Collection.Programs[at.Program].Instructions, ctx))
	require.Zero(it.t, it.result)
	return len(it.seq) > before
}

// next counts the object as seen.
func (it *iteration) next() { it.number++ }

// rows returns the records of the rows.
func (it *iteration) rows() (rows [][]byte) {
	for rest := it.seq; len(rest) > 0; {
		n := binary.LittleEndian.Uint64(rest)
		rows, rest = append(rows, rest[8:][:n]), rest[8+n:]
	}
	return rows
}

// shown returns the first values of the rows as numbers, with their faults.
func (it *iteration) shown() (all []string) {
	for _, rec := range it.rows() {
		ev := it.unit.Events[binary.LittleEndian.Uint32(rec)]
		require.Equal(it.t, compiler.RowEvent, ev.Kind)
		require.LessOrEqual(it.t, ev.Layout.Least(), len(rec))
		text := ""
		for i, v := range ev.Items {
			slot := ev.Layout.Slot(i, len(rec))
			switch fault := compiler.Fault(rec[ev.Layout.Faults+i]); {
			case fault != compiler.NoFault:
				text += fmt.Sprintf(" %s:fault%d", v.Name, fault)
			case v.Text != compiler.NoText:
				b := rec[slot.Data:][:slot.Cap]
				text += fmt.Sprintf(" %s=%s", v.Name, b[:slices.Index(b, 0)])
			case v.Pointee != nil:
				text += fmt.Sprintf(" %s=*", v.Name)
			default:
				text += fmt.Sprintf(" %s=%d", v.Name, int64(binary.LittleEndian.Uint64(rec[slot.Off:])))
			}
		}
		all = append(all, text[1:])
	}
	return all
}

func TestRows(t *testing.T) {
	const garbage = 0xabcd_0000_0000_0000
	for _, tc := range []struct {
		spec string
		want []string
	}{
		{"iter:buf(buf->len, fd)", []string{"buf->len=105 fd=7", "buf->len:fault1 fd=8"}},
		{"iter:buf(buf->len, fd > 7)", []string{"buf->len:fault1 fd=8"}},
		{"iter:buf(fd) if buf->len == 105", []string{"fd=7"}},
		{"iter:buf(fd) if !(buf->len == 105)", nil},
		{"iter:buf(fd) if buf->type == 5 && buf->delta == -2", []string{"fd=7"}},
		{"iter:buf(fd) if buf->len == 3 || fd == 8", []string{"fd=8"}},
		{"iter:buf(buf->dev->alias, buf->err, meta->seq_num, fd + 1)", []string{
			"buf->dev->alias=uplink buf->err=-1 meta->seq_num=0 fd + 1=8", "buf->dev->alias:fault1 buf->err:fault1 meta->seq_num=1 fd + 1=9"}},
		{"iter:buf(buf->dev)", []string{"buf->dev=*", "buf->dev:fault1"}},
	} {
		for _, f := range []compiler.Features{compilertest.WithTrampoline, compilertest.WithProbes, compilertest.WithKprobeSession} {
			for _, count := range []bool{false, true} {
				it := newIteration(t, f, compiler.Options{CountCalls: count, Self: 7, PID: 99}, tc.spec)
				buf, _ := bufAndDev(it.machine)
				it.object(buf, garbage|7)
				it.next()
				it.object(0xffff_8888_0000_0000, garbage|8)
				it.next()
				it.object(0, 0) // the end
				require.Equal(t, tc.want, it.shown(), tc.spec)
				if count {
					c := it.counters(0)
					require.Equal(t, uint64(2), c.Matched+c.Filtered, tc.spec)
					require.Equal(t, uint64(len(tc.want)), c.Matched, tc.spec)
				}
			}
		}
	}
}

// A row that did not fit is written and counted when the object comes again.
func TestRowAgain(t *testing.T) {
	for _, spec := range []string{"iter:buf(fd, buf->dev->alias)", "iter:ksym(ksym->alias, meta->seq_num)"} {
		it := newIteration(t, compilertest.WithTrampoline, compiler.Options{CountCalls: true}, spec)
		buf, b := bufAndDev(it.machine)
		if spec[:9] == "iter:ksym" {
			buf = binary.LittleEndian.Uint64(b[8:])
		}
		written := 0
		it.seqRoom = 1000
		for written < 20 {
			if it.object(buf, 3) {
				written++
				it.next()
				continue
			}
			it.seqRoom += 1000 // the next read
		}
		it.number-- // the kernel counts objects
		last := buf
		if spec[:9] != "iter:ksym" {
			last = 0
		}
		require.False(t, it.object(last, 3), "the last call, which is no object")
		require.Len(t, it.rows(), 20)
		require.Equal(t, uint64(20), it.counters(0).Matched)
		require.Zero(t, it.counters(0).Filtered)
	}
}

// A string takes as much room as it needs.
func TestRowStrings(t *testing.T) {
	for _, n := range []int{0, 46, 47, 48, 254, 255, 300, 4095, 4096, 5000} {
		it := newIteration(t, compilertest.WithTrampoline, compiler.Options{}, "iter:ksym(ksym->alias, ksym->index, ksym->alias:string)")
		dev := make([]byte, 32)
		dev[16] = 42
		binary.LittleEndian.PutUint64(dev[24:], it.alloc(append(slices.Repeat([]byte{'x'}, n), 0)))
		require.True(t, it.object(it.alloc(dev)))
		text := string(slices.Repeat([]byte{'x'}, min(n, compiler.DefaultMaxBytes+1)))
		require.Equal(t, []string{fmt.Sprintf("ksym->alias=%s ksym->index=42 ksym->alias=%s", text, text)}, it.shown(), "%d bytes", n)
		if n < 46 {
			require.Less(t, len(it.seq), 256)
		}
	}
}

// Objects are counted by key; nothing is written for them.
func TestRowTables(t *testing.T) {
	for _, f := range []compiler.Features{compilertest.WithTrampoline, compilertest.WithProbes} {
		it := newIteration(t, f, compiler.Options{Self: 7}, "iter:buf(buf->dev->alias, count(), sum(fd), min(fd), max(fd)) if fd > 1")
		buf, _ := bufAndDev(it.machine)
		for fd := range uint64(5) {
			it.object(buf, fd)
		}
		it.object(0, 9)
		require.Empty(t, it.seq)
		require.Equal(t, []string{"uplink calls=3 count=3 sum=9 min=2 max=4"}, it.rig.rows(0))
	}
}

func TestRowTooLarge(t *testing.T) {
	p := mustResolve(t, compilertest.NewTarget(t, compilertest.WithTrampoline), "iter:ksym(ksym->alias)")
	_, err := generate([]*compiler.Probe{p}, compiler.Options{MaxBytes: 1 << 15})
	require.ErrorContains(t, err, "a row of iter:ksym takes up to 32840 bytes, and the kernel passes on 32759\n")
}
