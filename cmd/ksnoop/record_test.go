package main

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/btfdump"
	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/compiler/spec/kprobe"
	"github.com/ksnoop/ksnoop/runtime"
)

// FuzzRecord: any bytes taken for a record, of any length, give an error or
// text that is safe to show. Nothing is read behind them, and they stay as they
// are.
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
		rec = slices.Clip(bytes.Clone(rec)) // what is behind it cannot be read
		before := bytes.Clone(rec)
		var ev runtime.Event
		if err := ev.Decode(unit, rec); err != nil {
			require.False(t, fit, err)
			return
		}
		for _, options := range []btfdump.Options{{EmitStrings: true, Indent: " "}, {Compact: true, EmitZeroes: true}} {
			p := newPrinter(options, unit, newSymbols(namedSymbols))
			require.NoError(t, p.event(&ev))
			require.Regexp(t, safe, string(p.text))
		}
		require.Equal(t, before, rec)
	})
}

// fitRecord makes bytes a record of an event, by its length and its number.
func fitRecord(unit *compiler.Unit, rec []byte, event int) []byte {
	event %= len(unit.Events)
	whole := make([]byte, unit.Events[event].Layout.Size)
	copy(whole, rec)
	binary.NativeEndian.PutUint32(whole[compiler.HeaderEvent:], uint32(event))
	return whole
}

// recordUnit has events with values of all kinds.
func recordUnit(f testing.TB) *compiler.Unit {
	types, err := btf.LoadSpecFromReader(bytes.NewReader(kernelTypes(f)))
	require.NoError(f, err)
	features, err := featuresOf("", types, compiler.AMD64)
	require.NoError(f, err)
	target := &compiler.Target{Kernel: types, Module: noModule, Arch: compiler.AMD64, Features: features}
	var traces []*spec.Trace
	for _, text := range []string{
		"vfs_read", "vfs_open(path, path:x, *path:c, path:symbol, path:ustring, path[3])", "vfs_print(fmt)", "tp:tick",
		"vfs_read(count:x, count:u, count:d, count:c, count:symbol, count:be, count:string, file:ip4, return > 1, file:mac, file:ip6)",
		"vfs_read(file->flags:ip4, file->flags:s8, file->pos, *file, (u8)count, (_Bool)count, return:x16)",
		"vfs_read($comm, $pid, $tid, $cpu, $uid, $cgroup, $duration, $kstack, $arg1, return)",
		"p:a vfs_open +0($arg1):string +0($arg1):s64[5] path:symbol +u0($arg1):char[3] $comm %di:b3@1/8 y=path:symstr",
		"r:b vfs_read $retval count:char file->pos file->flags:x32 t=\\\"text\"",
	} {
		if trace, err := kprobe.ParseAny(text); err == nil {
			traces = append(traces, trace)
			continue
		}
		f.Fatalf("%s: %v", text, err)
	}
	plan, err := compiler.ResolveAll(traces, target, compiler.Wishes{})
	require.NoError(f, err)
	unit, err := compiler.Compile(plan.Probes, compiler.Options{
		Arch: target.Arch, Features: target.Features, RingBytes: defaultRing, MaxBytes: 64, Tally: true,
	})
	require.NoError(f, err)
	return unit
}
