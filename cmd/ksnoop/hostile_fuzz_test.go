package main

import (
	"debug/elf"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzTypes: any bytes taken for types give a sentence or an answer, soon.
func FuzzTypes(f *testing.F) {
	r := newRawFile()
	r.integer("int", 4)
	r.add(r.name("s"), rawStruct, 2, 16, r.name("a"), 1, 0, 0, 2, 64)
	r.function("f", 2, 1)
	kernel, err := readRawTypes(kernelTypes(f))
	require.NoError(f, err)
	lines := []string{
		"compile|*", "compile|--kernel-features|6.1|vfs_*(file->flags > 1, return)", "compile|f(a0.a, a0.x, a1:x)", "compile|tp:tick",
		"list|*", "list|tp:*", "info|*", "dump|#1", "dump|#2", "dump|#3", "dump|#4", "dump|#5", "dump|--compact|--emit-zeroes|file",
		"dump|-o|json|#6", "compile|vfs_read(count == on, (struct s *)file)", "compile|-s|vfs_open|vfs_read",
	}
	for i := range lines {
		f.Add(kernel.types, kernel.strings, uint8(i))
		f.Add(r.types, r.strings, uint8(i))
	}
	f.Fuzz(func(t *testing.T, types, strings []byte, line uint8) {
		file := &rawFile{types: types, strings: strings}
		withTypes(t, file.bytes(), lines[int(line)%len(lines)], "\x01\xff\x00\x1b[2J and more than enough bytes for small types")
	})
}

// FuzzELF: any bytes taken for an ELF file with types give a sentence or an
// answer.
func FuzzELF(f *testing.F) {
	f.Add(elfFile(".BTF", 0, kernelTypes(f)))
	f.Add(elfFile(".BTF", elf.SHF_COMPRESSED, kernelTypes(f)))
	f.Add(elfFile(".BFT", 0, nil))
	f.Fuzz(func(t *testing.T, file []byte) {
		withTypes(t, append([]byte(elf.ELFMAG), file[min(len(file), len(elf.ELFMAG)):]...), "info|*", "")
	})
}

// FuzzSpecs: any text taken for a spec gives a sentence or an answer.
func FuzzSpecs(f *testing.F) {
	raw := kernelTypes(f)
	for _, text := range []string{
		"vfs_read(file->flags & 2, file, return < 0)", "vfs_*(file)", "tp:tick", "vfs_read((struct file *)count, *file)", "vfs_open(path ~ \"*[a-z]?\")",
		"vfs_read if !(count > 4096 || $comm ~ \"c*\") && return == -EINTR", "vfs_read($kstack, $duration:d, count:x)", "*?*?*?", "x\x1b[2J\n",
	} {
		f.Add(text, uint8(0))
		f.Add(text, uint8(1))
		f.Add(text, uint8(2))
	}
	f.Fuzz(func(t *testing.T, text string, command uint8) {
		withWords(t, raw, []string{[]string{"compile", "list", "info"}[command%3], "--", text}, "")
	})
}
