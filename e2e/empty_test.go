//go:build linux

package e2e

import (
	"cmp"
	"fmt"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler"
)

// attachEmpty puts programs on vfs_read that do nothing.
func attachEmpty(t *testing.T, kinds []compiler.Kind) (detach func() error) {
	var links []link.Link
	for _, kind := range kinds {
		l, err := emptyLink(t, kind)
		require.NoError(t, err, kind)
		links = append(links, l)
	}
	return func() (err error) {
		for _, l := range links {
			err = cmp.Or(err, l.Close())
		}
		return err
	}
}

func emptyLink(t *testing.T, kind compiler.Kind) (link.Link, error) {
	const fn = "vfs_read"
	ps := &ebpf.ProgramSpec{Type: ebpf.Kprobe, License: "GPL", Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()}}
	switch kind {
	case compiler.Fentry:
		ps.Type, ps.AttachType, ps.AttachTo = ebpf.Tracing, ebpf.AttachTraceFEntry, fn
	case compiler.Fexit:
		ps.Type, ps.AttachType, ps.AttachTo = ebpf.Tracing, ebpf.AttachTraceFExit, fn
	case compiler.KprobeMulti:
		ps.AttachType = ebpf.AttachTraceKprobeMulti
	}
	prog, err := ebpf.NewProgram(ps)
	require.NoError(t, err)
	defer prog.Close() // the link keeps it
	switch kind {
	case compiler.Fentry, compiler.Fexit:
		return link.AttachTracing(link.TracingOptions{Program: prog})
	case compiler.Kprobe:
		return link.Kprobe(fn, prog, nil)
	case compiler.Kretprobe:
		return link.Kretprobe(fn, prog, nil)
	case compiler.KprobeMulti:
		return link.KprobeMulti(prog, link.KprobeMultiOptions{Symbols: []string{fn}})
	}
	return nil, fmt.Errorf("no empty program by %s", kind)
}
