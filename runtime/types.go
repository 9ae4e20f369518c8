package runtime

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path"
	goruntime "runtime"
	"slices"
	"sync"
	"unsafe"

	"github.com/cilium/ebpf/btf"
	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/btfdump/rawbtf"
	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/resolve"
)

// typesDir has the types of the kernel and its modules, one file each, and typesFile is
// that of the kernel.
const (
	typesDir  = "/sys/kernel/btf"
	typesFile = typesDir + "/vmlinux"
)

// noTypes returns an error that explains why the kernel's types cannot be read, with
// the cure.
func noTypes(err error, stat func(string) (os.FileInfo, error)) error {
	if _, e := stat(path.Dir(typesDir)); e != nil {
		return fmt.Errorf("read the kernel's types: there is no %s, as sysfs is not mounted: mount -t sysfs sysfs /sys", typesFile)
	}
	if _, e := stat(typesFile); errors.Is(e, os.ErrNotExist) {
		return fmt.Errorf("read the kernel's types: there is no %s: boot a kernel built with CONFIG_DEBUG_INFO_BTF=y", typesFile)
	}
	return fmt.Errorf("read the kernel's types: %s cannot be used (%w): it must be that of a kernel built with CONFIG_DEBUG_INFO_BTF=y, and readable", typesFile, err)
}

// hasStruct reports whether the kernel has a structure, which often depends on one
// option of its configuration.
func hasStruct(types *btf.Spec, name string) bool {
	var s *btf.Struct
	return types.TypeByName(name, &s) == nil
}

// hasMember reports whether a structure has a member.
func hasMember(types *btf.Spec, name, member string) bool {
	_, ok := compiler.MemberOffset(types, name, member)
	return ok
}

// ownTypes are the names that this package looks up in the kernel's types.
var ownTypes = []string{
	"dyn_ftrace", "ftrace_page", "bpf_htab", "bpf_prog", "bpf_kprobe_multi_link", "fprobe", "bpf_session_is_return", // promised
	plainArgs, structArgs, manyArgs, // tried
	"bpf_link_info",                       // CountsMissed
	"task_struct", "pid", "bpf_iter_task", // tasks
	"bpf_iter_ksym", "kallsym_iter", // symbols
	"bpf_iter_bpf_map_elem",                                        // tables
	"btf_trace_sched_process_fork", "btf_trace_sched_process_free", // process trees
}

// archTypes are those of single architectures.
var archTypes = map[string][]string{
	"amd64": {"__preempt_count", "pcpu_hot"}, // preemptCount
	"arm64": {"ftrace_ops", "thread_info"},   // promisedARM64, preemptCount
}

// OpenPart reads only the kernel's types that specs need, which takes a tenth of
// the time of [OpenKernel] and less memory. Other types are not found in this
// kernel. It returns an error if the kernel shows no types, or not in a form that it
// understands.
func OpenPart(needs resolve.Needs) (*Kernel, error) {
	raw, err := mapTypes()
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", typesFile, err)
	}
	defer unix.Munmap(raw)
	if err := expand(&needs, raw); err != nil {
		return nil, err
	}
	part, err := rawbtf.Take(raw, rawbtf.Want{Names: slices.Concat(needs.Types, ownTypes, archTypes[goruntime.GOARCH]), Members: needs.Members, Enumerators: needs.Enumerators})
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", typesFile, err)
	}
	k := newKernel(part.Types, btf.NewCache())
	k.part, k.needs = part, needs
	return k, nil
}

// expand finds in raw types what the globs match.
func expand(needs *resolve.Needs, raw []byte) error {
	if len(needs.Globs) == 0 {
		return nil
	}
	types, err := rawbtf.Index(raw, nil)
	if err != nil {
		return fmt.Errorf("read %s: %w", typesFile, err)
	}
	if !needs.Expand(func(kind, prefix string) iter.Seq[string] { return named(types, kind, prefix) }) {
		return errors.New("the globs match too many functions for a part of the types")
	}
	return nil
}

// namedKinds are the kinds of [compiler.Target].TypeNames.
var namedKinds = map[string][]rawbtf.Kind{
	resolve.FuncKind:    {rawbtf.Func},
	resolve.TypedefKind: {rawbtf.Typedef},
	resolve.VarKind:     {rawbtf.Var, rawbtf.Datasec},
	"struct":            {rawbtf.Struct},
	"union":             {rawbtf.Union},
	"enum":              {rawbtf.Enum, rawbtf.Enum64},
	"":                  {rawbtf.Typedef, rawbtf.Int, rawbtf.Float},
}

// TypeNames returns the names of the running kernel's types of a kind, as
// [compiler.Target].TypeNames does.
func TypeNames(kind string) (iter.Seq[string], bool) {
	types, free, err := indexTypes()
	if err != nil {
		return nil, false
	}
	return func(yield func(string) bool) {
		defer free()
		named(types, kind, "")(yield)
	}, true
}

// placeNames does so for functions and tracepoints alone.
func placeNames(kind string) (iter.Seq[string], bool) {
	if kind != resolve.FuncKind && kind != resolve.TypedefKind {
		return nil, false
	}
	return TypeNames(kind)
}

// named lists the names of a kind that have a prefix.
func named(types *rawbtf.Types, kind, prefix string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, name := range types.Named(prefix, namedKinds[kind]...) {
			if !yield(name) {
				return
			}
		}
	}
}

// finding returns a function that finds ids in an index of the kernel's types, as those
// of [compiler.Target] do, each once.
func finding(find func(types *rawbtf.Types, name string) []btf.TypeID) func(string) ([]btf.TypeID, bool) {
	var mu sync.Mutex
	found := map[string][]btf.TypeID{}
	return func(name string) ([]btf.TypeID, bool) {
		mu.Lock()
		defer mu.Unlock()
		if ids, ok := found[name]; ok {
			return ids, true
		}
		types, free, err := indexTypes()
		if err != nil {
			return nil, false
		}
		defer free()
		found[name] = find(types, name)
		return found[name], true
	}
}

// functionsNamed returns the ids of the functions with a name, which several files can use.
func functionsNamed(types *rawbtf.Types, name string) (ids []btf.TypeID) {
	for id, have := range types.Named(name, rawbtf.Func) {
		if have == name {
			ids = append(ids, id)
		}
	}
	return ids
}

// indexTypes returns an index of the kernel's types, and a function that frees it.
func indexTypes() (types *rawbtf.Types, free func(), err error) {
	raw, err := mapTypes()
	if err != nil {
		return nil, nil, err
	}
	free = func() { unix.Munmap(raw) }
	if types, err = rawbtf.Index(raw, nil); err != nil {
		free()
		return nil, nil, err
	}
	return types, free, nil
}

// mapTypes maps the raw types into memory: from Linux 6.16 on they are the
// kernel's own pages. On older kernels the copy is kept outside of Go's heap, which
// would not shrink again.
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
	if copyTypes(raw) {
		return raw, nil
	}
	if _, err := io.ReadFull(f, raw); err != nil {
		unix.Munmap(raw)
		return nil, err
	}
	return raw, nil
}

// vmlinuxTypes is the id of the kernel's types, which are the first to be loaded.
const vmlinuxTypes = 1

// copyTypes asks the kernel for its types, and reports whether they fill raw. The
// kernel copies them at once, while reading their file takes a system call for each page and
// copies twice. It needs CAP_SYS_ADMIN.
func copyTypes(raw []byte) bool {
	ask := struct{ id, next, flags uint32 }{id: vmlinuxTypes}
	fd, _, errno := unix.Syscall(unix.SYS_BPF, unix.BPF_BTF_GET_FD_BY_ID, uintptr(unsafe.Pointer(&ask)), unsafe.Sizeof(ask))
	if errno != 0 {
		return false
	}
	defer unix.Close(int(fd))
	var name [16]byte
	info := btfInfo{types: address(raw), size: uint32(len(raw)), name: address(name[:]), nameSize: uint32(len(name))}
	err := objectInfo(int(fd), unsafe.Pointer(&info), unsafe.Sizeof(info))
	goruntime.KeepAlive(&name)
	return err == nil && info.kernel == 1 && unix.ByteSliceToString(name[:]) == "vmlinux" && int(info.size) == len(raw)
}

// btfInfo is struct bpf_btf_info (include/uapi/linux/bpf.h).
type btfInfo struct {
	types            uint64
	size, id         uint32
	name             uint64
	nameSize, kernel uint32
}

// typeID returns the kernel's id of the type with a name and a kind, or 0 if
// there is no such type, or several.
func (k *Kernel) typeID(name string, kind btf.Type) btf.TypeID {
	id := resolve.TypeID(k.types, name, kind)
	if k.part != nil {
		return k.part.ID(id)
	}
	return id
}
