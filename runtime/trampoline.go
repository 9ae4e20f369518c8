package runtime

import (
	"errors"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
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
	coll, err := k.loadFentry(function)
	if err == nil {
		coll.Close()
	}
	return err
}

// tryWords is how many words of arguments a trampoline passes on, or the
// assumed number if that cannot be tried.
func (k *Kernel) tryWords(assumed int) int {
	coll, err := k.loadFentry(manyArgs)
	if err != nil {
		return assumed
	}
	defer coll.Close()
	l, err := link.AttachTracing(link.TracingOptions{Program: coll.Programs[manyArgs]})
	if err == nil {
		l.Close()
	}
	if errors.Is(err, ebpf.ErrNotSupported) || errors.Is(err, enotsupp) {
		return 6
	}
	return 12
}

func (k *Kernel) loadFentry(function string) (*ebpf.Collection, error) {
	// cilium would search all modules for a function that is not here.
	if funcID(k.types, function) == 0 {
		return nil, errNoFunction
	}
	spec := &ebpf.ProgramSpec{
		Name: "try", Type: ebpf.Tracing, AttachType: ebpf.AttachTraceFEntry, AttachTo: function,
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()},
		License:      "Dual MIT/GPL",
	}
	return ebpf.NewCollectionWithOptions(
		&ebpf.CollectionSpec{Programs: map[string]*ebpf.ProgramSpec{function: spec}},
		ebpf.CollectionOptions{Cache: k.cache, Programs: ebpf.ProgramOptions{LogDisabled: true}},
	)
}
