package main

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"path/filepath"
	"regexp"
	"runtime/metrics"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// safe matches text that may be written to a terminal.
var safe = regexp.MustCompile(`^[\n\t\x20-\x7e\x{a1}-\x{200a}\x{2010}-\x{2027}\x{2030}-\x{205e}\x{2070}-\x{10ffff}]*$`)

// withTypes runs a command line with types from raw. It must end soon, use little
// memory, and print safe text only.
func withTypes(t testing.TB, raw []byte, line, input string) (status int, stdout, stderr string) {
	t.Helper()
	return withWords(t, raw, strings.Split(line, "|"), input)
}

func withWords(t testing.TB, raw []byte, line []string, input string) (status int, stdout, stderr string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "btf")
	require.NoError(t, os.WriteFile(file, raw, 0o600))
	args := append([]string{"ksnoop", line[0], "--btf", file}, line[1:]...)
	var out, errors bytes.Buffer
	began, before := time.Now(), allocated()
	status = ksnoopStatus(args, strings.NewReader(input), &out, &errors)
	require.Less(t, time.Since(began), time.Minute, line)
	require.Less(t, allocated()-before, uint64(3<<30), line)
	for _, text := range []string{out.String(), errors.String()} {
		require.True(t, safe.MatchString(text), "%s: %q", line, text)
	}
	return status, out.String(), errors.String()
}

// allocated returns the number of bytes allocated so far.
func allocated() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

func bytesOf(n int, w uint32) []uint32 {
	words := make([]uint32, n)
	for i := range words {
		words[i] = w
	}
	return words
}

// elfFile returns an ELF file with one section of this name, these flags and this
// content.
func elfFile(name string, flags elf.SectionFlag, content []byte) []byte {
	var b bytes.Buffer
	names := "\x00" + name + "\x00.shstrtab\x00"
	write := func(data any) { _ = binary.Write(&b, binary.LittleEndian, data) } // writing to a buffer does not fail
	write(elf.Header64{
		Ident: [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
		Type:  uint16(elf.ET_REL), Machine: uint16(elf.EM_X86_64), Version: uint32(elf.EV_CURRENT),
		Shoff: 64, Ehsize: 64, Shentsize: 64, Shnum: 3, Shstrndx: 2,
	})
	at := uint64(64 + 3*64)
	write(elf.Section64{})
	write(elf.Section64{Name: 1, Type: uint32(elf.SHT_PROGBITS), Flags: uint64(flags), Off: at, Size: uint64(len(content))})
	write(elf.Section64{Name: uint32(len(name) + 2), Type: uint32(elf.SHT_STRTAB), Off: at + uint64(len(content)), Size: uint64(len(names))})
	b.Write(content)
	b.WriteString(names)
	return b.Bytes()
}
