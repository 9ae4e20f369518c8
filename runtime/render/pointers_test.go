package render

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/kallsyms"
	"github.com/ksnoop/ksnoop/runtime"
)

const pointerSymbols = `0000000000001000 A cpu_number
ffffffff81000000 T _stext
ffffffff81000010 T do_it
ffffffff81000100 T _etext
ffffffff82000000 D file_ops
ffffffff82000040 D evil` + "\x1b" + `[2J
ffffffff82000080 B _end
ffffffffc0000000 t mod_open	[mod]
`

// TestPointerNames verifies which addresses have names.
func TestPointerNames(t *testing.T) {
	release := make(chan bool)
	p := NewPointerNames(func() (kallsyms.Finder, error) {
		<-release
		return kallsyms.Read(strings.NewReader(pointerSymbols), nil)
	})
	_, _, ok := p.at(0xffffffff82000000)
	require.False(t, ok, "nothing waits for the symbols")
	close(release)
	require.Eventually(t, func() bool { return p.finder.Load() != nil }, time.Minute, time.Millisecond)
	for range 2 { // the second time from the cache
		for addr, want := range map[uint64]string{
			0xffffffff82000000: "file_ops", 0xffffffff82000008: "file_ops+8", 0xffffffff81000012: "do_it+2", 0xffffffffc0000000: "mod_open",
			0xffffffff82000040: "evil?[2J", 0xffffffffc0000004: "", 0xffffffff82000088: "", 0x1000: "", 0x1008: "", 0xffff888000001000: "", 0: "",
		} {
			name, offset, ok := p.at(addr)
			if offset != 0 {
				name += "+" + string('0'+rune(offset))
			}
			require.Equal(t, want, name, "%#x", addr)
			require.Equal(t, want != "", ok, "%#x", addr)
		}
	}
}

// TestNoPointerNames verifies that nothing is named without symbols.
func TestNoPointerNames(t *testing.T) {
	read := make(chan bool)
	p := NewPointerNames(func() (kallsyms.Finder, error) {
		defer close(read)
		return nil, errors.New("no")
	})
	for range 3 {
		_, _, ok := p.at(0xffffffff82000000)
		require.False(t, ok)
		<-read // it is read once
	}
}

// TestNamedPointers verifies where the names are shown in each format.
func TestNamedPointers(t *testing.T) {
	operations := &btf.Struct{Name: "ops", Size: 24, Members: []btf.Member{
		{Name: "ops", Type: &btf.Pointer{Target: &btf.Void{}}}, {Name: "open", Type: &btf.Pointer{Target: &btf.FuncProto{Return: &btf.Void{}}}, Offset: 64},
		{Name: "heap", Type: &btf.Pointer{Target: &btf.Void{}}, Offset: 128},
	}}
	var data []byte
	for _, addr := range []uint64{0xffffffff82000000, 0xffffffff81000012, 0xffff888000001000} {
		data = binary.LittleEndian.AppendUint64(data, addr)
	}
	event := newEvent(compiler.EntryEvent, runtime.Value{Value: plain("file", operations), Data: data})
	for format, want := range map[string]string{
		"text":    ".ops = (void *)0xffffffff82000000 <file_ops>,\n",
		"compact": "file={.ops = (void *)0xffffffff82000000 <file_ops>,.open = (void (*)(void))0xffffffff81000012 <do_it+0x2>,.heap = (void *)0xffff888000001000,}",
		"json": `"args":{"file":{"ops":"0xffffffff82000000","open":"0xffffffff81000012","heap":"0xffff888000001000"}},` +
			`"symbols":{"0xffffffff82000000":"file_ops","0xffffffff81000012":"do_it+0x2"}}`,
	} {
		names := NewPointerNames(func() (kallsyms.Finder, error) { return kallsyms.Read(strings.NewReader(pointerSymbols), nil) })
		names.load()
		p, err := New(&compiler.Unit{}, Options{Format: format, Values: dumpDefaults, Pointers: names})
		require.NoError(t, err)
		require.NoError(t, p.Event(event))
		require.NoError(t, p.Event(event))
		var text strings.Builder
		require.NoError(t, p.Flush(&text))
		require.Equal(t, 2, strings.Count(text.String(), want), text.String())
		if format == "json" {
			require.NoError(t, strictSchema(t, "trace").Lines(text.String()))
		}
	}
}

// BenchmarkPointers compares dumps with and without the names of pointers: of a struct file
// with a symbol, f_op, and of operations, in which each second pointer is one.
func BenchmarkPointers(b *testing.B) {
	kernel, err := btf.LoadKernelSpec()
	require.NoError(b, err)
	for _, name := range []string{"file", "file_operations"} {
		var of *btf.Struct
		require.NoError(b, kernel.TypeByName(name, &of))
		data := bytes.Repeat([]byte{1}, int(of.Size))
		for i, m := range of.Members {
			if _, ok := btf.UnderlyingType(m.Type).(*btf.Pointer); ok {
				addr := 0xffff888000001000 + uint64(i)
				if m.Name == "f_op" || name == "file_operations" && i%2 == 0 {
					addr = []uint64{0xffffffff82000000, 0xffffffff81000010}[i/2%2]
				}
				binary.LittleEndian.PutUint64(data[m.Offset.Bytes():], addr)
			}
		}
		event := newEvent(compiler.EntryEvent, runtime.Value{Value: plain(name, of), Data: data})
		for _, form := range []string{"bare", "named"} {
			b.Run(name+"/"+form, func(b *testing.B) {
				o := Options{Values: dumpDefaults}
				if form == "named" {
					o.Pointers = NewPointerNames(func() (kallsyms.Finder, error) { return kallsyms.Read(strings.NewReader(pointerSymbols), nil) })
					o.Pointers.load()
				}
				p := newPrinter(withNames(o), &compiler.Unit{})
				b.ReportAllocs()
				for b.Loop() {
					p.text = p.text[:0]
					if err := p.Event(event); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func withNames(o Options) Options {
	o.Symbols = &Symbols{asked: true}
	if o.Pointers != nil {
		o.Values.Symbolize = o.Pointers.at
	}
	return o
}
