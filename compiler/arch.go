package compiler

import (
	"fmt"
	"runtime"
	"slices"
)

// Arch describes an architecture's registers and calling convention. Registers
// are given by their offsets in struct pt_regs.
type Arch struct {
	Name     string // the GOARCH name
	ArgRegs  []int16
	RetRegs  [2]int16 // the two return registers
	SP       int16    // the stack pointer
	IP       int16    // the instruction pointer
	StackArg int      // offset of the first stack argument from the stack pointer at entry
	RetSP    int      // by how much the stack pointer is higher in a return probe than at entry
	RetAddr  Word     // where the return address is at entry
	// Unused is the number of upper bits of an address that may hold a tag. The
	// next KernelOnes bits are all set in addresses of the kernel; the first of
	// them is clear in addresses of processes.
	Unused, KernelOnes int
	// ProgramFrames is the number of frames of a stack that belong to the
	// program and the trampoline.
	ProgramFrames int32
	// Registers has the offsets of all registers, by the names that
	// kprobe_events uses.
	Registers map[string]int16
	// Syscall is the member of struct pt_regs that holds the number of a system
	// call. SyscallPrefix is the prefix of the functions that implement them.
	Syscall, SyscallPrefix string
	// Marks is a member of struct pt_regs by which the architecture is
	// recognized: others do not have it at this offset.
	Marks string
	// AAPCS64 is set if the calling convention is Arm's procedure call
	// standard. Otherwise it is System V's; see [resolve.Place].
	AAPCS64 bool
	// CallerFrame is the offset of the caller's frame pointer, by which the multi
	// kinds tell calls apart where their return probes get no stack pointer, or 0.
	CallerFrame int16
	// ReadsUser is set if the helpers that read the kernel's memory may read that
	// of processes, too: on CPUs without PAN (Armv8.0).
	ReadsUser bool
	// Breakpoints is the largest number of breakpoints on memory that a CPU has.
	Breakpoints int
	// BreaksBefore is set if a breakpoint on memory is hit before the write, not
	// after it.
	BreaksBefore bool
}

// AMD64 is the System V calling convention of x86-64 (struct pt_regs of
// arch/x86/include/asm/ptrace.h). A call pushes the return address, so stack
// arguments begin 8 bytes above the stack pointer, and it is 8 bytes higher at
// return.
var AMD64 = &Arch{
	Name:     "amd64",
	ArgRegs:  []int16{112, 104, 96, 88, 72, 64}, // di, si, dx, cx, r8, r9
	RetRegs:  [2]int16{80, 96},                  // ax, dx
	SP:       152,
	IP:       128,
	StackArg: 8,
	RetSP:    8,
	RetAddr:  Word{Reg: -1},
	// Kernels with five levels of page tables use 57 bits, others 48.
	KernelOnes: 8,

	ProgramFrames: 2,
	Registers: map[string]int16{
		"r15": 0, "r14": 8, "r13": 16, "r12": 24, "bp": 32, "bx": 40, "r11": 48, "r10": 56, "r9": 64, "r8": 72,
		"ax": 80, "cx": 88, "dx": 96, "si": 104, "di": 112, "orig_ax": 120, "ip": 128, "cs": 136, "flags": 144, "sp": 152, "ss": 160,
	},
	Marks:         "di",
	Breakpoints:   4,
	Syscall:       "orig_ax",
	SyscallPrefix: "__x64_",
}

// ARM64 is the calling convention of AArch64 (struct user_pt_regs of
// arch/arm64/include/uapi/asm/ptrace.h). A call leaves the stack alone and the
// return address in x30. The handler of returns saves no stack pointer, but the
// frame pointer of the caller, x29, which is the same as at entry
// (return_to_handler in arch/arm64/kernel/entry-ftrace.S).
var ARM64 = &Arch{
	Name:    "arm64",
	ArgRegs: []int16{0, 8, 16, 24, 32, 40, 48, 56}, // x0 to x7
	RetRegs: [2]int16{0, 8},                        // x0, x1
	SP:      248,
	IP:      256,
	RetAddr: Word{Reg: 240},
	// The hardware ignores the upper byte, and uses up to 52 bits of the others.
	Unused: 8, KernelOnes: 4,

	ProgramFrames: 3, // the program's comes twice: from its registers and from its frame
	Registers: map[string]int16{
		"x0": 0, "x1": 8, "x2": 16, "x3": 24, "x4": 32, "x5": 40, "x6": 48, "x7": 56, "x8": 64, "x9": 72, "x10": 80,
		"x11": 88, "x12": 96, "x13": 104, "x14": 112, "x15": 120, "x16": 128, "x17": 136, "x18": 144, "x19": 152, "x20": 160,
		"x21": 168, "x22": 176, "x23": 184, "x24": 192, "x25": 200, "x26": 208, "x27": 216, "x28": 224, "x29": 232, "x30": 240,
		"lr": 240, "sp": 248, "pc": 256, "pstate": 264,
	},
	Marks:         "pstate",
	Syscall:       "syscallno",
	SyscallPrefix: "__arm64_",
	AAPCS64:       true,
	CallerFrame:   232,
	ReadsUser:     true,
	Breakpoints:   16,
	BreaksBefore:  true,
}

// Arches lists the architectures that code can be generated for.
var Arches = []*Arch{AMD64, ARM64}

// NativeArch returns the architecture of this machine.
func NativeArch() (*Arch, error) {
	i := slices.IndexFunc(Arches, func(a *Arch) bool { return a.Name == runtime.GOARCH })
	if i < 0 {
		return nil, fmt.Errorf("functions of %s cannot be traced: ksnoop knows the registers of amd64 and arm64 only", runtime.GOARCH)
	}
	return Arches[i], nil
}
