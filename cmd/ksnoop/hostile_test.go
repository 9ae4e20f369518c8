package main

import (
	"debug/elf"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/btfdump/rawbtf"
	"github.com/ksnoop/ksnoop/btfdump/rawbtf/rawtest"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/exit"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/fixture"
)

// TestHostileTypes verifies that impossible types give an error of one sentence, in
// little time.
func TestHostileTypes(t *testing.T) {
	const compileF = "compile|f"
	for _, tc := range []struct {
		name  string
		types func(r *rawtest.File)
		line  string
		want  string // in the output
	}{
		{"a chain of pointers that would take the whole stack", func(r *rawtest.File) {
			for range 1_000_000 {
				r.Add(0, rawbtf.Pointer, 0, r.Number+2)
			}
			r.Add(0, rawbtf.Pointer, 0, 0)
		}, compileF, "read the types of FILE: type #1: more than 20000 types need each other\n"},
		{"a reference to nothing", func(r *rawtest.File) { r.Add(0, rawbtf.Pointer, 0, 77) }, compileF, "type #1: there is no type #77\n"},
		{"a name outside", func(r *rawtest.File) { r.Add(99, rawbtf.Typedef, 0, 0) }, compileF, "type #1: its name is at 99 of 1\n"},
		{"a kind that is none", func(r *rawtest.File) { r.Add(0, 31, 0, 0) }, compileF, "type #1: there is no kind 31\n"},
		{"a megabyte of a name, a thousand times", func(r *rawtest.File) {
			long := r.Name(strings.Repeat("x", 1<<20))
			for range 1_000 {
				r.Add(long, rawbtf.Typedef, 0, 0)
			}
		}, compileF, "the names have more than 64 MB\n"},
		{"a file that is too large", func(r *rawtest.File) { r.Strings = make([]byte, 40<<20) }, compileF, "there are more than 32 MB\n"},
		{"types that go round in circles", func(r *rawtest.File) {
			r.Add(r.Name("loop"), rawbtf.Typedef, 0, 2)
			r.Add(0, rawbtf.Const, 0, 1)
			r.Add(0, rawbtf.Array, 0, 0, 3, 3, 7)
			r.Add(r.Name("s"), rawbtf.Struct, 1, 8, 0, 4, 0)
			r.Add(r.Name("u"), rawbtf.Union, 1, 8, 0, 3, 0)
			r.Add(0, rawbtf.Pointer, 0, 6)
			r.Add(0, rawbtf.FuncProto, 1, 7, r.Name("p"), 7)
			for i := range uint32(7) {
				r.Function(fmt.Sprintf("f%d", i), i+1)
			}
		}, "compile|f*", "ksnoop: f*: "},
		{"a structure in itself", func(r *rawtest.File) {
			r.Add(r.Name("s"), rawbtf.Struct, 2, 16, 0, 1, 0, 0, 1, 64)
			r.Function("f", 1)
		}, "compile|f(a0.x)", "struct s has no member 'x'"},
		{"2^100 ways to a member", func(r *rawtest.File) {
			r.Integer("int", 4)
			last := uint32(1)
			for range 100 {
				last = r.Add(0, rawbtf.Struct, 2, 8, 0, last, 0, 0, last, 0)
			}
			r.Function("f", r.Add(0, rawbtf.Pointer, 0, last))
		}, "compile|f(a0->x)", "has no member 'x'"},
		{"2^100 ways to a member of an argument", func(r *rawtest.File) {
			last := r.Integer("int", 4)
			for range 100 {
				last = r.Add(0, rawbtf.Struct, 2, 8, 0, last, 0, 0, last, 0)
			}
			r.Function("f", last)
		}, "compile|f(a0.x)", "has no member 'x'"},
		{"2^100 ways to a number of 16 bytes, on arm64", func(r *rawtest.File) {
			last := r.Integer("int", 4)
			r.Add(r.Name("pt_regs"), rawbtf.Struct, 1, 336, r.Name("pstate"), last, 8*264)
			for range 100 {
				last = r.Add(0, rawbtf.Struct, 2, 16, 0, last, 0, 0, last, 0)
			}
			r.Function("f", last)
		}, "compile|f(a0.x)", "has no member 'x'"},
		{"2^40 values", func(r *rawtest.File) {
			last := r.Integer("int", 4)
			for range 40 {
				last = r.Add(r.Name("s"), rawbtf.Struct, 2, 8, r.Name("a"), last, 0, r.Name("b"), last, 0)
			}
		}, "dump|#41", "type too large\n"},
		{"too many bytes of names in casts", func(r *rawtest.File) {
			long := r.Name(strings.Repeat("x", 500))
			typedef := r.Add(long, rawbtf.Typedef, 0, r.Integer("int", 4)+1)
			var params, members []uint32
			for range 900 {
				params = append(params, long, typedef)
			}
			proto := r.Add(0, rawbtf.FuncProto, 900, 0, params...)
			for i := range uint32(2000) {
				members = append(members, long, r.Add(0, rawbtf.Pointer, 0, proto), 64*i)
			}
			r.Add(r.Name("s"), rawbtf.Struct, 2000, 16000, members...)
		}, "dump|s", "type too large\n"},
		{"an array of 2^64 bytes", func(r *rawtest.File) {
			r.Integer("char", 1)
			r.Add(0, rawbtf.Array, 0, 0, 1, 1, 1<<32-1)
			r.Add(0, rawbtf.Array, 0, 0, 2, 1, 1<<32-1)
			r.Add(r.Name("big"), rawbtf.Typedef, 0, 3)
		}, "dump|big", "type too large\n"},
		{"an argument of 4 GB", func(r *rawtest.File) {
			r.Function("f", r.Add(r.Name("s"), rawbtf.Struct, 0, 1<<32-1))
		}, compileF, "parameter a0: its 4294967295 bytes do not fit on a stack"},
		{"an argument of 2^62 bytes", func(r *rawtest.File) {
			r.Integer("char", 1)
			r.Add(0, rawbtf.Array, 0, 0, 1, 1, 1<<31)
			r.Function("f", r.Add(0, rawbtf.Array, 0, 0, 2, 1, 1<<31))
		}, compileF, "parameter a0: its 4611686018427387904 bytes do not fit on a stack"},
		{"65,535 arguments", func(r *rawtest.File) {
			r.Function("f", bytesOf(65535, r.Integer("int", 4))...)
		}, compileF, "it has 65535 parameters, and 255 is the limit"},
		{"an enum of 16 bytes", func(r *rawtest.File) {
			r.Function("f", r.Add(r.Name("e"), rawbtf.Enum, 0, 16))
		}, "compile|f(a0 > 1)", "cannot be compared"},
		{"an enum of 3 bytes", func(r *rawtest.File) {
			r.Function("f", r.Add(r.Name("e"), rawbtf.Enum, 0, 3))
		}, "compile|f(a0)", "enum e"},
		{"an integer of 4 GB", func(r *rawtest.File) {
			r.Function("f", r.Add(0, rawbtf.Pointer, 0, r.Integer("int", 1<<32-1)))
		}, "compile|f(*a0)", "the first 4096 bytes of 4294967295"},
		{"a member far away", func(r *rawtest.File) {
			r.Integer("char", 1)
			r.Add(0, rawbtf.Array, 0, 0, 1, 1, 1<<30)
			r.Add(0, rawbtf.Array, 0, 0, 2, 1, 1<<30)
			r.Function("f", r.Add(0, rawbtf.Pointer, 0, 3))
		}, "compile|f((*a0)[1][1073741823])", "more than a gigabyte away"},
		{"many functions of one name", func(r *rawtest.File) {
			r.Integer("int", 4)
			name := r.Name("f")
			for i := range uint32(2000) {
				proto := r.Add(0, rawbtf.FuncProto, 1, 0, r.Name(fmt.Sprintf("a%d", i)), 1)
				r.Add(name, rawbtf.Func, 1, proto)
			}
		}, compileF, "f is in BTF with more than 100 prototypes"},
		{"many types of one name", func(r *rawtest.File) {
			name := r.Name("twin")
			for i := range uint32(2000) {
				r.Add(name, rawbtf.Struct, 0, i)
			}
		}, "dump|twin", "there are 2000 types \"twin\": #1 is struct twin of 0 bytes, "},
		{"too many types of one name", func(r *rawtest.File) {
			for i := range 3000 {
				r.Add(r.Name(fmt.Sprintf("f___%d", i)), rawbtf.Typedef, 0, 0)
			}
		}, compileF, "type #2001: more than 2000 types are called \"f\"\n"},
		{"functions whose names begin with the mark of a flavour", func(r *rawtest.File) {
			for i := range 2000 {
				r.Function(fmt.Sprintf("___%d", i))
			}
		}, "compile|*", "*: 2000 functions are traced"},
		{"many functions", func(r *rawtest.File) {
			proto := r.Add(0, rawbtf.FuncProto, 0, 0)
			for i := range 50_000 {
				r.Add(r.Name(fmt.Sprintf("f%d", i)), rawbtf.Func, 1, proto)
			}
		}, "compile|*", "'*' means 50000 functions, and 16384 is the limit\n"},
		{"long names that are nearly one", func(r *rawtest.File) {
			for i := range 60_000 {
				r.Add(r.Name(fmt.Sprintf("%0500d", i)), rawbtf.Typedef, 0, 0)
			}
		}, "dump|" + strings.Repeat("1", 500), "there is no type"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := rawtest.New()
			tc.types(r)
			_, stdout, stderr := withTypes(t, r.Bytes(), tc.line, "")
			stderr = regexp.MustCompile(`of /\S+/btf:`).ReplaceAllString(stderr, "of FILE:")
			text := stdout + stderr
			require.Contains(t, text, tc.want)
			require.Less(t, len(text), 100_000)
		})
	}
}

// evilName has what a name in the types may hold: escapes, line ends, incomplete
// characters.
const evilName = "evil\x1b[2J\n\rx\x9b31m\u009b\u202e\xff"

// TestHostileNames verifies that names of types are printed without control
// characters, and on one line.
func TestHostileNames(t *testing.T) {
	r := rawtest.New()
	evil := r.Name(evilName)
	integer := r.Add(evil, rawbtf.Int, 0, 4, 1<<24|32)
	enum := r.Add(evil, rawbtf.Enum, 1, 4, evil, 1)
	members := []uint32{evil, integer, 0, r.Name("mode"), enum, 32, r.Name("mood"), r.Add(evil, rawbtf.Typedef, 0, integer), 64}
	record := r.Add(evil, rawbtf.Struct, 3, 12, members...)
	pointer := r.Add(0, rawbtf.Pointer, 0, record)
	function := func(name, param uint32) {
		r.Add(name, rawbtf.Func, 1, r.Add(0, rawbtf.FuncProto, 2, integer, param, pointer, r.Name("x"), enum))
	}
	function(r.Name("f"), r.Name("a"))
	function(r.Name("g"), evil)
	function(evil, evil)
	function(r.Name("twice"), r.Name("a"))
	r.Add(r.Name("twice"), rawbtf.Func, 1, r.Add(0, rawbtf.FuncProto, 1, 0, evil, record))
	r.Add(r.Name("h"), rawbtf.Func, 1, r.Add(0, rawbtf.FuncProto, 1, 0, r.Name("x"), r.Integer("long", 8)))
	forward := r.Add(evil, rawbtf.Forward, 0, 0)
	r.Add(r.Name("broken"), rawbtf.Func, 1, r.Add(0, rawbtf.FuncProto, 1, 0, evil, forward))
	r.Add(evil, rawbtf.Datasec, 1, 4, r.Add(evil, rawbtf.Var, 0, integer, 0), 0, 4)
	raw := r.Bytes()
	for _, line := range []string{
		"compile|f", "compile|g", "compile|*", "compile|f(a->mode, a->mood > 1)", "compile|f(a->mude)", "compile|f(x == 99999999999)",
		"compile|f(x == evil)", "compile|*(x > 99999999999)", "compile|f((struct evil)a)", "compile|twice", "compile|broken", "compile|bro*", "compile|f if a == 1",
		"compile|f(a ~ \"x\")", "compile|f(a->mode.x)", "compile|f(a[0][0])", "compile|*(a->nothing)", "compile|-s|f|g", "compile|evil",
		"check|f(a->mude)", "check|evil", "check|*", "check|f(x == 99999999999)", "check|twice", "check|broken|f(y)", "check|-o|ktap|f(y)|evil", "check|-o|json|f(y)",
		"check|-o|junit|f(y)", "check|-o|github|f(y)", "check|\x1b[2J",
		"list|*", "list|f", "list|broken", "list|tw*", "info|*", "info|f", "info|broken", "info|nothing",
		"dump|#4", "dump|#1", "dump|#2", "dump|evil", "dump|#5", "dump|--compact|#4", "dump|-o|json|#4", fmt.Sprintf("dump|#%d", r.Number),
		"compile|\x1b[2J", "info|\u202ef", "compile|f(a == \x9b)", "list|\xff", "dump|\x1b]0;x\a", "compile|--attach|\x1b[2J|f",
		"compile|--no-\x1b[2J|f", "compile|-\x9b|f", "compile|--btf|\x1b[2J\n|f", "dump|-o|\x1b|#1", "dump|--indent|\x1b|#1",
	} {
		_, stdout, stderr := withTypes(t, raw, line, "\x01\x00\x00\x00\x01\x00\x00\x00\x05\x00\x00\x00")
		require.NotEmpty(t, stdout+stderr, line)
		for _, text := range strings.Split(stdout+stderr, "\n") {
			require.False(t, strings.HasPrefix(text, "\r") || strings.HasPrefix(text, "?"), "%s: %q", line, stdout+stderr)
		}
	}
}

// TestHostileSpecs verifies that specs of any length are handled in finite time, and
// that limits are reported.
func TestHostileSpecs(t *testing.T) {
	raw := fixture.Types(t)
	repeat := func(part string, n int, between string) string {
		var parts []string
		for i := range n {
			parts = append(parts, strings.ReplaceAll(part, "#", fmt.Sprint(i)))
		}
		return strings.Join(parts, between)
	}
	for _, tc := range []struct{ text, want string }{
		{strings.Repeat("x", 1<<20), "the spec has 1048576 bytes, the limit is 65536\n"},
		{strings.Repeat("x", 60_000), "a name of 60000 characters is longer than any in the kernel (511)\n"},
		{strings.Repeat("*?", 250), "no function of this kernel matches '*?*?"},
		{strings.Repeat("*", 500), "5 functions are traced, 1 left out"},
		{"vfs_read(" + strings.Repeat("(", 30_000), "more than 64 parentheses, casts, '*' and '!' inside each other\n"},
		{"vfs_read(" + strings.Repeat("*", 30_000) + "file)", "more than 64 parentheses, casts, '*' and '!' inside each other\n"},
		{"vfs_read(" + strings.Repeat("(u8)", 15_000) + "count)", "more than 64 parentheses, casts, '*' and '!' inside each other\n"},
		{"vfs_read if " + strings.Repeat("!", 30_000) + "count", "more than 64 parentheses, casts, '*' and '!' inside each other\n"},
		{"vfs_read((int " + strings.Repeat("*", 30_000) + ")file)", "a pointer to a pointer and so on, more than 64 of them\n"},
		{"vfs_read(file" + strings.Repeat("->pos", 10_000) + ")", "a value with more than 64 members\n"},
		{"vfs_read(count == " + strings.Repeat("9", 60_000) + ")", "...' is out of range\n"},
		{"vfs_read($duration > " + strings.Repeat("9", 60_000) + "ms)", "...' is "},
		{"vfs_open(path == \"" + strings.Repeat("x", 60_000) + "\")", "a string of 60000 bytes is longer than the limit (255)\n"},
		{"vfs_open(path ~ \"" + strings.Repeat("?", 100) + "\")", "a pattern of 100 elements is longer than the limit (60)\n"},
		{"vfs_read(" + repeat("file", 10_000, ",") + ")", "vfs_read: kprobe"},
		{"vfs_read(" + repeat("file[#]", 5000, ",") + ")", "vfs_read has 5000 values, more than fit in one record\n"},
		{"vfs_read(" + repeat("file[#].pos==1", 3500, ",") + ")", "vfs_read: kprobe"},
		{"vfs_read if " + repeat("count==#", 5000, "||"), "vfs_read: kprobe"},
		{"vfs_read if " + repeat("file[#].pos==1||return==#", 1500, "&&"), "the condition joins entry and return in 1500 places, and 32 is the limit\n"},
		{"vfs_open if " + repeat("path ~ \"*a?[b-z]*#\"", 500, "||"), "vfs_open: kprobe"},
	} {
		_, stdout, stderr := withWords(t, raw, []string{"compile", "--", tc.text}, "")
		require.Contains(t, stdout+stderr, tc.want)
		require.Less(t, len(stderr), 2000)
	}
	many := slices.Repeat([]string{"vfs_read(file, return)"}, 2000)
	_, stdout, stderr := withWords(t, raw, append([]string{"compile", "--"}, many...), "")
	require.Contains(t, stdout, "and 1995 more", stderr)
}

// TestELF covers types in a section of an ELF file, which may be broken, too.
func TestELF(t *testing.T) {
	raw := fixture.Types(t)
	bpf := elfFile(".BTF", 0, raw)
	bpf[18] = byte(elf.EM_BPF)
	compressedNames := elfFile(".BTF", 0, raw)
	compressedNames[64+2*64+8+1] |= byte(elf.SHF_COMPRESSED >> 8)
	bomb := append([]byte{1, 0, 0, 0, 0, 0, 0, 0}, make([]byte, 16)...)
	for _, tc := range []struct {
		file []byte
		want string
	}{
		{elfFile(".BTF", 0, raw), "long vfs_read(struct file *file, long count);\n"},
		{bpf, "btf: can't read symbols"},
		{elfFile(".BFT", 0, raw), "btf has no type information: give a file of raw BTF, or an ELF file with a .BTF section\n"},
		{elfFile(".BTF", 0, raw[:50]), "btf: it ends too early\n"},
		{elfFile(".BTF", elf.SHF_COMPRESSED, bomb), "btf: its section .BTF is compressed\n"},
		{compressedNames, "btf: the names of its sections: they are compressed\n"},
		{elfFile(".BTF", 0, make([]byte, 40<<20)), "btf: there are more than 32 MB\n"},
		{elfFile(".BTF", 0, raw)[:100], "ksnoop: read the types of /"},
	} {
		_, stdout, stderr := withTypes(t, tc.file, "info|vfs_read", "")
		require.Contains(t, stdout+stderr, tc.want)
	}
	status, _, stderr := withTypes(t, raw, "info|--btf|/dev/zero|vfs_read", "")
	require.Equal(t, exit.Failure, status)
	require.Equal(t, "ksnoop: read the types of /dev/zero: there are more than 32 MB\n", stderr)
}
