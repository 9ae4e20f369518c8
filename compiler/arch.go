package compiler

// Arch is a calling convention, in terms of struct pt_regs.
type Arch struct {
	Name      string
	ArgRegs   []int16          // offsets of the argument registers
	RetRegs   [2]int16         // offsets of the two return registers
	SP        int16            // offset of the stack pointer
	IP        int16            // offset of the instruction pointer
	StackArg  int              // from the stack pointer at entry to the first stack argument
	Registers map[string]int16 // offsets of all of them by name
	RetSP     int              // what a return probe's stack pointer has more than at entry
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
	Registers: map[string]int16{
		"r15": 0, "r14": 8, "r13": 16, "r12": 24, "bp": 32, "bx": 40, "r11": 48, "r10": 56, "r9": 64, "r8": 72,
		"ax": 80, "cx": 88, "dx": 96, "si": 104, "di": 112, "orig_ax": 120, "ip": 128, "cs": 136, "flags": 144, "sp": 152, "ss": 160,
	},
}
