package compiler

import (
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

// Attachment puts one program on functions: on one, or with a kind that is
// [Kind.Multi] on many at once.
type Attachment struct {
	Program string // name in Collection
	Kind    Kind
	Places  []Place
	// ReturnInstances is the number of concurrent calls to ask for; 0: the
	// kernel sets no limit.
	ReturnInstances int
}

// Place is one function, or tracepoint, to attach to.
type Place struct {
	Probe *Probe
	// Symbol is the name to attach to.
	Symbol string
	// Addr is where to attach if the name alone does not say it; else 0.
	Addr uint64
	// Offset is how far behind it, in a kprobe.
	Offset uint64
	// Cookie is what the program gets from bpf_get_attach_cookie, in kinds
	// that are [Kind.Multi].
	Cookie uint64
}

func (a Attachment) order() int {
	switch a.Kind {
	case Fexit, Kretprobe, KretprobeMulti:
		return 0
	}
	return 1
}

// sides makes the programs of a probe: one for each side that has something to
// do, or one for both.
func (u *Unit) sides(i int, p *Probe, opts Options, entry, ret func(*code)) {
	if p.Attach.Entry == Session {
		if !p.returnSide() {
			ret = nil
		}
		if !p.entryProgram() {
			entry = nil
		}
		c := &code{}
		session(c, p, int64(opts.Features.SessionIsReturn), entry, ret)
		u.program(i, p, Session, c.insns)
		return
	}
	if p.entryProgram() {
		c := &code{}
		entry(c)
		u.program(i, p, p.Attach.Entry, c.insns)
	}
	if p.returnSide() {
		c := &code{}
		ret(c)
		u.program(i, p, p.Attach.Return, c.insns)
	}
}

// entryProgram says whether anything is done at entry, now that it is decided
// what is kept.
func (p *Probe) entryProgram() bool { return p.OnEntry || p.Stash || p.Chain != nil }

// license is what the kernel's GPL-only helpers ask for.
const license = "Dual MIT/GPL"

// attachTypes are those of the programs of each kind.
var attachTypes = map[Kind]ebpf.AttachType{
	Fentry:         ebpf.AttachTraceFEntry,
	Fexit:          ebpf.AttachTraceFExit,
	TpBTF:          ebpf.AttachTraceRawTp,
	KprobeMulti:    ebpf.AttachTraceKprobeMulti,
	KretprobeMulti: ebpf.AttachTraceKprobeMulti,
	Session:        ebpf.AttachTraceKprobeSession,
}

// program adds a program and where to attach it. Functions whose programs are
// equal share one, if its kind can have many places.
func (u *Unit) program(i int, p *Probe, kind Kind, insns asm.Instructions) {
	places := u.places(p)
	key := ""
	if kind.Multi() {
		// A link has each function once.
		key = u.unused(signature(kind, insns), p.Func.Symbol)
		if at, ok := u.shared[key]; ok {
			u.Attachments[at].Places = append(u.Attachments[at].Places, places...)
			return
		}
		u.shared[key] = len(u.Attachments)
	}
	name := fmt.Sprintf("%s on %s (probe %d)", kind, p.Func.Name, i)
	ps := &ebpf.ProgramSpec{
		Name: p.Func.Name, Type: ebpf.Kprobe, AttachType: attachTypes[kind], Instructions: insns, License: license,
	}
	if kind.trampoline() {
		ps.Type, ps.AttachTo = ebpf.Tracing, p.Func.Name
	}
	u.Collection.Programs[name] = ps
	a := Attachment{Program: name, Kind: kind, Places: places}
	if kind == Kretprobe {
		a.ReturnInstances = p.Attach.ReturnInstances
	}
	if kind == Kprobe || kind == Kretprobe { // one for each address
		for _, place := range places {
			a.Places = []Place{place}
			u.Attachments = append(u.Attachments, a)
		}
		return
	}
	u.Attachments = append(u.Attachments, a)
}

// unused is a key for an attachment with these instructions that has no place
// at the symbol.
func (u *Unit) unused(signature, symbol string) string {
	place := symbol + " " + signature
	key := fmt.Sprintf("%d %s", u.used[place], signature)
	u.used[place]++
	return key
}

// places are the addresses of a probe's function.
func (u *Unit) places(p *Probe) []Place {
	place := Place{Probe: p, Symbol: p.Func.Symbol, Offset: p.Offset, Cookie: uint64(u.first[p]) | uint64(u.elements[p])<<cookieElement}
	if len(p.Func.Addrs) == 0 {
		return []Place{place}
	}
	var places []Place
	for _, place.Addr = range p.Func.Addrs {
		places = append(places, place)
	}
	return places
}
