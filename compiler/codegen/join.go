package codegen

import (
	"fmt"
	"slices"
	"sort"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/ksnoop/ksnoop/compiler"
)

// mostJoined is the largest number of places of a link with several programs: a
// jump reaches 32,767 instructions, and a place takes up to eight.
const mostJoined = 4000

// cookieJump is the first bit of the index of a place's program in a link's
// cookie, where addresses are not known.
const cookieJump = 48

// joint is a link of several programs under construction.
type joint struct {
	compiler.Attachment
	at      int             // the index of the attachment
	byAddr  bool            // whether the addresses of all places are known
	has     map[string]bool // the places: a link can have each only once
	objects bool            // whether its programs only look at calls with objects that are followed
	words   []int16         // the registers in which these are
}

// joinLinks lets attachments of probes that are joined share links. The program
// of such a link finds the function in a list of the addresses, and jumps to the
// function's program. Where all of these programs look for objects that are followed,
// it first leaves unless one may be in their registers.
func (u *generator) joinLinks(f compiler.Features) {
	var joints []*joint
	var attachments []compiler.Attachment
	for _, a := range u.Attachments {
		if !a.Kind.Multi() || !a.Places[0].Probe.Attach.Joined {
			attachments = append(attachments, a)
			continue
		}
		_, objects := objectWord(a.Places[0].Probe, a.Kind)
		places := len(a.Places)
		for _, j := range joints {
			j.take(&a, objects)
		}
		if objects && len(a.Places) < places { // few functions get an object twice: they need no link for this
			objects = false
			for _, j := range joints {
				j.take(&a, objects)
			}
		}
		if len(a.Places) > 0 {
			j := &joint{Attachment: compiler.Attachment{Kind: a.Kind}, at: len(attachments), byAddr: knows(a.Places), objects: objects, has: map[string]bool{}}
			j.take(&a, objects)
			joints = append(joints, j)
			attachments = append(attachments, j.Attachment)
		}
	}
	for i, j := range joints {
		if len(j.Jumps) > 1 {
			u.addJoint(j, i+1, f)
		} else {
			j.Program, j.Jumps = j.Jumps[0], nil
		}
		attachments[j.at] = j.Attachment
	}
	u.Attachments = attachments
}

// knows reports whether the addresses of all places are known.
func knows(places []compiler.Place) bool {
	return !slices.ContainsFunc(places, func(p compiler.Place) bool { return p.Addr == 0 })
}

// placeKey returns the key of a place in a link. Several names may have one
// address.
func placeKey(symbol string, addr uint64) string {
	if addr != 0 {
		return fmt.Sprintf("%#x", addr)
	}
	return symbol
}

// take moves the places of an attachment to the link, except for those that it has
// already.
func (j *joint) take(a *compiler.Attachment, objects bool) {
	full := len(j.Places) > 0 && len(j.Places)+len(a.Places) > mostJoined
	if full || j.Kind != a.Kind || j.objects != objects || j.byAddr != knows(a.Places) {
		return
	}
	var rest []compiler.Place
	for _, p := range a.Places {
		key := placeKey(p.Symbol, p.Addr)
		if j.has[key] {
			rest = append(rest, p)
			continue
		}
		j.has[key] = true
		p.Jump = len(j.Jumps)
		if !j.byAddr {
			p.Cookie |= uint64(p.Jump) << cookieJump
		}
		j.Places = append(j.Places, p)
	}
	if len(rest) == len(a.Places) {
		return
	}
	j.Jumps = append(j.Jumps, a.Program)
	if word, ok := objectWord(a.Places[0].Probe, a.Kind); ok && !slices.Contains(j.words, word) {
		j.words = append(j.words, word)
	}
	a.Places = rest
}

// objectWord returns the register of the argument for which the programs of a probe look
// among the objects that are followed, if they do nothing without one at entry. It is not
// inlined: that would take more code.
//
//go:noinline
func objectWord(p *compiler.Probe, kind compiler.Kind) (word int16, ok bool) {
	f := p.Follow
	if f == nil || f.Role == compiler.Starts || kind == compiler.KretprobeMulti {
		return 0, false
	}
	word = f.Object.Base.Param.Words[0].Reg
	return word, word >= 0
}

// addJoint adds the program and the map of a link of several programs.
func (u *generator) addJoint(j *joint, number int, f compiler.Features) {
	j.Program, j.JumpMap = fmt.Sprintf("%s of all (link %d)", j.Kind, number), fmt.Sprintf("jumps_%d", number)
	u.addMap(j.JumpMap, ebpf.ProgramArray, 4, 4, len(j.Jumps))
	c := &code{}
	c.step("%s of %d functions", j.Kind, len(j.Places))
	c.emit(asm.Mov.Reg(rContext, asm.R1))
	if j.objects {
		j.leaveOthers(c, f)
	}
	if j.byAddr {
		c.step("the function's address")
		c.emit(asm.FnGetFuncIp.Call())
		c.step("jump to its program")
		c.emit(asm.Mov.Reg(asm.R1, rContext))
		c.find(stretches(j.Places), j.JumpMap)
	} else {
		c.step("the program's index, from the cookie")
		c.emit(asm.FnGetAttachCookie.Call(), asm.RSh.Imm(asm.R0, cookieJump), asm.Mov.Reg(asm.R3, asm.R0))
		c.step("jump to it")
		c.emit(asm.Mov.Reg(asm.R1, rContext), mapPtr(asm.R2, j.JumpMap), asm.FnTailCall.Call())
	}
	c.label("missing")
	c.step("it is not there")
	c.emit(asm.Mov.Imm(asm.R0, 0), asm.Return())
	c.finish()
	u.Collection.Programs[j.Program] = &ebpf.ProgramSpec{
		Name: "jump", Type: ebpf.Kprobe, AttachType: attachTypes[j.Kind], Instructions: c.insns, License: license,
	}
}

// leaveOthers leaves unless an object is in the bucket of one of the words. The return
// side of a kprobe.session goes on: it runs only after calls that had an object, and its
// registers have other values then.
func (j *joint) leaveOthers(c *code, f compiler.Features) {
	const search, other = "search", "other"
	if j.Kind == compiler.KprobeSession {
		c.isReturn(f, search)
	}
	c.step("may an argument be followed?")
	c.loadObjects(asm.R2)
	c.emit(asm.Mov.Imm(asm.R4, 0))
	for _, word := range j.words {
		c.emit(asm.LoadMem(asm.R3, rContext, word, asm.DWord))
		c.objectBucket(asm.R3)
		c.emit(asm.LoadMem(asm.R3, asm.R3, compiler.ObjectBuckets, asm.Word), asm.Or.Reg(asm.R4, asm.R3))
	}
	c.emit(asm.JEq.Imm(asm.R4, 0, other))
	c.later(other, func() {
		c.step("another object")
		result := int32(0)
		if j.Kind == compiler.KprobeSession && !f.CancelRepeats {
			result = 1 // the return of this call is not wanted
		}
		c.emit(asm.Mov.Imm(asm.R0, result), asm.Return())
	})
	c.label(search)
	c.emit(asm.Mov.Reg(asm.R1, rContext)) // for the helper that finds the function
}

// stretch is a range of addresses in which all functions have one program. It ends
// where the next one begins.
type stretch struct {
	from uint64
	jump int
}

// stretches returns the ranges in the order of their addresses.
func stretches(places []compiler.Place) []stretch {
	sorted := slices.Clone(places) // slices.SortFunc would be compiled for this type alone: 25 KB
	sort.Slice(sorted, func(i, j int) bool { return sorted[i].Addr < sorted[j].Addr })
	var all []stretch
	for _, p := range sorted {
		if len(all) == 0 || all[len(all)-1].jump != p.Jump {
			all = append(all, stretch{p.Addr, p.Jump})
		}
	}
	return all
}

// find jumps to the program for the address in R0, with the context in R1. It halves
// the ranges until one is left. A function's address may be some bytes after that of its
// symbol. Each range has a tail call with an index of its own, so that the kernel makes it
// a direct jump (Linux 5.5, commit 428d5df1fa4f). Without the program, the code goes on at
// the label "missing".
func (c *code) find(all []stretch, jumps string) {
	if len(all) == 1 {
		c.emit(mapPtr(asm.R2, jumps), asm.Mov.Imm(asm.R3, int32(all[0].jump)), asm.FnTailCall.Call(), asm.Ja.Label("missing"))
		return
	}
	upper := c.fresh("upper")
	half := len(all) / 2
	c.jump(asm.JGE, asm.R0, all[half].from, upper)
	c.find(all[:half], jumps)
	c.label(upper)
	c.find(all[half:], jumps)
}

// fixCookies puts the cookies of programs with one place into the programs: they
// need not ask for them.
func (u *generator) fixCookies() {
	places := map[string][]compiler.Place{}
	for _, a := range u.Attachments {
		for _, p := range a.Places {
			if a.Kind.Multi() {
				places[a.ProgramAt(p)] = append(places[a.ProgramAt(p)], p)
			}
		}
	}
	for program, of := range places {
		if len(of) == 1 {
			fixCookie(u.Collection.Programs[program].Instructions, of[0].Cookie)
		}
	}
}

// fixCookie replaces the calls that ask for the cookie.
func fixCookie(insns asm.Instructions, cookie uint64) {
	for i, in := range insns {
		if !in.IsBuiltinCall() || asm.BuiltinFunc(in.Constant) != asm.FnGetAttachCookie {
			continue
		}
		known := asm.LoadImm(asm.R0, int64(cookie), asm.DWord)
		if cookie>>31 == 0 {
			known = asm.Mov.Imm(asm.R0, int32(cookie))
		}
		known.Metadata = in.Metadata
		insns[i] = known
	}
}
