package runtime

import (
	"encoding/binary"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler"
)

// newUnit returns a unit of one event with a scalar, a string and a structure.
func newUnit() *compiler.Unit {
	char := &btf.Int{Name: "char", Size: 1, Encoding: btf.Signed}
	return &compiler.Unit{Events: []*compiler.EventType{{
		Probe: &compiler.Probe{Func: &compiler.Function{Name: "open"}},
		Kind:  compiler.CallEvent,
		Items: []*compiler.Value{
			{Name: "dfd", Scalar: &compiler.Scalar{Size: 4, Signed: true}},
			{Name: "path", Pointee: char, Text: compiler.KernelText},
			{Name: "file", Pointee: &btf.Struct{Size: 100}},
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

// TestDecodeStack verifies that a stack is as long as its frames.
func TestDecodeStack(t *testing.T) {
	rec := make([]byte, 32)
	binary.NativeEndian.PutUint64(rec, 16) // bytes
	v := &compiler.Value{Name: "$kstack", Base: compiler.Base{Builtin: compiler.KernelStack}}
	val := decodeValue(v, compiler.Slot{Data: 8, Cap: 24, Full: 24}, compiler.NoFault, rec)
	require.Len(t, val.Data, 16)
	require.Equal(t, 16, val.Full)
	require.False(t, val.Cut)
}

func TestDecode(t *testing.T) {
	var ev Event
	require.NoError(t, ev.Decode(newUnit(), newRecord()))
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

// TestDecodeStringLimit verifies that a string is cut if it has one byte more than
// can be shown.
func TestDecodeStringLimit(t *testing.T) {
	for text, cut := range map[string]bool{"12345678\x00": false, "123456789\x00": true} {
		rec := newRecord()
		copy(rec[88:], text)
		var ev Event
		require.NoError(t, ev.Decode(newUnit(), rec))
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
		{1<<64 - 524, "error pointer -ENOTSUPP"}, // of the kernel alone
		{1<<64 - 4095, "error pointer -4095"},
		{0xffff_8880_0000_0000, "no readable memory at 0xffff888000000000"},
	} {
		rec := newRecord()
		rec[56+2] = byte(compiler.PointeeFault)
		binary.NativeEndian.PutUint64(rec[80:], tc.addr)
		var ev Event
		require.NoError(t, ev.Decode(newUnit(), rec))
		require.Equal(t, compiler.PointeeFault, ev.Values[2].Fault)
		require.Empty(t, ev.Values[2].Data)
		require.Equal(t, tc.want, ev.Values[2].Reason())
	}
}

// TestDecodeErrors verifies that a record of another kind is an error, not a panic.
func TestDecodeErrors(t *testing.T) {
	var ev Event
	require.EqualError(t, ev.Decode(newUnit(), make([]byte, 10)), "decode a record of 10 bytes: it has no header")
	require.EqualError(t, ev.Decode(newUnit(), newRecord()[:100]), "decode a record of open: 100 bytes of 128")
	rec := newRecord()
	rec[0] = 5
	require.EqualError(t, ev.Decode(newUnit(), rec), "decode a record: there is no event 5")
}

func BenchmarkDecode(b *testing.B) {
	unit, rec := newUnit(), newRecord()
	var ev Event
	b.ReportAllocs()
	for b.Loop() {
		if err := ev.Decode(unit, rec); err != nil {
			b.Fatal(err)
		}
	}
}

// TestReasonOfUserMemory verifies that reasons name whose memory could not be read.
func TestReasonOfUserMemory(t *testing.T) {
	user := &compiler.Value{Path: []compiler.Access{{In: compiler.UserSpace}}}
	require.Equal(t, "no readable user memory at 0xc87780", (&Value{Value: user, Addr: 0xc87780}).Reason())
	kernel := &compiler.Value{Path: []compiler.Access{{}}}
	require.Equal(t, "0xc87780 is a user-space address", (&Value{Value: kernel, Addr: 0xc87780}).Reason())
}

// TestNumbers covers numbers of all sizes, signed and unsigned.
func TestNumbers(t *testing.T) {
	require.Empty(t, (&Value{Value: &compiler.Value{}, Data: make([]byte, 8)}).Elements(), "it is no array with an Elem")
	for _, tc := range []struct {
		data     []byte
		unsigned uint64
		signed   int64
	}{
		{[]byte{0xfe}, 0xfe, -2},
		{[]byte{0xfe, 0x7f}, 0x7ffe, 0x7ffe},
		{[]byte{0xea, 0xff, 0xff, 0xff}, 0xffffffea, -22},
		{[]byte{1, 0, 0, 0, 0, 0, 0, 0x80}, 1<<63 + 1, -1<<63 + 1},
		{[]byte{1, 0, 0, 0, 0, 0, 0, 0, 9}, 1, 1},
	} {
		v := Value{Data: tc.data}
		require.Equal(t, tc.unsigned, v.Uint64())
		require.Equal(t, tc.signed, v.Int64())
	}
}

// TestAppendPath verifies that names are put together as the kernel does in /proc, and that
// any bytes give some text.
func TestAppendPath(t *testing.T) {
	for _, tc := range []struct {
		end   compiler.PathEnding
		gone  byte
		names string
		want  string
	}{
		{compiler.PathWhole, 0, "", "/"},
		{compiler.PathWhole, 0, "passwd\x00etc\x00", "/etc/passwd"},
		{compiler.PathWhole, 0, "a\x00\x1b[31m\x00", "/\x1b[31m/a"},
		{compiler.PathWhole, 1, "x\x00tmp\x00", "/tmp/x (deleted)"},
		{compiler.PathCut, 0, "c\x00b\x00", ".../b/c"},
		{compiler.PathCut, 1, "c\x00", ".../c (deleted)"},
		{compiler.PathDetached, 0, "c\x00b\x00", "(unreachable)/b/c"},
		{compiler.PathNameless, 0, "pipefs\x00", "pipe:[4711]"},
		{compiler.PathNameless, 0, "sockfs\x00", "socket:[4711]"},
		{compiler.PathNameless, 0, "nsfs\x00", "nsfs:[4711]"},
		{compiler.PathNameless, 0, "anon_inodefs\x00", "anon_inode:[name]"},
		{compiler.PathNameless, 0, "tmpfs\x00", "/[name] (deleted)"},
	} {
		data := make([]byte, compiler.PathName+16)
		copy(data[compiler.PathNames:], tc.names)
		if tc.end == compiler.PathNameless {
			copy(data[compiler.PathName:], "[name]\x00")
			binary.NativeEndian.PutUint64(data[compiler.PathIno:], 4711)
		} else {
			binary.NativeEndian.PutUint32(data[compiler.PathLength:], uint32(len(tc.names)))
		}
		data[compiler.PathEnd], data[compiler.PathGone] = byte(tc.end), tc.gone
		got, cut := appendPath([]byte("before"), data)
		require.Equal(t, "before"+tc.want, string(got))
		require.Equal(t, strings.HasPrefix(tc.want, ".../"), cut)
	}
}

// FuzzPath verifies that any bytes that a record may have give a path that is not longer
// than they are, apart from remarks such as " (deleted)".
func FuzzPath(f *testing.F) {
	f.Add([]byte("\x03\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00a\x00\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) < compiler.PathName+compiler.LongestName {
			data = append(data, make([]byte, compiler.PathName+compiler.LongestName-len(data))...)
		}
		got, _ := appendPath(nil, data)
		require.LessOrEqual(t, len(got), len(data)+64)
	})
}

// TestShortPath verifies that a record without room for a path is an error.
func TestShortPath(t *testing.T) {
	v := &compiler.Value{Name: "p", Text: compiler.PathText}
	ev := &compiler.EventType{Probe: &compiler.Probe{Func: &compiler.Function{Name: "f"}}, Items: []*compiler.Value{v}, Layout: compiler.Layout{
		Size: 192, Strings: 1, Texts: 64, Faults: 48, Slots: []compiler.Slot{{Off: 56, Data: 64, Cap: 128, Full: 128}},
	}}
	unit := &compiler.Unit{Events: []*compiler.EventType{ev}}
	require.EqualError(t, new(Event).Decode(unit, make([]byte, 64)), "decode a record of f: 0 bytes are too few for a path")
	require.EqualError(t, new(Event).Decode(unit, make([]byte, 72)), "decode a record of f: 8 bytes are too few for a path")
	require.NoError(t, new(Event).Decode(unit, make([]byte, 192)))
}
