package rawbtf

import "encoding/binary"

// cutter writes the BTF of a part.
type cutter struct {
	*wire
	levels   []level
	ids      []uint32 // of the types in the whole BTF, by ID in the part
	newIDs   map[uint32]uint32
	newNames map[uint32]uint32 // offsets in names, by offset in the whole BTF
	names    []byte
	out      []byte
}

func (c *cutter) cut() []byte {
	for id, l := range c.levels {
		if l != absent {
			c.newIDs[uint32(id)] = uint32(len(c.ids))
			c.ids = append(c.ids, uint32(id))
		}
	}
	c.out = make([]byte, fileHeader)
	for _, id := range c.ids[1:] {
		c.write(id)
	}
	header := []uint32{magic | 1<<16, fileHeader, 0, uint32(len(c.out) - fileHeader), uint32(len(c.out) - fileHeader), uint32(len(c.names))}
	for i, n := range header {
		binary.LittleEndian.PutUint32(c.out[4*i:], n)
	}
	return append(c.out, c.names...)
}

// write writes a type with its references changed to the IDs of the part.
func (c *cutter) write(id uint32) {
	from := c.wire.at(id)
	if k := kindOf(from); (k == Struct || k == Union) && c.levels[id] == mention {
		c.forward(from, k)
		return
	}
	l, n := shape(from)
	at := len(c.out)
	c.out = append(c.out, from[:l.size(n)]...)
	t := c.out[at:]
	c.rename(t, 0)
	if l.ref {
		c.renumber(t, 8)
	}
	for i := range l.refCount(n) {
		c.renumber(t, l.refAt(i))
	}
	if l.named {
		for i := range n {
			c.rename(t, l.element(i))
		}
	}
}

// forward writes a forward declaration of a structure.
func (c *cutter) forward(from []byte, k Kind) {
	info := uint32(Forward) << 24
	if k == Union {
		info |= 1 << 31
	}
	at := len(c.out)
	c.out = append(c.out, from[:typeHeader]...)
	t := c.out[at:]
	c.rename(t, 0)
	binary.LittleEndian.PutUint32(t[4:], info)
	binary.LittleEndian.PutUint32(t[8:], 0)
}

func (c *cutter) renumber(t []byte, at uint32) {
	binary.LittleEndian.PutUint32(t[at:], c.newIDs[word(t, at)])
}

// rename copies a name to the names of the part. A name that lies outside the
// strings gets an invalid offset, which package btf refuses.
func (c *cutter) rename(t []byte, at uint32) {
	old := word(t, at)
	now, ok := c.newNames[old]
	if !ok && old < uint32(len(c.strings)) {
		now = uint32(len(c.names))
		c.names = append(append(c.names, c.text(old)...), 0)
		c.newNames[old] = now
	} else if !ok {
		now = 1<<32 - 1
	}
	binary.LittleEndian.PutUint32(t[at:], now)
}
