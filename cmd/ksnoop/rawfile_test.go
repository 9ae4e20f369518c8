package main

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime/metrics"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// rawFile is BTF that no builder would write.
type rawFile struct {
	types   []byte
	strings []byte
	number  uint32 // of the last type
}

func newRawFile() *rawFile { return &rawFile{strings: []byte{0}} }

func (r *rawFile) name(s string) uint32 {
	at := len(r.strings)
	r.strings = append(append(r.strings, s...), 0)
	return uint32(at)
}

// add adds a type and returns its number.
func (r *rawFile) add(name, kind, elements, third uint32, more ...uint32) uint32 {
	for _, w := range append([]uint32{name, kind<<24 | elements, third}, more...) {
		r.types = binary.LittleEndian.AppendUint32(r.types, w)
	}
	r.number++
	return r.number
}

func (r *rawFile) bytes() []byte {
	var b []byte
	for _, w := range []int{0x1eb9f, 24, 0, len(r.types), len(r.types), len(r.strings)} {
		b = binary.LittleEndian.AppendUint32(b, uint32(w))
	}
	return append(append(b, r.types...), r.strings...)
}

// Kinds of types in BTF.
const (
	rawInt, rawPtr, rawArray, rawStruct, rawUnion, rawEnum      = 1, 2, 3, 4, 5, 6
	rawTypedef, rawConst, rawFunc, rawProto, rawSection, rawVar = 8, 10, 12, 13, 15, 14
)

func (r *rawFile) integer(name string, size uint32) uint32 {
	return r.add(r.name(name), rawInt, 0, size, 1<<24|8*size)
}

// function adds a function whose parameters are called a0, a1 and so on.
func (r *rawFile) function(name string, params ...uint32) {
	var words []uint32
	for i, p := range params {
		words = append(words, r.name(fmt.Sprintf("a%d", i)), p)
	}
	r.add(r.name(name), rawFunc, 1, r.add(0, rawProto, uint32(len(params)), 0, words...))
}

// safe is what may reach a terminal.
var safe = regexp.MustCompile(`^[\n\t\x20-\x7e\x{a1}-\x{200a}\x{2010}-\x{2027}\x{2030}-\x{205e}\x{2070}-\x{10ffff}]*$`)

// withTypes runs a command line with types from bytes. It must end soon, and
// without much memory, and what it prints must be safe.
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
	status = run(args, strings.NewReader(input), &out, &errors)
	require.Less(t, time.Since(began), time.Minute, line)
	require.Less(t, allocated()-before, uint64(3<<30), line)
	for _, text := range []string{out.String(), errors.String()} {
		require.True(t, safe.MatchString(text), "%s: %q", line, text)
	}
	return status, out.String(), errors.String()
}

// allocated is how many bytes were allocated so far.
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

// elfFile is an ELF file whose one section has this name, these flags and this
// content.
func elfFile(name string, flags elf.SectionFlag, content []byte) []byte {
	var b bytes.Buffer
	names := "\x00" + name + "\x00.shstrtab\x00"
	write := func(data any) { _ = binary.Write(&b, binary.LittleEndian, data) } // no error from a buffer
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
