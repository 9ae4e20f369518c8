package main

import (
	"bytes"
	"debug/elf"
	"testing"

	"github.com/ksnoop/ksnoop/btfdump/rawbtf"
	"github.com/ksnoop/ksnoop/btfdump/rawbtf/rawtest"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/fixture"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/target"
	"github.com/ksnoop/ksnoop/compiler/resolve"
	"github.com/ksnoop/ksnoop/runtime/recording"
	"github.com/stretchr/testify/require"
)

// FuzzTypes verifies that any bytes as types give an error or an answer, in little
// time.
func FuzzTypes(f *testing.F) {
	r := rawtest.New()
	r.Integer("int", 4)
	r.Add(r.Name("s"), rawbtf.Struct, 2, 16, r.Name("a"), 1, 0, 0, 2, 64)
	r.Function("f", 2, 1)
	kernel := rawtest.Read(fixture.Types(f))
	lines := []string{
		"compile|*", "compile|--kernel-features|6.1|vfs_*(file->flags > 1, return)", "compile|f(a0.a, a0.x, a1:x)", "compile|tp:tick",
		"list|*", "list|tp:*", "info|*", "dump|#1", "dump|#2", "dump|#3", "dump|#4", "dump|#5", "dump|--compact|--emit-zeroes|file",
		"dump|-o|json|#6", "compile|vfs_read(count == on, (struct s *)file)", "compile|-s|vfs_open|vfs_read",
	}
	for i := range lines {
		f.Add(kernel.Types, kernel.Strings, uint8(i))
		f.Add(r.Types, r.Strings, uint8(i))
	}
	f.Fuzz(func(t *testing.T, types, strings []byte, line uint8) {
		file := &rawtest.File{Types: types, Strings: strings}
		withTypes(t, file.Bytes(), lines[int(line)%len(lines)], "\x01\xff\x00\x1b[2J and more than enough bytes for small types")
	})
}

// FuzzELF verifies that any bytes as an ELF file with types give an error or an
// answer.
func FuzzELF(f *testing.F) {
	f.Add(elfFile(".BTF", 0, fixture.Types(f)))
	f.Add(elfFile(".BTF", elf.SHF_COMPRESSED, fixture.Types(f)))
	f.Add(elfFile(".BFT", 0, nil))
	f.Fuzz(func(t *testing.T, file []byte) {
		withTypes(t, append([]byte(elf.ELFMAG), file[min(len(file), len(elf.ELFMAG)):]...), "info|*", "")
	})
}

// FuzzSpecs verifies that any text as a spec gives an error or an answer.
func FuzzSpecs(f *testing.F) {
	raw := fixture.Types(f)
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

// FuzzRecordable verifies that what is recorded of any spec can be read again, also
// with a condition of an option, which a spec might not be able to have.
func FuzzRecordable(f *testing.F) {
	for _, text := range []string{
		"vfs_read(file->flags & 2, file, return < 0) if $comm ~ \"c*\"", "vfs_*(file)", "tp:tick", "vfs_open(path ~ \"*[a-z]?\", path:ustring)",
		"vfs_read(count, diff(*file), after(file->pos) > 1, $kstack, $ustack, $duration)", "vfs_open(path) => vfs_read($duration, count()) on file",
		"vfs_read($comm, count:symbol, count(), hist($duration), lhist(count, 0, 100, 10)) if return > 0",
		"p:mine vfs_read count=%dx:u64 if count == 6", "r:back vfs_open +0($arg1):string n=$retval:s64 if n < 0", "p:a/b vfs_read \\\"text\" $comm",
		"vfs_read(count * 2 > file->pos + 7, (u8)count, count & 7)", "vfs_read(file->flags:ip4, file->pos, $container, $cgroup, return:x16)",
	} {
		f.Add(text, true)
		f.Add(text, false)
	}
	comm, err := target.CommCondition("comm", "c*")
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, text string, option bool) {
		cond := comm
		if !option {
			cond = nil
		}
		unit, err := tryUnit(t, cond, resolve.Wishes{}, text)
		if err != nil {
			return
		}
		var file bytes.Buffer
		_, err = recording.NewWriter(&file, unit, recording.Origin{Specs: []string{text}}, nil)
		require.NoError(t, err)
		r, err := recording.NewReader(&file)
		require.NoError(t, err)
		require.Len(t, r.Unit.Events, len(unit.Events))
		for i, ev := range unit.Events {
			require.Equal(t, ev.Probe.Func.Name, r.Unit.Events[i].Probe.Func.Name)
			require.Equal(t, ev.Layout, r.Unit.Events[i].Layout)
		}
	})
}
