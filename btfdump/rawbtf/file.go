package rawbtf

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/cilium/ebpf/btf"
)

// File is an open file. If it is not seekable, it must hold raw BTF.
type File interface {
	io.Reader
	io.ReaderAt
}

// Read returns the BTF of a file, which may be raw BTF or an ELF file with a
// section .BTF. Without such a section the error is [btf.ErrNotFound]. It also
// reports whether the file is an object file of BPF programs.
func Read(f File) (raw []byte, object bool, err error) {
	defer func() { // package debug/elf documents that broken files may make it panic
		if broken := recover(); broken != nil {
			err = fmt.Errorf("it is broken: %v", broken)
		}
	}()
	if isELF(f) {
		return readELF(f)
	}
	raw, err = readBounded(f)
	return raw, false, err
}

func readBounded(r io.Reader) ([]byte, error) {
	raw, err := io.ReadAll(io.LimitReader(r, maxBytes+1))
	if err == nil && len(raw) > maxBytes {
		err = fmt.Errorf("there are more than %d MB", maxBytes>>20)
	}
	return raw, err
}

func isELF(r io.ReaderAt) bool {
	magic := make([]byte, len(elf.ELFMAG))
	_, err := r.ReadAt(magic, 0)
	return err == nil && string(magic) == elf.ELFMAG
}

// readELF reads the section .BTF. It refuses compressed sections, which could have
// any size; in valid files the sections read here are never compressed.
func readELF(r io.ReaderAt) (raw []byte, object bool, err error) {
	if err := checkSectionNames(r); err != nil {
		return nil, false, err
	}
	file, err := elf.NewFile(r)
	if err != nil {
		return nil, false, err
	}
	for _, s := range file.Sections {
		switch {
		case s.Flags&elf.SHF_COMPRESSED == 0:
		case s.Name == ".BTF":
			return nil, false, errors.New("its section .BTF is compressed")
		case s.Type == elf.SHT_SYMTAB, s.Type == elf.SHT_STRTAB:
			return nil, false, errors.New("its symbol table is compressed")
		}
	}
	if s := file.Section(".BTF"); s != nil && s.Type != elf.SHT_NOBITS {
		raw, err = readBounded(s.Open())
		return raw, file.Machine == elf.EM_BPF, err
	}
	return nil, false, btf.ErrNotFound
}

// checkSectionNames refuses a file whose section names are compressed. It parses
// the header itself because package elf reads these names when it opens a file.
func checkSectionNames(r io.ReaderAt) error {
	var h elf.Header64
	if err := readAt(r, 0, &h); err != nil {
		return fmt.Errorf("its header: %w", err)
	}
	if elf.Class(h.Ident[elf.EI_CLASS]) != elf.ELFCLASS64 || elf.Data(h.Ident[elf.EI_DATA]) != elf.ELFDATA2LSB {
		return errors.New("it is not a little-endian ELF file of 64 bits")
	}
	section := func(n uint64) (s elf.Section64, err error) {
		return s, readAt(r, h.Shoff+n*uint64(h.Shentsize), &s)
	}
	names := uint64(h.Shstrndx)
	if names == uint64(elf.SHN_XINDEX) {
		first, err := section(0)
		if err != nil {
			return fmt.Errorf("its first section: %w", err)
		}
		names = uint64(first.Link)
	}
	s, err := section(names)
	if err == nil && elf.SectionFlag(s.Flags)&elf.SHF_COMPRESSED != 0 {
		err = errors.New("they are compressed")
	}
	if err != nil {
		return fmt.Errorf("the names of its sections: %w", err)
	}
	return nil
}

// readAt reads part, a structure of the ELF format, at an offset.
func readAt(r io.ReaderAt, at uint64, part any) error {
	return binary.Read(io.NewSectionReader(r, int64(at), int64(binary.Size(part))), binary.LittleEndian, part)
}
