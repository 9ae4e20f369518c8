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

// TestInterrupted verifies what is said of ftrace, or kprobes, that are switched off while
// functions are traced, and that what they missed is not known.
func TestInterrupted(t *testing.T) {
	file := filepath.Join(t.TempDir(), "enabled")
	set := func(value string) { require.NoError(t, os.WriteFile(file, []byte(value+"\n"), 0o644)) }
	traced := func(k compiler.Kind) *attached {
		return &attached{Attachment: compiler.Attachment{Kind: k, Places: []compiler.Place{{Offset: 8, Probe: &compiler.Probe{Func: &compiler.Function{}}}}}}
	}
	function, kprobe, tracepoint := traced(compiler.KprobeMulti), traced(compiler.Kprobe), traced(compiler.TpBTF)
	for i, concerned := range []*attached{function, kprobe} {
		off := tracingSwitches[i]
		defer func(file string) { off.file = file }(off.file)
		off.file = file
		s := &Session{attached: []*attached{function, kprobe, tracepoint}}
		set("1")
		require.Empty(t, s.Interrupted())
		set("0")
		require.Equal(t, []string{off.note}, s.Interrupted())
		what := s.interruption()
		for _, at := range s.attached {
			require.Equal(t, at == concerned, what.concerns(at))
		}
		s.attached = []*attached{tracepoint}
		require.Empty(t, s.Interrupted())
		off.file = ""
	}
}

// TestUnloadedVariables verifies what is said of variables whose module has gone, once.
func TestUnloadedVariables(t *testing.T) {
	const module = "no_such_module"
	reads := &compiler.Probe{Func: &compiler.Function{}, Modules: []string{module}}
	other := &compiler.Probe{Func: &compiler.Function{}}
	s := &Session{kernel: &Kernel{modules: map[string]uint64{module: moduleID(module)}}}
	for _, p := range []*compiler.Probe{reads, other} {
		s.attached = append(s.attached, &attached{Attachment: compiler.Attachment{Kind: compiler.TpBTF, Places: []compiler.Place{{Probe: p}}}})
	}
	s.unit = &compiler.Unit{Events: []*compiler.EventType{{Probe: other}, {Probe: reads}}}
	require.NoError(t, s.checkAllVariables())
	require.Empty(t, s.Interrupted())
	s.kernel.modules[module] = 7 // it was there
	require.Equal(t, []string{"module no_such_module was unloaded while its variables were read: their values from then on are those of other memory"}, s.Interrupted())
	i := s.interruption()
	require.True(t, i.concerns(s.attached[0]))
	require.False(t, i.concerns(s.attached[1]))
	require.NoError(t, s.checkVariables(other))
	require.EqualError(t, s.checkAllVariables(), "module no_such_module was unloaded, with the variables that are read: start again when it is loaded")
	require.Empty(t, s.Interrupted())
}
