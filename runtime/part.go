package runtime

import (
	"fmt"
	"io"
	"iter"
	"os"

	"golang.org/x/sys/unix"

	"github.com/cilium/ebpf/btf"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/runtime/btfpart"
)

// ownTypes are the names that this package looks up in the kernel's types.
var ownTypes = []string{
	"dyn_ftrace", "bpf_htab", "bpf_kprobe_multi_link", "fprobe", "bpf_session_is_return", // promised
	plainArgs, structArgs, manyArgs, // tried
	"bpf_link_info",                       // countsMisses
	"task_struct", "pid", "bpf_iter_task", // tasks
	"bpf_iter_ksym", "kallsym_iter", // symbols
	"btf_trace_sched_process_fork", "btf_trace_sched_process_free", // process trees
}

// OpenPart reads of the kernel's types what specs need, which takes a tenth of
// the time of [OpenKernel] and less memory. What is not needed is not found in
// this kernel.
func OpenPart(needs compiler.Needs) (*Kernel, error) {
	raw, err := mapTypes()
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", typesFile, err)
	}
	defer unix.Munmap(raw)
	part, err := btfpart.Take(raw, btfpart.Want{Names: append(needs.Types, ownTypes...), Members: needs.Members})
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", typesFile, err)
	}
	k := newKernel(part.Types, btf.NewCache())
	k.part, k.needs = part, needs
	return k, nil
}

// typeNames is [compiler.Target].TypeNames of the running kernel.
func typeNames(kind string) (iter.Seq[string], bool) {
	raw, err := mapTypes()
	if err != nil {
		return nil, false
	}
	names, err := btfpart.Names(raw, kind)
	if err != nil {
		unix.Munmap(raw)
		return nil, false
	}
	return func(yield func(string) bool) {
		defer unix.Munmap(raw)
		names(yield)
	}, true
}

// mapTypes maps the raw types into memory: from Linux 6.16 on they are the
// kernel's own pages. The memory of a copy is outside of Go's heap, which would
// not shrink again.
func mapTypes() ([]byte, error) {
	f, err := os.Open(typesFile)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	size := int(info.Size())
	raw, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ, unix.MAP_PRIVATE)
	if err == nil {
		return raw, nil
	}
	raw, err = unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_POPULATE)
	if err != nil {
		return nil, err
	}
	if _, err := io.ReadFull(f, raw); err != nil {
		unix.Munmap(raw)
		return nil, err
	}
	return raw, nil
}

// typeID is the kernel's number of the one type of a name and a kind; 0 if there
// is no such type, or several.
func (k *Kernel) typeID(name string, kind btf.Type) btf.TypeID {
	typ := kind
	if k.types.TypeByName(name, &typ) != nil {
		return 0
	}
	id, err := k.types.TypeID(typ)
	if err != nil {
		return 0
	}
	if k.part != nil {
		return k.part.ID(id)
	}
	return id
}
