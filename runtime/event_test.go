package runtime

import (
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/compiler"
)

// newUnit is a unit of one event with a scalar, a string and a record.
func newUnit() *compiler.Unit {
	char := &btf.Int{Name: "char", Size: 1, Encoding: btf.Signed}
	return &compiler.Unit{Events: []*compiler.Event{{
		Probe: &compiler.Probe{Func: &compiler.Function{Name: "open"}},
		Kind:  compiler.CallEvent,
		Items: []*compiler.Item{
			{Value: &compiler.Value{Name: "dfd", Scalar: &compiler.Scalar{Size: 4, Signed: true}}},
			{Value: &compiler.Value{Name: "path", Pointee: char, String: true}},
			{Value: &compiler.Value{Name: "file", Pointee: &btf.Struct{Size: 100}}},
		},
		Layout: compiler.Layout{Size: 128, Start: 48, Faults: 56, Slots: []compiler.Slot{
			{Off: 64, Data: 64, Cap: 8, Full: 8},
			{Off: 72, Data: 88, Cap: 10, Full: 10},
			{Off: 80, Data: 104, Cap: 16, Full: 100},
		}},
	}}}
}

func newRecord() []byte {
	rec := make([]byte, 128)
	put := func(off int, v uint64) { binary.NativeEndian.PutUint64(rec[off:], v) }
	binary.NativeEndian.PutUint32(rec[compiler.HeaderCPU:], 3)
	put(compiler.HeaderPIDTID, 7<<32|8)
	put(compiler.HeaderTime, 2000)
	put(compiler.HeaderCall, 99)
	copy(rec[compiler.HeaderComm:], "worker\x00old")
	put(48, 1500)
	put(64, 0xffff_ff9c)
	put(72, 0xffff_8880_0000_1000)
	copy(rec[88:], "eth0\x00junk")
	put(80, 0xffff_8880_0000_2000)
	rec[104] = 1
	return rec
}

func TestDecode(t *testing.T) {
	var ev Event
	require.NoError(t, ev.decode(newUnit(), newRecord()))
	require.Equal(t, 3, ev.CPU)
	require.Equal(t, uint32(7), ev.PID)
	require.Equal(t, uint32(8), ev.TID)
	require.Equal(t, 2000*time.Nanosecond, ev.Time)
	require.Equal(t, 1500*time.Nanosecond, ev.Start)
	require.Equal(t, uint64(99), ev.Call)
	require.Equal(t, "worker", string(ev.Comm))
	require.Len(t, ev.Values, 3)
	require.Equal(t, []byte{0x9c, 0xff, 0xff, 0xff}, ev.Values[0].Data)
	require.Equal(t, "eth0", string(ev.Values[1].Data))
	require.False(t, ev.Values[1].Cut)
	require.Equal(t, uint64(0xffff_8880_0000_2000), ev.Values[2].Addr)
	require.Len(t, ev.Values[2].Data, 16)
	require.True(t, ev.Values[2].Cut)
	require.Equal(t, 100, ev.Values[2].Full)
}

// A string is cut if it has one byte more than there is room to show.
func TestDecodeStringLimit(t *testing.T) {
	for text, cut := range map[string]bool{"12345678\x00": false, "123456789\x00": true} {
		rec := newRecord()
		copy(rec[88:], text)
		var ev Event
		require.NoError(t, ev.decode(newUnit(), rec))
		require.Equal(t, "12345678", string(ev.Values[1].Data))
		require.Equal(t, cut, ev.Values[1].Cut)
	}
}

func TestDecodeFaults(t *testing.T) {
	for _, tc := range []struct {
		addr uint64
		want string
	}{
		{0, "NULL pointer"},
		{0x10, "0x10 is in the NULL page"},
		{0x7fff_1234_5678, "0x7fff12345678 is a user-space address"},
		{1<<64 - 2, "error pointer -ENOENT"},
		{1<<64 - 4095, "error pointer -4095"},
		{0xffff_8880_0000_0000, "no readable memory at 0xffff888000000000"},
	} {
		rec := newRecord()
		rec[56+2] = byte(compiler.PointeeFault)
		binary.NativeEndian.PutUint64(rec[80:], tc.addr)
		var ev Event
		require.NoError(t, ev.decode(newUnit(), rec))
		require.Equal(t, compiler.PointeeFault, ev.Values[2].Fault)
		require.Empty(t, ev.Values[2].Data)
		require.Equal(t, tc.want, ev.Values[2].Reason())
	}
}

// A record that is not ours is an error, not a panic.
func TestDecodeErrors(t *testing.T) {
	var ev Event
	require.EqualError(t, ev.decode(newUnit(), make([]byte, 10)), "decode a record of 10 bytes: it has no header")
	require.EqualError(t, ev.decode(newUnit(), newRecord()[:100]), "decode a record of open: 100 bytes of 128")
	rec := newRecord()
	rec[0] = 5
	require.EqualError(t, ev.decode(newUnit(), rec), "decode a record: there is no event 5")
}

func TestFeatures(t *testing.T) {
	for release, want := range map[string]compiler.Features{
		"5.4.0-generic":        {TrampolineWords: 6, ReturnInstances: 1024},
		"5.10.0-32-amd64":      {Trampoline: true, TrampolineWords: 6, ReturnInstances: 1024},
		"6.1.0-50-cloud-amd64": {Trampoline: true, TrampolineWords: 6, TrampolineStructs: true, RuntimeAlloc: true},
		"7.2.13+deb14":         {Trampoline: true, TrampolineWords: 12, TrampolineStructs: true, RuntimeAlloc: true},
	} {
		v, err := parseRelease(release)
		require.NoError(t, err)
		require.Equal(t, want, features(v, false), release)
	}
	_, err := parseRelease("linux")
	require.ErrorContains(t, err, `read kernel release "linux"`)
}

func BenchmarkDecode(b *testing.B) {
	unit, rec := newUnit(), newRecord()
	var ev Event
	b.ReportAllocs()
	for b.Loop() {
		if err := ev.decode(unit, rec); err != nil {
			b.Fatal(err)
		}
	}
}

func TestAttachError(t *testing.T) {
	probe := newUnit().Events[0].Probe
	for err, want := range map[error]string{
		unix.EBUSY:                          "attach fexit to open: the kernel allows no probe there (error 16): it is marked notrace, or its code is not one plain function",
		fmt.Errorf("perf: %w", unix.EACCES): "attach fexit to open: the kernel does not permit it (error 13): kprobes need CAP_PERFMON with kernel.perf_event_paranoid at most 2, or CAP_SYS_ADMIN",
		unix.ENOMEM:                         "attach fexit to open: cannot allocate memory",
	} {
		require.EqualError(t, &AttachError{probe, compiler.Fexit, err}, want)
	}
}
