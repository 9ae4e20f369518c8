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

// An empty is a program of an attach kind that does nothing, on a function.
type empty struct {
	kind   compiler.Kind
	fn     string
	cancel bool // for kprobe.session: the kernel does not follow the return
}

// emptyOn returns programs of several kinds on one function.
func emptyOn(fn string, kinds ...compiler.Kind) (all []empty) {
	for _, kind := range kinds {
		all = append(all, empty{kind: kind, fn: fn})
	}
	return all
}

func attachEmpty(t *testing.T, programs []empty) (detach func() error) {
	var links []link.Link
	for _, e := range programs {
		l, err := e.attach(t)
		require.NoError(t, err, "%+v", e)
		links = append(links, l)
	}
	return func() (err error) {
		for _, l := range links {
			err = cmp.Or(err, l.Close())
		}
		return err
	}
}

func (e empty) attach(t *testing.T) (link.Link, error) {
	prog, err := ebpf.NewProgram(e.spec())
	require.NoError(t, err)
	defer prog.Close() // the link keeps a reference
	multi := link.KprobeMultiOptions{Symbols: []string{e.fn}, Session: e.kind == compiler.KprobeSession}
	switch e.kind {
	case compiler.Fentry, compiler.Fexit:
		return link.AttachTracing(link.TracingOptions{Program: prog})
	case compiler.Kprobe:
		return link.Kprobe(e.fn, prog, nil)
	case compiler.Kretprobe:
		return link.Kretprobe(e.fn, prog, nil)
	case compiler.KprobeMulti, compiler.KprobeSession:
		return link.KprobeMulti(prog, multi)
	case compiler.KretprobeMulti:
		return link.KretprobeMulti(prog, multi)
	}
	return nil, fmt.Errorf("no empty program by %s", e.kind)
}

func (e empty) spec() *ebpf.ProgramSpec {
	result := int32(0)
	if e.cancel {
		result = 1
	}
	ps := &ebpf.ProgramSpec{Type: ebpf.Kprobe, License: "GPL", Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, result), asm.Return()}}
	switch e.kind {
	case compiler.Fentry:
		ps.Type, ps.AttachType, ps.AttachTo = ebpf.Tracing, ebpf.AttachTraceFEntry, e.fn
	case compiler.Fexit:
		ps.Type, ps.AttachType, ps.AttachTo = ebpf.Tracing, ebpf.AttachTraceFExit, e.fn
	case compiler.KprobeMulti, compiler.KretprobeMulti:
		ps.AttachType = ebpf.AttachTraceKprobeMulti
	case compiler.KprobeSession:
		ps.AttachType = ebpf.AttachTraceKprobeSession
	}
	return ps
}
