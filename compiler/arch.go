package compiler

// Arch is a calling convention, in terms of struct pt_regs.
type Arch struct {
	Name     string
	ArgRegs  []int16  // offsets of the argument registers
	RetRegs  [2]int16 // offsets of the two return registers
	SP       int16    // offset of the stack pointer
	StackArg int      // from the stack pointer at entry to the first stack argument
	RetSP    int      // what a return probe's stack pointer has more than at entry
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
	StackArg: 8,
	RetSP:    8,
}
