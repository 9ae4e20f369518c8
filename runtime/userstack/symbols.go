package userstack

import (
	"bytes"
	"cmp"
	"debug/elf"
	"debug/gosym"
	"encoding/binary"
	"io"
	"slices"
	"sort"
	"unsafe"
)

// symbols are the functions of a file.
type symbols struct {
	names []byte // each ends with a NUL
	all   []symbol
}

// symbol is a function. Without a size it ends where the next one begins.
type symbol struct {
	addr, size uint64
	name       uint32 // offset in names
}

// at returns the name and the address of the function at an address.
func (s *symbols) at(addr uint64) (name string, start uint64, ok bool) {
	i, found := slices.BinarySearchFunc(s.all, addr, func(s symbol, addr uint64) int { return cmp.Compare(s.addr, addr) })
	if !found {
		i--
	}
	if i < 0 {
		return "", 0, false
	}
	sym := s.all[i]
	if sym.size != 0 && addr-sym.addr >= sym.size || int(sym.name) >= len(s.names) {
		return "", 0, false
	}
	text, _, _ := bytes.Cut(s.names[sym.name:], []byte{0})
	return string(text), sym.addr, len(text) > 0
}

// mostBytes is the largest size of a part of a file that is read.
const mostBytes = 256 << 20

// parse reads the build ID and the functions of an ELF file: those of the symbol
// table, or of Go's table, or else those that it exports. Anybody may have made the
// file: what is wrong in it is left out.
func parse(from io.ReaderAt) *file {
	f := &file{}
	e, err := elf.NewFile(from)
	if err != nil || e.Class != elf.ELFCLASS64 || e.ByteOrder != binary.LittleEndian {
		return f
	}
	for _, p := range e.Progs {
		switch p.Type {
		case elf.PT_LOAD:
			f.segments = append(f.segments, p.ProgHeader)
		case elf.PT_NOTE:
			if note := make([]byte, min(p.Filesz, 4096)); f.id == "" {
				n, _ := p.ReadAt(note, 0)
				f.id = buildID(note[:n])
			}
		}
	}
	f.symbols = elfSymbols(e, elf.SHT_SYMTAB)
	if len(f.symbols.all) == 0 {
		f.symbols = goSymbols(e)
	}
	if len(f.symbols.all) == 0 {
		f.symbols = elfSymbols(e, elf.SHT_DYNSYM)
	}
	return f
}

// buildID returns the build ID in notes, with zeroes to 20 bytes, as the kernel has
// it; or "" if there is none.
func buildID(notes []byte) string {
	const gnuBuildID = 3
	for len(notes) >= 12 {
		nameSize, size := uint64(binary.LittleEndian.Uint32(notes)), uint64(binary.LittleEndian.Uint32(notes[4:]))
		kind := binary.LittleEndian.Uint32(notes[8:])
		desc := 12 + (nameSize+3)&^3
		next := desc + (size+3)&^3
		if desc+size > uint64(len(notes)) {
			return ""
		}
		if kind == gnuBuildID && string(notes[12:12+nameSize]) == "GNU\x00" && size > 0 && size <= 20 {
			id := make([]byte, 20)
			copy(id, notes[desc:desc+size])
			return string(id)
		}
		if next > uint64(len(notes)) {
			return ""
		}
		notes = notes[next:]
	}
	return ""
}

// section returns the bytes of a section, or nil.
func section(s *elf.Section) []byte {
	if s == nil || s.Type == elf.SHT_NOBITS || s.Size > mostBytes {
		return nil
	}
	data, err := s.Data()
	if err != nil {
		return nil
	}
	return data
}

// elfSymbols returns the functions of a symbol table.
func elfSymbols(e *elf.File, kind elf.SectionType) (s symbols) {
	table := e.SectionByType(kind)
	if table == nil || int(table.Link) >= len(e.Sections) {
		return symbols{}
	}
	names := section(e.Sections[table.Link])
	for raw := range slices.Chunk(section(table), elf.Sym64Size) {
		if len(raw) < elf.Sym64Size {
			break
		}
		info, index := raw[4], binary.LittleEndian.Uint16(raw[6:])
		if t := elf.ST_TYPE(info); t != elf.STT_FUNC && t != elf.STT_GNU_IFUNC || elf.SectionIndex(index) == elf.SHN_UNDEF {
			continue
		}
		if at := binary.LittleEndian.Uint32(raw); int(at) < len(names) {
			name, _, _ := bytes.Cut(names[at:min(int(at)+MostName, len(names))], []byte{0})
			s.add(binary.LittleEndian.Uint64(raw[8:]), binary.LittleEndian.Uint64(raw[16:]), string(name))
		}
	}
	s.sort()
	return s
}

// mostSymbols bounds the memory for the functions of a file, in bytes. Others are not named.
const mostSymbols = 128 << 20

// bytes returns the memory that functions take.
func (s *symbols) bytes() int { return len(s.names) + len(s.all)*int(unsafe.Sizeof(symbol{})) }

// add adds a function, if there is room.
func (s *symbols) add(addr, size uint64, name string) {
	if s.bytes() < mostSymbols {
		s.all = append(s.all, symbol{addr: addr, size: size, name: uint32(len(s.names))})
		s.names = append(append(s.names, name...), 0)
	}
}

// sort sorts functions by address. Of several at one address, the largest remains.
func (s *symbols) sort() {
	sort.SliceStable(s.all, func(i, j int) bool {
		a, b := &s.all[i], &s.all[j]
		return cmp.Or(cmp.Compare(a.addr, b.addr), cmp.Compare(b.size, a.size)) < 0
	})
	s.all = slices.Clip(slices.CompactFunc(s.all, func(a, b symbol) bool { return a.addr == b.addr }))
}

// goSymbols returns the functions of the table that each Go program needs at run
// time, also without a symbol table.
func goSymbols(e *elf.File) (s symbols) {
	lines, code := section(e.Section(".gopclntab")), e.Section(".text")
	if lines == nil || code == nil {
		return symbols{}
	}
	defer func() {
		if recover() != nil { // package gosym expects tables of the linker
			s = symbols{}
		}
	}()
	table, err := gosym.NewTable(nil, gosym.NewLineTable(lines, code.Addr))
	if err != nil {
		return symbols{}
	}
	for _, f := range table.Funcs {
		s.add(f.Entry, f.End-f.Entry, cut(f.Name))
	}
	s.sort()
	return s
}
