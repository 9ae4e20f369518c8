package runtime

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler"
)

// Names are put together as the kernel does in /proc, and any bytes give some text.
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

// Any bytes that a record may have give a path that is not longer than them, but
// for what is said of it.
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
