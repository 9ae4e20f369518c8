package main

import (
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/cilium/ebpf"

	"github.com/ksnoop/ksnoop/compiler"
)

// mapTable prints the maps of a unit with their sizes.
func mapTable(w io.Writer, unit *compiler.Unit) {
	t := newTable("map", "type", "key", "value", "entries", "memory")
	for _, name := range slices.Sorted(maps.Keys(unit.Collection.Maps)) {
		m := unit.Collection.Maps[name]
		if m.Type == ebpf.RingBuf {
			t.row(name, m.Type.String(), "", "", "", byteSize(int(m.MaxEntries)))
			continue
		}
		t.row(name, m.Type.String(), fmt.Sprint(m.KeySize), fmt.Sprint(m.ValueSize), fmt.Sprint(m.MaxEntries), mapMemory(m))
	}
	fmt.Fprintf(w, "\n%s", t)
}

// noPrealloc is BPF_F_NO_PREALLOC.
const noPrealloc = 1

// mapMemory is what the elements of a map take.
func mapMemory(m *ebpf.MapSpec) string {
	size := byteSize(int(m.MaxEntries) * int(m.ValueSize))
	switch {
	case m.Type == ebpf.PerCPUArray:
		return size + " for each CPU"
	case m.Type == ebpf.Hash:
		size = byteSize(int(m.MaxEntries) * int(m.KeySize+m.ValueSize))
		if m.Flags&noPrealloc != 0 {
			return "as used, at most " + size
		}
	}
	return size
}

// byteSize is a number of bytes for people to read.
func byteSize(n int) string {
	switch {
	case n >= 1<<20:
		return fmt.Sprintf("%.4g MiB", float64(n)/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%.4g KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%d bytes", n)
}
