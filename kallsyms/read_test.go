package kallsyms

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

func TestRead(t *testing.T) {
	for _, test := range []struct {
		text string
		want []Symbol
	}{
		{"", nil},
		{"ffffffff81000000 T _text\n", []Symbol{{0xffffffff81000000, 'T', "_text", ""}}},
		{"c0008000 t stext", []Symbol{{0xc0008000, 't', "stext", ""}}},
		{"ffffffff81000000 T _text\r\nffffffffc0000000 d a\t[m]\r\n", []Symbol{{0xffffffff81000000, 'T', "_text", ""}, {0xffffffffc0000000, 'd', "a", "m"}}},
		{"0 A x\n", []Symbol{{0, 'A', "x", ""}}},
		{"ffffffffc0123000 t nft_do_chain\t[nf_tables]\n",
			[]Symbol{{0xffffffffc0123000, 't', "nft_do_chain", "nf_tables"}}},
		{"ffffffffc0201000 t ftrace_trampoline\t[__builtin__ftrace]",
			[]Symbol{{0xffffffffc0201000, 't', "ftrace_trampoline", "__builtin__ftrace"}}},
		{"ffffffffc0045678 t bpf_prog_6deef7357e7b4530_foo\t[bpf]\n",
			[]Symbol{{0xffffffffc0045678, 't', "bpf_prog_6deef7357e7b4530_foo", "bpf"}}},
		{"ffff80007a3d10c8 r .L14472\x021\t[overlay]\n", []Symbol{{0xffff80007a3d10c8, 'r', ".L14472\x021", "overlay"}}},
		{"ffffffff81000000 t a.isra.0\nffffffff81000010 D b\nffffffffc0000000 d a\t[m]\nffffffffc0000008 b c\t[n]\n",
			[]Symbol{
				{0xffffffff81000000, 't', "a.isra.0", ""},
				{0xffffffff81000010, 'D', "b", ""},
				{0xffffffffc0000000, 'd', "a", "m"},
				{0xffffffffc0000008, 'b', "c", "n"},
			}},
	} {
		table, err := Read(strings.NewReader(test.text), nil)
		require.NoError(t, err, test.text)
		require.Equal(t, test.want, slices.Collect(table.All()), test.text)
		require.Equal(t, len(test.want), table.Len())
	}
}

func TestReadMalformed(t *testing.T) {
	good := "ffffffff81000000 T _text\n"
	for _, test := range []struct{ text, line string }{
		{"\n", `line 1: ""`},
		{good + "\n" + good, `line 2: ""`},
		{"hello\n", `line 1: "hello"`},
		{"ffffffff81000000\n", `line 1: "ffffffff81000000"`},
		{"ffffffff81000000 T\n", `line 1: "ffffffff81000000 T"`},
		{"ffffffff81000000 T \n", `line 1: "ffffffff81000000 T "`},
		{good + good + "ffffffff81000000 TT x", `line 3: "ffffffff81000000 TT x"`},
		{"ffffffff81000000  T x\n", `line 1: "ffffffff81000000  T x"`},
		{"FFFFFFFF81000000 T x\n", `line 1: "FFFFFFFF81000000 T x"`},
		{"0xffffffff81000000 T x\n", `line 1: "0xffffffff81000000 T x"`},
		{"0ffffffff81000000 T x\n", `line 1: "0ffffffff81000000 T x"`},
		{" T x\n", `line 1: " T x"`},
		{"0 T \t[m]\n", `line 1: "0 T \t[m]"`},
		{"0 T x [m\n", `line 1: "0 T x [m"`},
		{"0 T x []\n", `line 1: "0 T x []"`},
		{"0 T x y\n", `line 1: "0 T x y"`},
		{"0 \t x\n", `line 1: "0 \t x"`},
		{"0 T " + strings.Repeat("x y", 50), `line 1: "0 T ` + strings.Repeat("x y", 25) + `x"`},
	} {
		table, err := Read(strings.NewReader(test.text), nil)
		require.Nil(t, table, test.text)
		require.EqualError(t, err,
			"parse symbol table, "+test.line+" is not an address, a type, a name and a module", test.text)
	}

	_, err := Read(strings.NewReader(good+"0 T "+strings.Repeat("x", 1<<16)), nil)
	require.EqualError(t, err, "parse symbol table, line 2: longer than 65536 bytes")
}

func TestReadFails(t *testing.T) {
	broken := errors.New("broken")
	_, err := Read(io.MultiReader(strings.NewReader("0 T x\n"), iotest.ErrReader(broken)), nil)
	require.ErrorIs(t, err, broken)
	require.EqualError(t, err, "read symbol table: broken")
}

func TestReadKeepsOnly(t *testing.T) {
	var asked []string
	table, err := Read(strings.NewReader("1 T a\n2 T b\t[m]\n3 T a\n4 T c\n"), func(name string) bool {
		asked = append(asked, name)
		return name == "a"
	})
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b", "a", "c"}, asked)
	require.Equal(t, []Symbol{{1, 'T', "a", ""}, {3, 'T', "a", ""}}, slices.Collect(table.All()))
}

// TestReadPieces checks that the table does not depend on how the reader splits the
// text.
func TestReadPieces(t *testing.T) {
	text := generate(10000)
	require.Greater(t, len(text), 5*chunk)
	whole, err := Read(bytes.NewReader(text), nil)
	require.NoError(t, err)
	require.Equal(t, 10000, whole.Len())
	for _, r := range []io.Reader{
		iotest.OneByteReader(bytes.NewReader(text)),
		iotest.HalfReader(bytes.NewReader(text)),
		iotest.DataErrReader(bytes.NewReader(text)),
		bytes.NewReader(bytes.TrimSuffix(text, []byte("\n"))),
	} {
		table, err := Read(r, nil)
		require.NoError(t, err)
		require.Equal(t, whole, table)
	}
}

// generate returns a table of n lines, like that of a kernel with modules.
func generate(n int) []byte {
	var b bytes.Buffer
	words := strings.Fields("tcp udp vfs ext4 read write get_page sendmsg_locked init x64_sys free_range")
	for i := range n {
		fmt.Fprintf(&b, "%x %c __%s_%s_%x", 0xffffffff81000000+uint64(i)*176, "tTtTdDrW"[i%8], words[i%11], words[i/7%11], i/3)
		if i%16 == 3 {
			b.WriteString(".isra.0")
		}
		if i > n/3*2 {
			fmt.Fprintf(&b, "\t[module_%d]", i/1000)
		}
		b.WriteByte('\n')
	}
	return b.Bytes()
}

func TestReadProc(t *testing.T) {
	file, err := os.Open("/proc/kallsyms")
	if err != nil {
		t.Skip(err)
	}
	defer file.Close()
	table, err := Read(file, nil)
	require.NoError(t, err)
	if table.Len() == 0 {
		t.Skip("a kernel without CONFIG_KALLSYMS")
	}
	functions := table.Lookup("vfs_read")
	require.Len(t, functions, 1)
	require.True(t, functions[0].Entry())
	if table.Hidden() {
		require.ErrorIs(t, table.NeedAddresses(), ErrHidden)
		return
	}
	symbol, offset, ok := table.At(functions[0].Addr + 4)
	require.True(t, ok)
	require.Equal(t, functions[0], symbol)
	require.Equal(t, uint64(4), offset)
}

// FuzzRead checks that Read returns an error or a table that finds each of its
// symbols by name, and by address unless it is hidden or absolute.
func FuzzRead(f *testing.F) {
	f.Add([]byte("ffffffff81000000 T _text\nffffffff81000000 t x.cold\t[m]\n0 A y"))
	f.Add(generate(20))
	f.Fuzz(func(t *testing.T, text []byte) {
		table, err := Read(bytes.NewReader(text), nil)
		if err != nil {
			return
		}
		for s := range table.All() {
			require.NotEmpty(t, s.Name)
			require.False(t, strings.ContainsAny(s.Name, " \t\n"))
			require.Contains(t, table.Lookup(s.Name), s)
			at, offset, ok := table.At(s.Addr)
			require.Equal(t, s.Addr != 0 && !s.Absolute() || ok, ok)
			if ok {
				require.Equal(t, s.Addr, at.Addr+offset)
			}
		}
	})
}

func BenchmarkRead(b *testing.B) {
	text := generate(150000)
	for _, bench := range []struct {
		name string
		keep func(string) bool
	}{
		{"all", nil},
		{"none", func(string) bool { return false }},
		{"one", func(name string) bool { return name == "__tcp_tcp_0" }},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if _, err := Read(bytes.NewReader(text), bench.keep); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// record returns a symbol as a program of package runtime writes it.
func record(addr uint64, kind byte, exported bool, name, module string) string {
	head := append(binary.NativeEndian.AppendUint64(nil, addr), kind, 0)
	if exported {
		head[9] = 1
	}
	return string(head) + name + "\x00" + module + "\x00"
}

// TestReadRecords checks that records give the same table as lines, also across
// chunks.
func TestReadRecords(t *testing.T) {
	var records, lines strings.Builder
	for i := range 5000 {
		addr, name := 0xffffffff81000000+16*uint64(i), fmt.Sprintf("function_%d\x02\xff", i)
		for _, s := range []struct {
			kind     byte
			exported bool
			module   string
			shown    byte
		}{{'T', false, "", 'T'}, {'t', true, "", 't'}, {'T', false, "m", 't'}, {'t', true, "m", 'T'}, {'b', false, "bpf", 'b'}} {
			records.WriteString(record(addr, s.kind, s.exported, name, s.module))
			fmt.Fprintf(&lines, "%x %c %s", addr, s.shown, name)
			if s.module != "" {
				fmt.Fprintf(&lines, "\t[%s]", s.module)
			}
			lines.WriteByte('\n')
		}
	}
	want, err := Read(strings.NewReader(lines.String()), nil)
	require.NoError(t, err)
	for _, r := range []io.Reader{strings.NewReader(records.String()), iotest.OneByteReader(strings.NewReader(records.String()))} {
		got, err := ReadRecords(r, nil)
		require.NoError(t, err)
		require.Equal(t, slices.Collect(want.All()), slices.Collect(got.All()))
	}
	kept, err := ReadRecords(strings.NewReader(records.String()), func(name string) bool { return name == "function_7\x02\xff" })
	require.NoError(t, err)
	require.Equal(t, 5, kept.Len())
	hidden, err := ReadRecords(strings.NewReader(record(0, 'T', false, "a", "")), nil)
	require.NoError(t, err)
	require.True(t, hidden.Hidden())
}

func TestBrokenRecords(t *testing.T) {
	whole := record(1, 'T', false, "a", "m")
	for n := 1; n < len(whole); n++ {
		_, err := ReadRecords(strings.NewReader(whole[:n]), nil)
		require.Error(t, err, n)
	}
	for _, r := range []string{record(1, 'T', false, "", ""), record(1, 0, false, "a", ""), whole + whole[:3]} {
		_, err := ReadRecords(strings.NewReader(r), nil)
		require.Error(t, err)
	}
}
