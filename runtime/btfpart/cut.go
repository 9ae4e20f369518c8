package btfpart

import (
	"bytes"
	"encoding/binary"
)

// cutter writes the BTF of a part.
type cutter struct {
	*blob
	levels   []level
	ids      []uint32 // of the whole, by those of the part
	newIDs   map[uint32]uint32
	newNames map[uint32]uint32 // offsets in names, by those in the whole
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

// write writes a type with the numbers of the part.
func (c *cutter) write(id uint32) {
	from := c.types[c.offsets[id]:]
	k, parts := kind(word(from, 4))
	if (k == kindStruct || k == kindUnion) && c.levels[id] == mention {
		c.forward(from, k)
		return
	}
	size := uint32(typeHeader)
	if int(k) < len(behind) {
		size += behind[k].fixed + parts*behind[k].each
	}
	at := len(c.out)
	c.out = append(c.out, from[:size]...)
	t := c.out[at:]
	c.rename(t, 0)
	switch k {
	case kindPtr, kindTypedef, kindVolatile, kindConst, kindRestrict, kindFunc, kindTypeTag:
		c.renumber(t, 8)
	case kindArray:
		c.renumber(t, 12)
		c.renumber(t, 16)
	case kindFuncProto:
		c.renumber(t, 8)
	}
	for i := range parts {
		c.part(t, k, i)
	}
}

// part writes one of the parts of a type.
func (c *cutter) part(t []byte, k, i uint32) {
	switch k {
	case kindStruct, kindUnion:
		c.rename(t, 12+12*i)
		c.renumber(t, 12+12*i+4)
	case kindFuncProto:
		c.rename(t, 12+8*i)
		c.renumber(t, 12+8*i+4)
	case kindEnum:
		c.rename(t, 12+8*i)
	case kindEnum64:
		c.rename(t, 12+12*i)
	}
}

// forward declares a record.
func (c *cutter) forward(from []byte, k uint32) {
	info := uint32(kindFwd) << 24
	if k == kindUnion {
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

// rename moves a name over. One that lies outside stays there, for package btf
// to refuse.
func (c *cutter) rename(t []byte, at uint32) {
	old := word(t, at)
	now, ok := c.newNames[old]
	if !ok && old < uint32(len(c.strings)) {
		name := c.strings[old:]
		now = uint32(len(c.names))
		c.names = append(c.names, name[:bytes.IndexByte(name, 0)+1]...)
		c.newNames[old] = now
	} else if !ok {
		now = 1<<32 - 1
	}
	binary.LittleEndian.PutUint32(t[at:], now)
}
