//go:build linux

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/e2e/bench"
	"github.com/ksnoop/ksnoop/e2e/vm"
)

var (
	results = flag.String("results", "", "directory for the table of TestBench, which runs if there is one")
	steps   = flag.String("steps", "", "the steps of TestBench to run, a regular expression: see benchmark.steps")
)

// benchKernels are where the costs are measured.
var benchKernels = []string{"6.1", "6.12"}

// Where the peers are on Debian, and in the guest.
const (
	bccPath      = "/usr/sbin/ksnoop"
	bpftracePath = "/usr/bin/bpftrace"
)

// TestBench prints what tracing costs beside what it costs with empty programs,
// bcc's ksnoop and bpftrace: in virtual machines in which a nanosecond is an
// instruction, so that load changes nothing.
func TestBench(t *testing.T) {
	if *results == "" {
		t.Skip("measures for minutes: -results says where the table goes")
	}
	requireMachine(t)
	qemu, err := vm.QEMU(t.Context())
	require.NoError(t, err)
	files := append(guestFiles(t), peerFiles(t)...)
	rows := make([][]bench.Row, len(benchKernels)+1)
	t.Run("kernels", func(t *testing.T) {
		for i, line := range benchKernels {
			t.Run(line, func(t *testing.T) {
				t.Parallel()
				rows[i] = benchKernel(t, line, vm.Machine{QEMU: qemu, Files: files})
			})
		}
	})
	rows[len(benchKernels)] = []bench.Row{sizeRow(t, files)}
	writeResults(t, slices.Concat(rows...))
}

// benchKernel boots a kernel and returns the rows that it says.
func benchKernel(t *testing.T, line string, m vm.Machine) (rows []bench.Row) {
	i := slices.IndexFunc(vm.Matrix, func(s vm.Suite) bool { return s.String() == line })
	kernel, err := vm.NewCache().Kernel(t.Context(), vm.Matrix[i])
	require.NoError(t, err)
	m.Kernel, m.Icount, m.Args = kernel, true, append(guestArgs("^TestGuestBench$"), "-steps="+*steps)
	m.Memory = 2048 // with the peers, whose libraries have 200 MB
	ctx, cancel := context.WithTimeout(t.Context(), bootLimit())
	defer cancel()
	var output bytes.Buffer
	err = m.Run(ctx, io.MultiWriter(&output, logOf(t, 0)))
	for said := range strings.Lines(output.String()) {
		if text, ok := strings.CutPrefix(said, rowMark); ok {
			var r bench.Row
			require.NoError(t, json.Unmarshal([]byte(text), &r))
			rows = append(rows, r)
		} else if said != "\n" {
			t.Log(strings.TrimSpace(said))
		}
	}
	require.NoError(t, err)
	require.NotEmpty(t, rows)
	return rows
}

// peerFiles are the peers, installed if they are missing, with the libraries
// that they need.
func peerFiles(t *testing.T) (files []vm.File) {
	for path, name := range map[string]string{bccPath: "libbpf-tools", bpftracePath: "bpftrace"} {
		_, err := vm.Install(t.Context(), path, name)
		require.NoError(t, err)
		for _, file := range append(libraries(t, path), path) {
			f := vm.File{Path: file[1:], Source: file}
			if !slices.Contains(files, f) {
				files = append(files, f)
			}
		}
	}
	return files
}

// libraries are what a program is linked with, the dynamic linker among them.
func libraries(t *testing.T, path string) (files []string) {
	out, err := exec.CommandContext(t.Context(), "ldd", path).Output()
	require.NoError(t, err)
	for _, word := range strings.Fields(string(out)) {
		if strings.HasPrefix(word, "/") {
			files = append(files, word)
		}
	}
	return files
}

// sizeRow is the size of the programs with all libraries that they need.
func sizeRow(t *testing.T, files []vm.File) bench.Row {
	i := slices.IndexFunc(files, func(f vm.File) bool { return f.Path == "bin/ksnoop" })
	sizes := map[bench.Column]float64{}
	for column, path := range map[bench.Column]string{bench.BCC: bccPath, bench.Kprobe: bpftracePath, bench.Kfunc: bpftracePath} {
		for _, file := range append(libraries(t, path), path) {
			sizes[column] += size(t, file)
		}
	}
	return bench.Row{Name: "size", Unit: "bytes", Ours: size(t, files[i].Source), Peers: sizes, Note: "with all libraries"}
}

func size(t *testing.T, path string) float64 {
	info, err := os.Stat(path)
	require.NoError(t, err)
	return float64(info.Size())
}

// writeResults prints the table, and writes it as text and as JSON.
func writeResults(t *testing.T, rows []bench.Row) {
	require.NoError(t, os.MkdirAll(*results, 0o755))
	date := time.Now().Format(time.DateOnly)
	var text, lines bytes.Buffer
	require.NoError(t, bench.Text(&text, date, rows))
	require.NoError(t, bench.JSON(&lines, date, rows))
	require.NoError(t, os.WriteFile(filepath.Join(*results, "table.txt"), text.Bytes(), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(*results, "table.json"), lines.Bytes(), 0o644))
	fmt.Print(text.String())
}
