package runtime

import (
	"os"
	"path/filepath"
	goruntime "runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler"
)

func TestHookList(t *testing.T) {
	h := hookList{reach: 4}
	require.False(t, h.has(0x1000))
	for _, hook := range []uint64{0x1000, 0x1010, 0x2004, 0x9000, 0x8000, 0x8010, 0x9008} { // of the kernel, and of two modules
		h.add(hook)
	}
	require.Len(t, h.runs, 2)
	for addr, want := range map[uint64]bool{
		0xfff: true, 0x1000: true, 0x1001: false, 0x1010: true, 0x1011: false, 0x2000: true, 0x1fff: false,
		0x2005: false, 0x9000: true, 0x9008: true, 0x9009: false, 0x8000: true, 0x8010: true, 0: false, ^uint64(0): false,
	} {
		require.Equal(t, want, h.has(addr), "%#x", addr)
	}
}

// TestByFtrace verifies which attachments see nothing while ftrace is switched off.
func TestByFtrace(t *testing.T) {
	x86 := goruntime.GOARCH == compiler.AMD64.Name
	for _, tc := range []struct {
		kind   compiler.Kind
		offset uint64
		want   bool
	}{
		{compiler.Fentry, 0, true}, {compiler.Fexit, 0, true}, {compiler.KprobeMulti, 0, true}, {compiler.KprobeSession, 0, true},
		{compiler.Kprobe, 0, x86}, {compiler.Kprobe, 4, x86}, {compiler.Kprobe, 5, false}, {compiler.Kretprobe, 0, x86},
		{compiler.TpBTF, 0, false}, {compiler.Iter, 0, false}, {compiler.Breakpoint, 0, false},
	} {
		at := compiler.Attachment{Kind: tc.kind, Places: []compiler.Place{{Offset: tc.offset}}}
		require.Equal(t, tc.want, byFtrace(at), "%s +%d", tc.kind, tc.offset)
	}
}

// TestInterrupted verifies what is said of ftrace that is switched off while functions are
// traced, and that what they were missed is not known.
func TestInterrupted(t *testing.T) {
	defer func(file string) { ftraceSwitch = file }(ftraceSwitch)
	ftraceSwitch = filepath.Join(t.TempDir(), "ftrace_enabled")
	traced := func(k compiler.Kind) *attached {
		return &attached{Attachment: compiler.Attachment{Kind: k, Places: []compiler.Place{{Probe: &compiler.Probe{Func: &compiler.Function{}}}}}}
	}
	function, tracepoint := traced(compiler.KprobeMulti), traced(compiler.TpBTF)
	s := &Session{attached: []*attached{function, tracepoint}}
	require.NoError(t, os.WriteFile(ftraceSwitch, []byte("1\n"), 0o644))
	require.Empty(t, s.Interrupted())
	require.NoError(t, os.WriteFile(ftraceSwitch, []byte("0\n"), 0o644))
	require.Equal(t, []string{"kernel.ftrace_enabled was set to 0 while functions were traced: what they did from then on is not shown"}, s.Interrupted())
	i := s.interruption()
	require.True(t, i.concerns(function))
	require.False(t, i.concerns(tracepoint))
	s.attached = s.attached[1:]
	require.Empty(t, s.Interrupted())
}
