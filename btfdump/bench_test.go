package btfdump

import (
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"
)

// wide returns a structure with 50 members of all kinds, and a value of it.
func wide() (*btf.Struct, []byte) {
	s := structure("wide", 50*8)
	sorts := []btf.Type{tInt, tULong, ptr(tPoint), tPoint, array(tU8, 6), array(tChar, 8), tShort, array(tInt, 2), tBool, ptr(tFunc)}
	for i := range uint32(50) {
		s.Members = append(s.Members, member("member"+string('a'+rune(i%26)), 8*i, sorts[int(i)%len(sorts)]))
	}
	data := make([]byte, s.Size)
	for i := range data {
		if i/8%3 != 0 {
			data[i] = 'a' + byte(i%8)
		}
	}
	return s, data
}

func TestNoAllocation(t *testing.T) {
	s, data := wide()
	d, err := New(s, Options{EmitStrings: true, Symbolize: func(uint64) (string, uint64, bool) { return "f", 1, true }})
	require.NoError(t, err)
	dst := d.AppendText(nil, data)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		dst = d.AppendText(dst[:0], data)
		dst = d.AppendText(dst[:0], data[:77])
	}))
}

func BenchmarkNew(b *testing.B) {
	s, _ := wide()
	b.ReportAllocs()
	for b.Loop() {
		_, err := New(s, Options{})
		require.NoError(b, err)
	}
}

func BenchmarkAppendText(b *testing.B) {
	s, data := wide()
	benchmark(b, s, data)
}

// BenchmarkFile prints a struct file of the running kernel with typical contents:
// locks are free, and unions of lists are unused.
func BenchmarkFile(b *testing.B) {
	var file *btf.Struct
	require.NoError(b, kernelTypes(b).TypeByName("file", &file))
	data := make([]byte, file.Size)
	for _, m := range file.Members {
		switch m.Name {
		case "f_inode", "f_op", "f_cred", "f_security", "f_mapping", "f_path", "":
			copy(data[m.Offset/8:], le(uint64(0xffff888812345678)))
		case "f_count", "f_flags", "f_mode", "f_ref":
			copy(data[m.Offset/8:], le(uint32(32768)))
		}
	}
	benchmark(b, file, data)
}

// BenchmarkTaskZero prints a task_struct that is all zeros, which are skipped.
func BenchmarkTaskZero(b *testing.B) {
	var task *btf.Struct
	require.NoError(b, kernelTypes(b).TypeByName("task_struct", &task))
	benchmark(b, task, make([]byte, task.Size))
}

func BenchmarkNewTask(b *testing.B) {
	var task *btf.Struct
	require.NoError(b, kernelTypes(b).TypeByName("task_struct", &task))
	b.ReportAllocs()
	for b.Loop() {
		_, err := New(task, Options{})
		require.NoError(b, err)
	}
}

func benchmark(b *testing.B, t btf.Type, data []byte) {
	d, err := New(t, Options{Indent: " ", IndentLevel: 36, EmitStrings: true})
	require.NoError(b, err)
	dst := d.AppendText(nil, data)
	b.ReportAllocs()
	b.SetBytes(int64(len(dst)))
	for b.Loop() {
		dst = d.AppendText(dst[:0], data)
	}
}
