package kallsyms

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// kernel is a small kernel: aliases, clones, a name that occurs three times, a
// per-CPU variable, the ends of sections, and two modules.
const kernel = `0000000000000000 A fixed_percpu_data
0000000000001a40 A irq_count
ffffffff81000000 T startup_64
ffffffff81000000 T _stext
ffffffff81000000 T _text
ffffffff81000100 t m_start
ffffffff81000200 T __memcpy
ffffffff81000200 W memcpy
ffffffff81000300 t local_alias
ffffffff81000300 T global_alias
ffffffff810003f0 T __pfx_copy_process
ffffffff81000400 t copy_process.isra.0
ffffffff81000500 t copy_process.constprop.0.isra.0
ffffffff81000600 t copy_process.part.0
ffffffff81000700 t copy_process_kthread
ffffffff81000800 t m_start
ffffffff81000900 t copy_process.isra.0.cold
ffffffff81000a00 t copy_process.cold
ffffffff81001000 T _etext
ffffffff82000000 d copy_process.descriptor
ffffffff82000000 D __start_data
ffffffff82100000 B __bss_stop
ffffffff82100000 B _end
ffffffffc0100000 t m_start	[ext4]
ffffffffc0100080 t ext4_last	[ext4]
ffffffffc0000000 t dummy_xmit	[dummy]
`

func read(t *testing.T, text string) *Table {
	t.Helper()
	table, err := Read(strings.NewReader(text), nil)
	require.NoError(t, err)
	return table
}

func names(symbols []Symbol) string {
	var names []string
	for _, s := range symbols {
		names = append(names, s.Name)
	}
	return strings.Join(names, " ")
}

func TestLookup(t *testing.T) {
	table := read(t, kernel)
	require.Equal(t, []Symbol{
		{0xffffffff81000100, 't', "m_start", ""},
		{0xffffffff81000800, 't', "m_start", ""},
		{0xffffffffc0100000, 't', "m_start", "ext4"},
	}, table.Lookup("m_start"))
	require.Equal(t, []Symbol{{0xffffffffc0000000, 't', "dummy_xmit", "dummy"}}, table.Lookup("dummy_xmit"))
	for _, missing := range []string{"", "m", "m_star", "m_start1", "copy_process", "zzz", " "} {
		require.Empty(t, table.Lookup(missing), missing)
	}
}

func TestSuffixed(t *testing.T) {
	table := read(t, kernel)
	require.Equal(t, "copy_process.isra.0 copy_process.constprop.0.isra.0 copy_process.part.0",
		names(table.Suffixed("copy_process")))
	require.Equal(t, "copy_process.constprop.0.isra.0", names(table.Suffixed("copy_process.constprop.0")))
	require.Empty(t, table.Suffixed("copy"))
	require.Empty(t, table.Suffixed("m_start"))
}

func TestFunctions(t *testing.T) {
	require.Equal(t, "startup_64 _stext _text m_start __memcpy memcpy local_alias global_alias"+
		" copy_process.isra.0 copy_process.constprop.0.isra.0 copy_process.part.0 copy_process_kthread"+
		" m_start _etext m_start ext4_last dummy_xmit",
		names(slices.Collect(read(t, kernel).Functions())))
	for s := range read(t, kernel).Functions() { // break ends the iteration
		require.Equal(t, "startup_64", s.Name)
		break
	}
}

func TestAt(t *testing.T) {
	table := read(t, kernel)
	for _, test := range []struct {
		addr   uint64
		name   string // empty if there is no symbol
		offset uint64
	}{
		{0, "", 0},
		{1, "", 0},
		{0x1a40, "", 0}, // a per-CPU offset is not an address
		{0x1a48, "", 0},
		{0xffff888100000000, "", 0}, // the heap
		{0xffffffff80ffffff, "", 0},
		{0xffffffff81000000, "startup_64", 0},
		{0xffffffff810000ff, "startup_64", 0xff},
		{0xffffffff81000100, "m_start", 0},
		{0xffffffff81000104, "m_start", 4},
		{0xffffffff81000210, "__memcpy", 0x10},
		{0xffffffff81000300, "local_alias", 0},
		{0xffffffff810003f4, "__pfx_copy_process", 4},
		{0xffffffff81000404, "copy_process.isra.0", 4},
		{0xffffffff81000a01, "copy_process.cold", 1},
		{0xffffffff81001000, "_etext", 0},
		{0xffffffff81001001, "", 0}, // after the text
		{0xffffffff82000008, "copy_process.descriptor", 8},
		{0xffffffff820fffff, "copy_process.descriptor", 0xfffff},
		{0xffffffff82100000, "__bss_stop", 0},
		{0xffffffff82100001, "", 0},
		{0xffffffffc0000004, "dummy_xmit", 4},
		{0xffffffffc00fffff, "dummy_xmit", 0xfffff},
		{0xffffffffc0100004, "m_start", 4},
		{0xffffffffc0100084, "ext4_last", 4},
		{0xffffffffc0200080, "", 0}, // too far
		{0xffffffffffffffff, "", 0},
	} {
		symbol, offset, ok := table.At(test.addr)
		require.Equal(t, test.name, symbol.Name, "%#x", test.addr)
		require.Equal(t, test.offset, offset, "%#x", test.addr)
		require.Equal(t, test.name != "", ok, "%#x", test.addr)
	}
}

// TestEndMark checks that a mark ends a symbol and is none.
func TestEndMark(t *testing.T) {
	table := read(t, "1000 T a\n1100 T "+EndMark+"\n1200 T "+EndMark+"\n1200 T b\n1300 t "+EndMark+"\n1300 T _etext\n")
	for addr, want := range map[uint64]string{0x1000: "a", 0x10ff: "a", 0x1100: "", 0x1101: "", 0x1200: "b", 0x1201: "b", 0x1300: "_etext", 0x1301: ""} {
		s, _, ok := table.At(addr)
		require.Equal(t, want, s.Name, "%#x", addr)
		require.Equal(t, want != "", ok, "%#x", addr)
	}
	require.EqualValues(t, 0x100, table.Size(table.Lookup("a")[0]))
}

// TestEnd checks that a symbol ends at the next symbol with another address.
func TestEnd(t *testing.T) {
	table := read(t, kernel)
	for name, size := range map[string]uint64{
		"m_start": 0x100, "_text": 0x100, "__memcpy": 0x100, "memcpy": 0x100, "copy_process.cold": 0x600, "_etext": Reach, "_end": Reach,
	} {
		s := table.Lookup(name)[0]
		require.Equal(t, s.Addr+size, table.End(s), name)
	}
	m := table.Lookup("m_start")[2]
	require.Equal(t, m.Addr+0x80, table.End(m))
	last := table.Lookup("ext4_last")[0]
	require.Equal(t, last.Addr+Reach, table.End(last))
}

// TestSize checks that the size of a symbol reaches up to the next symbol with
// another address.
func TestSize(t *testing.T) {
	table := read(t, kernel)
	for _, test := range []struct {
		name string
		size uint64
	}{
		{"m_start", 0x100}, {"_text", 0x100}, {"startup_64", 0x100}, {"__memcpy", 0x100}, {"copy_process.cold", 0x600},
		{"_etext", 0}, {"ext4_last", 0}, {"dummy_xmit", 0},
	} {
		require.Equal(t, test.size, table.Size(table.Lookup(test.name)[0]), test.name)
	}
	require.EqualValues(t, 0x80, table.Size(table.Lookup("m_start")[2]))
	require.Zero(t, read(t, "").Size(Symbol{}))
}

func TestHidden(t *testing.T) {
	for _, test := range []struct {
		about, text string
		hidden      bool
	}{
		{"all zero", "0000000000000000 A a\n0000000000000000 T b\n0000000000000000 t c\t[m]\n", true},
		{"one zero", "0000000000000000 A a\nffffffff81000000 T b\n", false},
		{"empty", "", false},
	} {
		table := read(t, test.text)
		require.Equal(t, test.hidden, table.Hidden(), test.about)
		require.Equal(t, test.hidden, table.NeedAddresses() != nil, test.about)
	}

	// Symbols that were not kept count too.
	only := func(name string) bool { return name == "fixed_percpu_data" }
	table, err := Read(strings.NewReader(kernel), only)
	require.NoError(t, err)
	require.False(t, table.Hidden())
	table, err = Read(strings.NewReader("0 T a\n"), only)
	require.NoError(t, err)
	require.EqualError(t, table.NeedAddresses(), "read kernel symbol addresses: all are zero, as CAP_SYSLOG is missing"+
		" or kernel.kptr_restrict is 2: add CAP_SYSLOG and set kernel.kptr_restrict to 1 or 0")
}

func TestZeroTable(t *testing.T) {
	var table Table
	require.Empty(t, table.Lookup("a"))
	require.Empty(t, table.Suffixed("a"))
	_, _, ok := table.At(1)
	require.False(t, ok)
	require.False(t, table.Hidden())
}

func TestBase(t *testing.T) {
	for _, test := range []struct{ name, base string }{
		{"vfs_read", "vfs_read"},
		{"copy_process.isra.0", "copy_process"},
		{"f.constprop.0.isra.0.cold", "f"},
		{"f.llvm.7038", "f"},
		{".E_copy", ".E_copy"}, // a local label in assembler
		{".E_copy.0", ".E_copy"},
		{"", ""},
	} {
		require.Equal(t, test.base, Base(test.name), test.name)
	}
}

func TestSymbolKind(t *testing.T) {
	for _, test := range []struct {
		kind        byte
		name        string
		text, entry bool
	}{
		{'T', "f", true, true},
		{'t', "f", true, true},
		{'W', "f", true, true},
		{'w', "f", true, true},
		{'D', "f", false, false},
		{'A', "f", false, false},
		{'V', "f", false, false},
		{'t', "f.isra.0", true, true},
		{'t', "f.cold", true, false},
		{'t', "f.part.0.cold", true, false},
		{'t', "f.cold.12", true, false},
		{'t', "f.colder", true, true},
		{'T', "__pfx_f", true, false},
		{'T', "__cfi_f", true, false},
	} {
		s := Symbol{Type: test.kind, Name: test.name}
		require.Equal(t, test.text, s.Text(), "%c %s", test.kind, test.name)
		require.Equal(t, test.entry, s.Entry(), "%c %s", test.kind, test.name)
	}
}

func BenchmarkFirstLookup(b *testing.B) {
	text := generate(150000)
	for _, bench := range []struct {
		name string
		ask  func(*Table) bool
	}{
		{"Lookup", func(t *Table) bool { return len(t.Lookup("__tcp_tcp_0")) > 0 }},
		{"At", func(t *Table) bool { _, _, ok := t.At(0xffffffff81001234); return ok }},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				table, err := Read(bytes.NewReader(text), nil)
				b.StartTimer()
				if err != nil || !bench.ask(table) {
					b.Fatal(err)
				}
			}
		})
	}
}
