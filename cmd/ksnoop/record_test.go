package main

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/ksnoop/ksnoop/btfdump"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/fixture"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/target"
	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/codegen"
	"github.com/ksnoop/ksnoop/compiler/resolve"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/compiler/spec/kprobe"
	"github.com/ksnoop/ksnoop/kallsyms"
	"github.com/ksnoop/ksnoop/runtime"
	"github.com/ksnoop/ksnoop/runtime/render"
	"github.com/stretchr/testify/require"
)

// FuzzRecord verifies that any bytes as a record, of any length, give an error or
// text that is safe to show, that nothing after them is read, and that they are not
// changed.
func FuzzRecord(f *testing.F) {
	unit := recordUnit(f)
	for i := range unit.Events {
		f.Add([]byte("\x00\x00\x00\x00cpu.pid.tid.12345678callcallcomm\x1b[2J\xff\x00\x00\x00\xff\xff"), uint8(i), true)
		f.Add(bytes.Repeat([]byte("\xff\x1b\x9b"), 200), uint8(i), true)
	}
	f.Add([]byte("short"), uint8(0), false)
	f.Fuzz(func(t *testing.T, rec []byte, event uint8, fit bool) {
		if fit {
			rec = fitRecord(unit, rec, int(event))
		}
		rec = slices.Clip(bytes.Clone(rec)) // the bytes after it cannot be read
		before := bytes.Clone(rec)
		var ev runtime.Event
		if err := ev.Decode(unit, rec); err != nil {
			require.False(t, fit, err)
			return
		}
		for _, options := range []btfdump.Options{{EmitStrings: true, Indent: " "}, {Compact: true, EmitZeroes: true}} {
			require.Regexp(t, safe, shown(t, unit, render.Options{Values: options}, &ev))
		}
		require.Equal(t, before, rec)
	})
}

// shown returns the text that is printed for events.
func shown(t *testing.T, unit *compiler.Unit, o render.Options, events ...*runtime.Event) string {
	o.Symbols = render.NewSymbols(func() (kallsyms.Finder, error) {
		return kallsyms.Read(strings.NewReader("ffffffff81000000 T vfs_read\nffffffff81000100 T vfs_open\n"), nil)
	}, func(err error) { t.Error(err) })
	p, err := render.New(unit, o)
	require.NoError(t, err)
	for _, ev := range events {
		require.NoError(t, p.Event(ev))
	}
	var text strings.Builder
	require.NoError(t, p.Flush(&text))
	return text.String()
}

// fitRecord changes the length and the event number of rec to what a record of an
// event can have.
func fitRecord(unit *compiler.Unit, rec []byte, event int) []byte {
	event %= len(unit.Events)
	l := unit.Events[event].Layout
	whole := make([]byte, max(l.Least(), min(len(rec), l.Size)))
	copy(whole, rec)
	binary.NativeEndian.PutUint32(whole[compiler.HeaderEvent:], uint32(event))
	return whole
}

// recordUnit returns a unit of events with values of all kinds.
func recordUnit(f testing.TB) *compiler.Unit {
	return unitOf(f, resolve.Wishes{},
		"vfs_read", "vfs_open(path, path:x, *path:c, path:symbol, path:ustring, path[3])", "vfs_print(fmt)", "tp:tick",
		"vfs_read(count:x, count:u, count:d, count:c, count:symbol, count:be, count:string, file:ip4, return > 1, file:mac, file:ip6)",
		"vfs_read(file->flags:ip4, file->flags:s8, file->pos, *file, (u8)count, (_Bool)count, return:x16)",
		"vfs_read($comm, $pid, $tid, $cpu, $uid, $cgroup, $container, $duration, $kstack, $ustack, $arg1, return)",
		"p:a vfs_open +0($arg1):string +0($arg1):s64[5] path:symbol +u0($arg1):char[3] $comm %di:b3@1/8 y=path:symstr",
		"p:c vfs_read count=%dx:u64",
		"r:b vfs_read $retval count:char file->pos file->flags:x32 t=\\\"text\"",
	)
}

// unitOf compiles specs for the kernel of package fixture.
func unitOf(f testing.TB, w resolve.Wishes, specs ...string) *compiler.Unit {
	return unitIf(f, nil, w, specs...)
}

// unitIf compiles specs as unitOf does, each with the condition of an option like
// --comm.
func unitIf(f testing.TB, cond spec.Cond, w resolve.Wishes, specs ...string) *compiler.Unit {
	unit, err := tryUnit(f, cond, w, specs...)
	require.NoError(f, err)
	return unit
}

// tryUnit compiles specs that may be wrong as unitIf does.
func tryUnit(f testing.TB, cond spec.Cond, w resolve.Wishes, specs ...string) (*compiler.Unit, error) {
	types, err := btf.LoadSpecFromReader(bytes.NewReader(fixture.Types(f)))
	require.NoError(f, err)
	features := target.FeaturesOf("", types, compiler.AMD64)
	kernel := &compiler.Target{Kernel: types, Module: target.NoModule, Arch: compiler.AMD64, Features: features}
	var traces []*spec.Trace
	for _, text := range specs {
		trace, err := kprobe.ParseAny(text)
		if err != nil {
			return nil, err
		}
		if cond != nil && trace.Cond != nil {
			trace.Cond = &spec.And{X: cond, Y: trace.Cond}
		} else if cond != nil {
			trace.Cond = cond
		}
		traces = append(traces, trace)
	}
	plan, err := resolve.All(traces, kernel, w)
	if err != nil {
		return nil, err
	}
	return codegen.Compile(plan.Probes, compiler.Options{MaxBytes: 64, CountCalls: true})
}
