package codegen

import (
	"encoding/binary"
	"math/rand/v2"
)

const (
	heapStart = 0xffff_8880_0000_0000
	heapSize  = 64 << 10
	// heapTail is the size of the zeroes at the end, which end every string and
	// which no object overlaps.
	heapTail  = 8 << 10
	userStart = 0x7fff_0000_0000
)

// heap is the memory of a random kernel, with objects of all types that
// pointers point to. It also has a page of user memory.
type heap struct {
	rnd     *rand.Rand
	bytes   []byte
	used    int
	user    []byte
	objects map[*cType][]uint64
	all     []object
	fixed   bool // whether new objects are not allowed
}

type object struct {
	typ  *cType
	addr uint64
}

func newHeap(rnd *rand.Rand) *heap {
	h := &heap{rnd: rnd, bytes: make([]byte, heapSize), user: make([]byte, 4096), objects: map[*cType][]uint64{}}
	at := 0
	for at < 1000 {
		at += copy(h.user[at:], h.text()) + 1
	}
	return h
}

// at returns n bytes of memory. It sets straddles if only a part of them
// exists: no test depends on what is read then.
func (h *heap) at(addr, n uint64) (b []byte, ok, straddles bool) {
	for _, r := range []region{{heapStart, h.bytes}, {userStart, h.user}} {
		size := uint64(len(r.bytes))
		if off := addr - r.addr; off < size {
			if n > size-off {
				return nil, false, true
			}
			return r.bytes[off:][:n], true, false
		}
		if r.addr-addr < n {
			return nil, false, true
		}
	}
	return nil, false, false
}

// object returns the address of an object of a type.
func (h *heap) object(t *cType) uint64 {
	have := h.objects[t]
	enough := 1
	if t.many {
		enough = 6
	}
	if h.fixed || len(have) > enough && h.rnd.IntN(4) != 0 || len(have) > 4+enough || h.used > heapSize-2*heapTail {
		if len(have) == 0 {
			return heapStart
		}
		return pick(h.rnd, have)
	}
	if h.rnd.IntN(8) == 0 {
		h.used += h.rnd.IntN(8) // not everything is aligned
	}
	addr := heapStart + uint64(h.used)
	h.objects[t] = append(have, addr)
	if t.isChar() {
		h.used += copy(h.bytes[h.used:], h.text()) + 1
		return addr
	}
	n := max(t.size, 1) * (1 + h.rnd.IntN(3))
	b := h.bytes[h.used:][:n]
	h.used += n
	h.all = append(h.all, object{t, addr})
	h.noise(b)
	h.fill(b, t)
	return addr
}

// mutate changes some objects.
func (h *heap) mutate(rnd *rand.Rand) {
	h.rnd = rnd
	for range min(len(h.all), 1+h.rnd.IntN(6)) {
		o := pick(h.rnd, h.all)
		h.fill(h.bytes[o.addr-heapStart:], o.typ)
	}
}

// noise fills bytes with numbers that are often limits.
func (h *heap) noise(b []byte) {
	for i := range b {
		switch h.rnd.IntN(4) {
		case 0:
			b[i] = 0
		case 1:
			b[i] = 0xff
		case 2:
			b[i] = byte(h.rnd.IntN(4))
		default:
			b[i] = byte(h.rnd.Uint32())
		}
	}
}

// fill puts a value of a type at the beginning of b.
func (h *heap) fill(b []byte, t *cType) {
	switch t.kind {
	case cPointer:
		binary.LittleEndian.PutUint64(b, h.pointer(t.to))
	case cRecord:
		for _, m := range t.members {
			if m.bits == 0 {
				h.fill(b[m.offset/8:], m.typ)
			} else if h.rnd.IntN(2) == 0 {
				h.noise(b[m.offset/8 : (m.offset+m.bits+7)/8])
			}
		}
		h.link(b, t)
	case cArray:
		if t.string() {
			h.noise(b[:t.size])
			copy(b[:t.size], h.text()+"\x00")
			return
		}
		for i := range t.n {
			h.fill(b[i*t.to.size:], t.to)
		}
	case cEnum:
		h.noise(b[:t.size])
		if h.rnd.IntN(2) == 0 {
			copy(b[:t.size], binary.LittleEndian.AppendUint64(nil, pick(h.rnd, t.enumerators).Value))
		}
	default:
		h.noise(b[:t.size])
	}
}

// link sets pointers of a structure in memory as its type says, mostly.
func (h *heap) link(b []byte, t *cType) {
	for _, m := range t.members { // in an order that is always the same
		of := t.links[m.name]
		off := len(h.bytes) - cap(b)
		if of == nil || off < 0 || off >= len(h.bytes) || &h.bytes[off] != &b[0] || h.rnd.IntN(16) == 0 {
			continue
		}
		binary.LittleEndian.PutUint64(b[m.offset/8:], of(h, heapStart+uint64(off)))
	}
}

// pointer returns a pointer to a type: a valid one, NULL, an error, one to user
// space, or a dangling one.
func (h *heap) pointer(to *cType) uint64 {
	switch h.rnd.IntN(16) {
	case 0:
		return 0
	case 1:
		return -uint64(1 + h.rnd.IntN(40))
	case 2:
		return userStart + uint64(h.rnd.IntN(1000))
	case 3:
		return 0xffff_8990_0000_0000 + uint64(h.rnd.IntN(1<<20))
	case 4:
		return heapStart + uint64(h.rnd.IntN(h.used+1))
	}
	if to.kind == cVoid {
		to = cChar
	}
	return h.object(to)
}

// text returns a string that is often short, sometimes empty, sometimes long.
func (h *heap) text() string {
	n := h.rnd.IntN(12)
	if h.rnd.IntN(6) == 0 {
		n = h.rnd.IntN(400)
	}
	b := make([]byte, n)
	for i := range b {
		b[i] = "abcabcab01._ \"\\\xff"[h.rnd.IntN(16)]
	}
	return string(b)
}
