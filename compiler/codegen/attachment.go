package codegen

import (
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"slices"
	"strconv"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/ksnoop/ksnoop/compiler"
)

// sides generates the programs of a probe: one for each side that does
// something, or one for both.
func (u *generator) sides(i int, p *compiler.Probe, opts options, entry, ret func(*code)) {
	if p.Attach.Entry == compiler.KprobeSession {
		if !p.ReturnSide() {
			ret = nil
		}
		if !entryProgram(p) {
			entry = nil
		}
		c := u.newCode()
		kprobeSession(c, p, entry, ret)
		u.program(i, p, compiler.KprobeSession, c.insns)
		return
	}
	if entryProgram(p) {
		c := u.newCode()
		entry(c)
		u.program(i, p, p.Attach.Entry, c.insns)
	}
	if p.ReturnSide() {
		c := u.newCode()
		ret(c)
		u.program(i, p, p.Attach.Return, c.insns)
	}
}

// newCode returns an empty program, in the memory of the one before: what is
// kept of a program is a copy.
func (u *generator) newCode() *code {
	u.scratch.insns = u.scratch.insns[:0]
	clear(u.scratch.jumps)
	u.scratch = code{insns: u.scratch.insns, jumps: u.scratch.jumps}
	return &u.scratch
}

// entryProgram reports whether a program runs at entry. It must be called after
// it is decided what is kept.
func entryProgram(p *compiler.Probe) bool { return p.OnEntry || p.Stash || p.Chain != nil }

// license is the license that the kernel requires for GPL-only helpers.
const license = "Dual MIT/GPL"

// attachTypes has the attach type of the programs of each kind.
var attachTypes = map[compiler.Kind]ebpf.AttachType{
	compiler.Fentry:         ebpf.AttachTraceFEntry,
	compiler.Fexit:          ebpf.AttachTraceFExit,
	compiler.TpBTF:          ebpf.AttachTraceRawTp,
	compiler.Iter:           ebpf.AttachTraceIter,
	compiler.KprobeMulti:    ebpf.AttachTraceKprobeMulti,
	compiler.KretprobeMulti: ebpf.AttachTraceKprobeMulti,
	compiler.KprobeSession:  ebpf.AttachTraceKprobeSession,
}

// program adds a program and the places to attach it. Functions with equal
// programs share one, if its kind can have many places.
func (u *generator) program(i int, p *compiler.Probe, kind compiler.Kind, insns asm.Instructions) {
	places := u.places(p, kind)
	key := ""
	if kind.Multi() {
		// A link can have each function only once.
		key = u.unused(u.signature(kind, insns), placeKey(p.Func.Symbol, p.Func.Addr))
		if at, ok := u.shared[key]; ok {
			u.Attachments[at].Places = append(u.Attachments[at].Places, places...)
			return
		}
		u.shared[key] = len(u.Attachments)
	}
	name := fmt.Sprintf("%s on %s (probe %d)", kind, p.Func.Name, i)
	ps := &ebpf.ProgramSpec{
		Name: p.Func.Name, Type: ebpf.Kprobe, AttachType: attachTypes[kind], Instructions: u.keep(insns), License: license,
	}
	switch {
	case kind.Trampoline():
		ps.Type, ps.AttachTo = ebpf.Tracing, p.Func.Name
	case kind == compiler.RawTP:
		ps.Type = ebpf.RawTracepoint
	case kind == compiler.Breakpoint:
		ps.Type, ps.Name = ebpf.PerfEvent, "watch"
	}
	u.Collection.Programs[name] = ps
	a := compiler.Attachment{Program: name, Kind: kind, Places: places}
	if kind == compiler.Kretprobe {
		a.ReturnInstances = p.Attach.ReturnInstances
	}
	if kind == compiler.Kprobe || kind == compiler.Kretprobe { // one attachment for each address
		for _, place := range places {
			a.Places = []compiler.Place{place}
			u.Attachments = append(u.Attachments, a)
		}
		return
	}
	u.Attachments = append(u.Attachments, a)
}

// notes are the names and the comment that an instruction has besides its bytes.
type notes struct {
	reference, symbol string
	source            fmt.Stringer
}

// keep returns a copy of a program. Instructions with equal notes share them: a glob
// has thousands of programs, in which most are the same.
func (u *generator) keep(insns asm.Instructions) asm.Instructions {
	kept := slices.Clone(insns)
	for i := range kept {
		in := &kept[i]
		of := notes{in.Reference(), in.Symbol(), in.Source()}
		if of == (notes{}) {
			continue
		}
		shared, ok := u.notes[of]
		if !ok {
			shared = in.Metadata
			u.notes[of] = shared
		}
		in.Metadata = shared
	}
	return kept
}

// seeds are those of the hash of a program, whose two halves are independent.
var seeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}

// signature returns a hash of what a program does, as a glob has thousands of programs.
// Its 128 bits are random for each run: nobody can choose two programs that have the same.
// SHA-256 would be a quarter of the time to compile a glob.
func (u *generator) signature(kind compiler.Kind, insns asm.Instructions) string {
	b := append(u.hashed[:0], kind...)
	for i := range insns {
		in := &insns[i]
		b = append(b, '\n', byte(in.Dst)<<4|byte(in.Src))
		b = binary.LittleEndian.AppendUint32(b, uint32(in.OpCode))
		b = binary.LittleEndian.AppendUint16(b, uint16(in.Offset))
		b = binary.LittleEndian.AppendUint64(b, uint64(in.Constant))
		b = append(append(append(append(b, in.Reference()...), 0), in.Symbol()...), 0)
	}
	u.hashed = b
	var sum []byte
	for _, s := range seeds {
		sum = binary.LittleEndian.AppendUint64(sum, maphash.Bytes(s, b))
	}
	return string(sum)
}

// unused returns the key of an attachment with these instructions that does not
// have this place yet.
func (u *generator) unused(signature, place string) string {
	place += " " + signature
	key := strconv.Itoa(u.used[place]) + " " + signature
	u.used[place]++
	return key
}

// places returns the addresses of a probe's function. For a link by name, the
// kernel would search all of its symbols.
func (u *generator) places(p *compiler.Probe, kind compiler.Kind) []compiler.Place {
	place := compiler.Place{Probe: p, Symbol: p.Func.Symbol, Offset: p.Offset, Cookie: uint64(u.first[p]) | uint64(u.Elements[p])<<cookieElement}
	if p.Follow != nil && p.Follow.Role == compiler.Ends {
		place.Cookie |= 1 << cookieEnds
	}
	if len(p.Func.Addrs) == 0 {
		if kind.Multi() {
			place.Addr = p.Func.Addr
		}
		return []compiler.Place{place}
	}
	var places []compiler.Place
	for _, place.Addr = range p.Func.Addrs {
		places = append(places, place)
	}
	return places
}
