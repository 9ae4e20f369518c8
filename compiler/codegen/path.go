package codegen

import (
	"slices"

	"github.com/cilium/ebpf/asm"

	"github.com/ksnoop/ksnoop/compiler"
)

// Offsets in the buffer of a walk. It shares the stack with the strings of
// conditions, which are evaluated before. The number of steps tells the verifier's
// states of a loop apart, and the highest of their addresses is compared first.
const (
	walkSpan  = 0                 // bytes of a structure
	walkMount = compiler.WalkSpan // address of the mount
	walkRoot  = walkMount + 8     // root of that mount
	walkGone  = walkRoot + 8      // 1 if the name of the file is gone
	walkSteps = textBuffer - 8    // steps so far
	_         = uint(walkSteps - walkGone - 8)
)

// shortNames is the largest number of steps of a walk for whose names there is another
// try, with more room.
const shortNames = 32

// reserveWalk reserves the buffer of a walk.
func (p *program) reserveWalk() {
	if slices.ContainsFunc(p.probe.Entry, isPath) || slices.ContainsFunc(p.probe.Return, isPath) {
		p.buffer = p.room(textBuffer)
	}
}

// isPath reports whether a value is shown as a path.
func isPath(v *compiler.Value) bool { return v.Text == compiler.PathText }

// walker writes the code of one walk.
type walker struct {
	*program
	*compiler.PathWalk
	slot  compiler.Slot
	fault string // where to go with a bad address in rBase
	from  int    // offset in its structure of what is at walkSpan
}

// capturePath copies the names of the path at the address in R1, the last one
// first, each with its NUL. Where the record has no room for all of them, a longer
// one is tried; the longest has those that fit.
func (p *program) capturePath(w *compiler.PathWalk, slot compiler.Slot, fault string) {
	k := &walker{program: p, PathWalk: w, slot: slot, fault: fault}
	step, next, cross := p.fresh("name"), p.fresh("up"), p.fresh("mount")
	top, whole, cut, end := p.fresh("top"), p.fresh("whole"), p.fresh("cut"), p.fresh("walked")
	p.step("names of the path")
	p.emit(asm.Mov.Reg(rBase, asm.R1), asm.Mov.Imm(asm.R1, 0))
	k.put(walkSteps, asm.R1)
	k.setLength()
	k.begin()
	k.gone()

	p.label(step)
	k.get(asm.R1, walkRoot)
	p.emit(asm.JEq.Reg(rBase, asm.R1, cross))
	k.span(k.Parent, k.Name)
	k.member(asm.R1, k.Parent)
	p.emit(asm.JEq.Reg(rBase, asm.R1, top))
	k.name(cut)
	k.member(rBase, k.Parent)

	p.label(next)
	k.get(asm.R1, walkSteps)
	p.emit(asm.Add.Imm(asm.R1, 1))
	k.put(walkSteps, asm.R1)
	if k.form.longer != "" {
		p.emit(asm.JLT.Imm(asm.R1, shortNames, step), asm.Ja.Label(k.form.longer))
	} else {
		p.emit(asm.JLT.Imm(asm.R1, compiler.MostNames, step))
		p.label(cut)
		p.emit(asm.Mov.Imm(asm.R1, int32(compiler.PathCut)), asm.Ja.Label(end))
	}
	k.cross(cross, whole, next)
	k.top(top, whole, end)
	p.label(whole)
	p.emit(asm.Mov.Imm(asm.R1, int32(compiler.PathWhole)))
	p.label(end)
	p.move(asm.R2, rOut, k.at(0))
	p.emit(asm.StoreMem(asm.R2, compiler.PathEnd, asm.R1, asm.Byte))
	k.get(asm.R1, walkGone)
	p.emit(asm.StoreMem(asm.R2, compiler.PathGone, asm.R1, asm.Byte))
}

// begin puts the dentry that the path begins with into rBase, and finds its mount.
func (k *walker) begin() {
	if k.Mount < 0 {
		k.emit(asm.Mov.Imm(asm.R1, 0)) // no dentry is at 0
		k.put(walkRoot, asm.R1)
		return
	}
	k.span(k.Mount, k.Dentry)
	k.member(asm.R1, k.Dentry)
	k.put(walkGone, asm.R1) // aside
	k.member(rBase, k.Mount)
	k.emit(asm.Mov.Reg(asm.R1, rBase), asm.Sub.Imm(asm.R1, int32(k.MountOf)))
	k.put(walkMount, asm.R1)
	k.root(k.MountRoot)
	k.get(rBase, walkGone)
}

// root reads the root of a mount at an offset from rBase.
func (k *walker) root(off int) {
	k.move(asm.R3, rBase, off)
	k.readWalk(walkRoot, 8)
	k.emit(asm.JNE.Imm(asm.R0, 0, k.fault))
}

// gone determines whether the dentry at rBase has lost its name: it is in no list
// of names, and not the root of its file system (d_unlinked of the kernel). It does
// not branch, as the verifier would go through the loop once for each outcome.
func (k *walker) gone() {
	k.span(k.Hashed, k.Parent)
	k.member(asm.R1, k.Hashed)
	k.member(asm.R2, k.Parent)
	k.emit(asm.Sub.Reg(asm.R2, rBase))
	for _, r := range []asm.Register{asm.R1, asm.R2} { // 1 unless it is 0
		k.emit(asm.Mov.Reg(asm.R3, r), asm.Neg.Imm(asm.R3, 0), asm.Or.Reg(r, asm.R3), asm.RSh.Imm(r, 63))
	}
	k.emit(asm.Xor.Imm(asm.R1, 1), asm.And.Reg(asm.R1, asm.R2))
	k.put(walkGone, asm.R1)
}

// name adds the name whose pointer the last span has read.
func (k *walker) name(cut string) {
	full, bad := cut, k.fresh("badname")
	if k.form.longer != "" {
		full = k.form.longer
	}
	k.length()
	k.emit(
		asm.JGT.Imm(asm.R1, int32(k.slot.Cap-compiler.PathNames-compiler.LongestName), full),
		asm.Add.Reg(asm.R1, rOut),
		asm.Add.Imm(asm.R1, int32(k.at(compiler.PathNames))),
		asm.Mov.Imm(asm.R2, compiler.LongestName),
	)
	k.member(asm.R3, k.Name)
	k.readString(compiler.KernelSpace)
	k.emit(asm.JSLE.Imm(asm.R0, 0, bad))
	k.length()
	k.emit(asm.Add.Reg(asm.R1, asm.R0))
	k.setLength()
	k.later(bad, func() {
		k.from = min(k.Parent, k.Name)
		k.member(rBase, k.Name)
		k.emit(asm.Ja.Label(k.fault))
	})
}

// cross goes from the root of a mount to where it is mounted.
func (k *walker) cross(label, whole, next string) {
	k.label(label)
	if k.Mount < 0 { // a parent is NULL
		k.emit(asm.Ja.Label(k.fault))
		return
	}
	k.get(rBase, walkMount)
	k.span(k.MountParent, k.Mountpoint)
	k.member(asm.R1, k.MountParent)
	k.emit(asm.JEq.Reg(asm.R1, rBase, whole))
	k.put(walkMount, asm.R1)
	k.emit(asm.Mov.Reg(rBase, asm.R1))
	k.root(k.MountOf + k.MountRoot)
	k.member(rBase, k.Mountpoint)
	k.emit(asm.Ja.Label(next))
}

// top ends a walk at a dentry that is its own parent, but not the root of the mount.
// If no mount is known, it is the root of the file system. Otherwise the mount shows a
// directory that the file has been moved out of. A file without any directory is its own root.
func (k *walker) top(label, whole, end string) {
	origin := k.origin
	k.later(label, func() {
		k.origin = origin
		detached := k.fresh("detached")
		k.span(k.Super, k.Super)
		if k.Mount < 0 {
			k.follow(walkSpan, k.SuperRoot)
			k.get(asm.R1, walkMount)
			k.emit(asm.JEq.Reg(asm.R1, rBase, whole))
		}
		k.length()
		k.emit(asm.JNE.Imm(asm.R1, 0, detached))
		k.follow(walkSpan, k.Type)
		k.follow(walkMount, k.TypeName)
		k.get(asm.R3, walkMount)
		k.text(compiler.PathNames, compiler.PathName-compiler.PathNames)
		k.span(k.Inode, k.Inode)
		k.get(asm.R3, walkSpan)
		k.move(asm.R3, asm.R3, k.Ino)
		k.readWalk(walkMount, 8) // zeroes if there is no inode
		k.get(asm.R1, walkMount)
		k.move(asm.R2, rOut, k.at(compiler.PathIno))
		k.emit(asm.StoreMem(asm.R2, 0, asm.R1, asm.DWord))
		k.span(k.Name, k.Name)
		k.get(asm.R3, walkSpan)
		k.text(compiler.PathName, compiler.LongestName)
		k.emit(asm.Mov.Imm(asm.R1, int32(compiler.PathNameless)), asm.Ja.Label(end))
		k.label(detached)
		k.emit(asm.Mov.Imm(asm.R1, int32(compiler.PathDetached)), asm.Ja.Label(end))
	})
}

// follow reads a pointer of the structure whose address is in the buffer. It
// stores the pointer where the mount was.
func (k *walker) follow(from, off int) {
	k.get(asm.R3, from)
	k.move(asm.R3, asm.R3, off)
	k.readWalk(walkMount, 8)
	k.emit(asm.JNE.Imm(asm.R0, 0, k.fault))
}

// text copies a string from R3 to a part of the data.
func (k *walker) text(part, size int) {
	k.move(asm.R1, rOut, k.at(part))
	k.emit(asm.Mov.Imm(asm.R2, int32(size)))
	k.readString(compiler.KernelSpace)
	k.emit(asm.JSLE.Imm(asm.R0, 0, k.fault))
}

// span reads two pointers of the structure at rBase, with what is between them.
func (k *walker) span(one, other int) {
	k.from = min(one, other)
	k.move(asm.R3, rBase, k.from)
	k.readWalk(walkSpan, max(one, other)+8-k.from)
	k.emit(asm.JNE.Imm(asm.R0, 0, k.fault))
}

// member loads one of the pointers that the last span has read.
func (k *walker) member(reg asm.Register, off int) { k.get(reg, walkSpan+off-k.from) }

// length loads the number of bytes of the names so far into R1. The number is in the
// record, of whose contents the verifier knows nothing. Of a number on the stack it knows
// the bounds, and it would follow the loop again for other bounds.
func (k *walker) length() {
	k.move(asm.R1, rOut, k.at(compiler.PathLength))
	k.emit(asm.LoadMem(asm.R1, asm.R1, 0, asm.Word))
}

// setLength stores R1 as the number of bytes of the names.
func (k *walker) setLength() {
	k.move(asm.R2, rOut, k.at(compiler.PathLength))
	k.emit(asm.StoreMem(asm.R2, 0, asm.R1, asm.Word))
}

// readWalk copies size bytes from R3 to an offset in the buffer.
func (k *walker) readWalk(off, size int) {
	k.readTo(asm.RFP, k.buffer+off, size, compiler.KernelSpace)
}

func (k *walker) get(reg asm.Register, off int) {
	k.emit(asm.LoadMem(reg, asm.RFP, int16(k.buffer+off), asm.DWord))
}

func (k *walker) put(off int, reg asm.Register) {
	k.emit(asm.StoreMem(asm.RFP, int16(k.buffer+off), reg, asm.DWord))
}

// at returns the offset from rOut of a part of the data.
func (k *walker) at(part int) int { return k.slot.Data + part - k.origin }
