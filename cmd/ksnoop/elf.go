package main

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/cilium/ebpf/btf"
)

func isELF(r io.ReaderAt) bool {
	magic := make([]byte, len(elf.ELFMAG))
	_, err := r.ReadAt(magic, 0)
	return err == nil && string(magic) == elf.ELFMAG
}

// readELF reads the BTF of an ELF file, and says whether that is an object of
// BPF programs. Sections that are compressed could be of any size; those that
// are read here never are in sound files.
func readELF(r io.ReaderAt) (raw []byte, object bool, err error) {
	if err := checkNames(r); err != nil {
		return nil, false, err
	}
	file, err := elf.NewFile(r)
	if err != nil {
		return nil, false, err
	}
	for _, s := range file.Sections {
		if s.Flags&elf.SHF_COMPRESSED != 0 && (s.Name == ".BTF" || s.Type == elf.SHT_SYMTAB || s.Type == elf.SHT_STRTAB) {
			return nil, false, fmt.Errorf("its section %s is compressed", plainName(s.Name))
		}
	}
	if s := file.Section(".BTF"); s != nil && s.Type != elf.SHT_NOBITS {
		raw, err = readBounded(s.Open())
		return raw, file.Machine == elf.EM_BPF, err
	}
	return nil, false, btf.ErrNotFound
}

// checkNames refuses a file whose names of sections are compressed: package elf
// reads these before anybody can ask.
func checkNames(r io.ReaderAt) error {
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

// readAt reads a part of a header.
func readAt(r io.ReaderAt, at uint64, part any) error {
	return binary.Read(io.NewSectionReader(r, int64(at), int64(binary.Size(part))), binary.LittleEndian, part)
}
