package runtime

import (
	"encoding/binary"
	"errors"
	"os"
	goruntime "runtime"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"

	"github.com/ksnoop/ksnoop/compiler"
)

// hookList has the addresses of ftrace's hooks.
type hookList struct {
	// runs are in ascending order: there is one for the kernel, and at most one for each
	// module.
	runs [][]uint64
	// reach is the largest distance of a hook from the beginning of its function: in
	// front of it may be an instruction for branch tracking (endbr64, bti c), and on
	// arm64 there is one that saves the return address.
	reach uint64
}

// mostReach is more than any kernel's reach.
const mostReach = 16

// distance returns the distance from an address to the next hook, in bytes.
func (h *hookList) distance(addr uint64) uint64 {
	nearest := ^uint64(0)
	for _, run := range h.runs {
		if i, _ := slices.BinarySearch(run, addr); i < len(run) {
			nearest = min(nearest, run[i]-addr)
		}
	}
	return nearest
}

// has reports whether the function at an address has a hook.
func (h *hookList) has(function uint64) bool { return h.distance(function) <= h.reach }

func (h *hookList) add(hook uint64) {
	last := len(h.runs) - 1
	if last < 0 || hook < h.runs[last][len(h.runs[last])-1] {
		h.runs = append(h.runs, nil)
		last++
	}
	h.runs[last] = append(h.runs[last], hook)
}

// hookBlocks is the variable of the kernel that points to the first block of ftrace's
// records, one for each hook.
const hookBlocks = "ftrace_pages_start"

// hookMembers are the members that the blocks and the records are read by.
var hookMembers = [...][2]string{{"ftrace_page", "next"}, {"ftrace_page", "records"}, {"ftrace_page", "index"}, {"dyn_ftrace", "ip"}}

// endbrSize is the size of endbr64, which may be in front of ftrace's hook.
const endbrSize = 4

// byFtrace reports whether it is ftrace that calls the programs of an attachment. On x86 it
// also calls kprobes at its hooks (CONFIG_KPROBES_ON_FTRACE).
func byFtrace(at compiler.Attachment) bool {
	switch at.Kind {
	case compiler.Fentry, compiler.Fexit:
		return true
	case compiler.Kprobe, compiler.Kretprobe:
		atHook := func(p compiler.Place) bool { return p.Offset <= endbrSize }
		return goruntime.GOARCH == compiler.AMD64.Name && slices.ContainsFunc(at.Places, atHook)
	}
	return at.Kind.Multi()
}

// ftraceSwitch is the file that tells whether ftrace is on.
var ftraceSwitch = "/proc/sys/kernel/ftrace_enabled"

// ftraceOff reports whether ftrace is switched off. Then the kernel attaches programs that
// it calls, and never calls them.
func ftraceOff() bool {
	b, _ := os.ReadFile(ftraceSwitch) // not there without ftrace
	return strings.TrimSpace(string(b)) == "0"
}

var errFtraceOff = errors.New("no function can be traced while kernel.ftrace_enabled is 0: sysctl kernel.ftrace_enabled=1")

// Bounds for a list that changes while it is read, as modules come and go: the kernel
// has about ten blocks, and one or two for each module.
const (
	mostHookBlocks = 1 << 14
	mostInBlock    = 1 << 20
)

// readHooks reads ftrace's own records, or returns nil if they cannot be read: that needs
// CAP_SYSLOG, a kernel from 5.16 on, and symbols of variables (CONFIG_KALLSYMS_ALL). The
// kernel takes ten times as long or more to write available_filter_functions, which needs
// tracefs and the right to read it.
func (k *Kernel) readHooks() *hookList {
	var all hookList
	var at [len(hookMembers)]uint64
	for i, m := range hookMembers {
		off, ok := compiler.MemberOffset(k.types, m[0], m[1])
		if !ok {
			return nil
		}
		at[i] = uint64(off)
	}
	var record *btf.Struct
	addrs, err := lookUp([]string{hookBlocks, plainArgs})
	if err != nil || k.types.TypeByName("dyn_ftrace", &record) != nil {
		return nil
	}
	m := newMemoryReader()
	if m == nil {
		return nil
	}
	defer m.close()
	block := m.word(addrs[0])
	for range mostHookBlocks {
		if block == 0 || m.failed {
			break
		}
		records, n := m.word(block+at[1]), int(uint32(m.word(block+at[2])))
		for n = min(n, mostInBlock); n > 0 && !m.failed; {
			some := min(n, (readRoom-1)/int(record.Size))
			for b := m.read(records, some*int(record.Size)); len(b) > 0; b = b[record.Size:] {
				all.add(binary.NativeEndian.Uint64(b[at[3]:]))
			}
			records, n = records+uint64(some)*uint64(record.Size), n-some
		}
		block = m.word(block + at[0])
	}
	all.reach = all.distance(addrs[1]) // of a function that has a hook, and all that may be in front of it
	if block != 0 || m.failed || all.reach >= mostReach {
		return nil
	}
	return &all
}

// readRoom is more than a memoryReader reads at once, in bytes: a power of two.
const readRoom = 64 << 10

// memoryReader reads memory of the kernel.
type memoryReader struct {
	*asker
	failed bool // whether any memory could not be read
}

// newMemoryReader loads the program that reads, or returns nil if the kernel does not permit it.
func newMemoryReader() *memoryReader {
	a := newAsker("memory", readRoom, func(answer *ebpf.Map) asm.Instructions {
		return asm.Instructions{
			asm.LoadMem(asm.R3, asm.R1, 0, asm.DWord),
			asm.LoadMem(asm.R2, asm.R1, 8, asm.DWord),
			asm.And.Imm(asm.R2, readRoom-1), // for the verifier
			asm.LoadMapValue(asm.R1, answer.FD(), 0),
			asm.FnProbeReadKernel.Call(),
			asm.Return(),
		}
	})
	if a == nil {
		return nil
	}
	return &memoryReader{asker: a}
}

// read reads n bytes, which are valid until it is called again.
func (m *memoryReader) read(addr uint64, n int) []byte {
	result, err := m.run(addr, uint64(n))
	m.failed = m.failed || err != nil || result != 0
	return m.answer[:n]
}

func (m *memoryReader) word(addr uint64) uint64 { return binary.NativeEndian.Uint64(m.read(addr, 8)) }
