package runtime

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
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

// byKprobe reports whether it is a kprobe that calls the programs of an attachment.
func byKprobe(at compiler.Attachment) bool {
	return at.Kind == compiler.Kprobe || at.Kind == compiler.Kretprobe
}

// tracingSwitch is a setting of the kernel that makes attached programs see no calls. The
// kernel attaches more of them nevertheless.
type tracingSwitch struct {
	file     string // has 0 if it is off; need not be there
	concerns func(compiler.Attachment) bool
	refusal  error
	note     string // for the user, if it was switched off meanwhile
}

var tracingSwitches = [...]*tracingSwitch{
	{
		"/proc/sys/kernel/ftrace_enabled", byFtrace,
		errors.New("no function can be traced while kernel.ftrace_enabled is 0: sysctl kernel.ftrace_enabled=1"),
		"kernel.ftrace_enabled was set to 0 while functions were traced: what they did from then on is not shown",
	},
	{
		"/sys/kernel/debug/kprobes/enabled", byKprobe,
		errors.New("kprobes see no calls while they are switched off: echo 1 > /sys/kernel/debug/kprobes/enabled"),
		"kprobes were switched off while functions were traced: what they did from then on is not shown",
	},
}

// switchedOff returns the switches that are off.
func switchedOff() (off []*tracingSwitch) {
	for _, s := range tracingSwitches {
		if b, _ := os.ReadFile(s.file); strings.TrimSpace(string(b)) == "0" {
			off = append(off, s)
		}
	}
	return off
}

// rememberModules stores the modules of the attached functions. Kprobes do not
// keep a module from being unloaded; they are removed with it.
func (s *Session) rememberModules() {
	s.modules = map[string]uint64{}
	for _, at := range s.attached {
		for _, p := range at.Places {
			if name := p.Probe.Func.Module; name != "" {
				s.modules[name] = moduleID(name)
			}
		}
	}
}

// interruption is why attachments in place no longer see calls.
type interruption struct {
	unloaded  []string // modules of functions, in order
	variables []string // modules of variables that are read, in order
	off       []*tracingSwitch
	rejoined  bool // CPUs, while memory was watched
}

// interruption returns what has happened since Attach. The lock must be held.
func (s *Session) interruption() (i interruption) {
	for _, name := range slices.Sorted(maps.Keys(s.modules)) {
		if moduleID(name) != s.modules[name] {
			i.unloaded = append(i.unloaded, name)
		}
	}
	for _, at := range s.attached {
		for _, p := range at.Places {
			if gone := s.kernel.unloaded(p.Probe); gone != "" && !slices.Contains(i.variables, gone) {
				i.variables = append(i.variables, gone)
			}
		}
	}
	slices.Sort(i.variables)
	for _, off := range switchedOff() {
		if slices.ContainsFunc(s.attached, func(at *attached) bool { return off.concerns(at.Attachment) }) {
			i.off = append(i.off, off)
		}
	}
	i.rejoined = len(s.rejoined) > 0
	return i
}

// concerns reports whether an attachment no longer sees all calls.
func (i *interruption) concerns(at *attached) bool {
	return i.rejoined && at.Kind == compiler.Breakpoint ||
		slices.ContainsFunc(i.off, func(off *tracingSwitch) bool { return off.concerns(at.Attachment) }) ||
		len(i.unloaded)+len(i.variables) > 0 && slices.ContainsFunc(at.Places, func(p compiler.Place) bool {
			ofVariables := func(m string) bool { return slices.Contains(p.Probe.Modules, m) }
			return slices.Contains(i.unloaded, p.Probe.Func.Module) || slices.ContainsFunc(i.variables, ofVariables)
		})
}

// Interrupted returns a sentence for the user about each module that was unloaded since
// [Session.Attach], with the probes in it or the variables that others read, about ftrace or
// kprobes if they have been switched off, and about CPUs that were brought online while
// memory was watched. Of these probes [Missed] is Uncounted.
func (s *Session) Interrupted() (notes []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.interruption()
	for _, name := range i.unloaded {
		notes = append(notes, fmt.Sprintf("module %s was unloaded while its functions were traced: what they did from then on is not shown, nor if it was loaded again", name))
	}
	for _, name := range i.variables {
		if s.gone.Load() {
			break
		}
		notes = append(notes, fmt.Sprintf("module %s was unloaded while its variables were read: their values from then on are those of other memory", name))
	}
	for _, off := range i.off {
		notes = append(notes, off.note)
	}
	if i.rejoined {
		notes = append(notes, fmt.Sprintf("CPUs were brought online while memory was watched (%s): what they wrote before their breakpoints were set is not shown",
			strings.Trim(fmt.Sprint(s.rejoined), "[]")))
	}
	return notes
}

// unloaded returns a module that has been unloaded since its symbols were read, and whose
// variables a probe reads; or "".
func (k *Kernel) unloaded(p *compiler.Probe) string {
	for _, name := range p.Modules {
		if before, known := k.modules[name]; known && moduleID(name) != before {
			return name
		}
	}
	return ""
}

// checkVariables returns an error if variables that a probe reads have gone with their
// module: other memory may be at their addresses. Interrupted does not say so once more.
func (s *Session) checkVariables(p *compiler.Probe) error {
	if name := s.kernel.unloaded(p); name != "" {
		s.gone.Store(true)
		return fmt.Errorf("module %s was unloaded, with the variables that are read: start again when it is loaded", name)
	}
	return nil
}

func (s *Session) checkAllVariables() error {
	for _, ev := range s.unit.Events {
		if err := s.checkVariables(ev.Probe); err != nil {
			return err
		}
	}
	return nil
}

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
