package runtime

import (
	"errors"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/compiler"
)

// Functions to try fentry on. Their programs are only loaded, except for
// manyArgs.
const (
	plainArgs  = "vfs_read"
	structArgs = "from_kuid" // takes a kuid_t by value
	// manyArgs has 8 arguments (since 5.14), and ftrace itself is built
	// without hooks. Attaching to it fails, which is cheap: to detach a
	// trampoline takes 0.1 s. Where 8 are too many the error says so,
	// elsewhere it is that of the missing hook.
	manyArgs = "trace_seq_hex_dump"
)

// tryTrampoline tries what fentry programs can be attached to. It returns
// false, and changes nothing, if this user may not load programs.
func (k *Kernel) tryTrampoline(f *compiler.Features) bool {
	structs := k.tryFentry(structArgs)
	plain := structs
	if structs != nil {
		plain = k.tryFentry(plainArgs)
	}
	if errors.Is(plain, unix.EPERM) {
		return false
	}
	if !errors.Is(structs, errNoFunction) {
		f.TrampolineStructs = structs == nil
	}
	f.Trampoline = f.Trampoline && plain == nil
	if f.Trampoline {
		f.TrampolineWords = k.tryWords(f.TrampolineWords)
	}
	return true
}

// errNoFunction is the error for functions that this kernel has not.
var errNoFunction = errors.New("no such function")

// tryFentry loads an fentry program for a function.
func (k *Kernel) tryFentry(function string) error {
	prog, err := k.loadFentry(function)
	if err == nil {
		prog.Close()
	}
	return err
}

// tryWords is how many words of arguments a trampoline passes on, or the
// assumed number if that cannot be tried.
func (k *Kernel) tryWords(assumed int) int {
	prog, err := k.loadFentry(manyArgs)
	if err != nil {
		return assumed
	}
	defer prog.Close()
	l, err := link.AttachTracing(link.TracingOptions{Program: prog})
	if err == nil {
		l.Close()
	}
	if errors.Is(err, ebpf.ErrNotSupported) || errors.Is(err, enotsupp) {
		return 6
	}
	return 12
}

func (k *Kernel) loadFentry(function string) (*ebpf.Program, error) {
	id := k.typeID(function, (*btf.Func)(nil))
	if id == 0 {
		return nil, errNoFunction
	}
	return loadTracing(&ebpf.ProgramSpec{
		Name: "try", Type: ebpf.Tracing, AttachType: ebpf.AttachTraceFEntry,
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()},
		License:      "Dual MIT/GPL",
	}, id, nil)
}
