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

// benchKernels lists the kernels on which the costs are measured.
var benchKernels = []string{"6.1", "6.12", "newest"}

// The paths of the peers on Debian, and in the guest.
const (
	bccPath      = "/usr/sbin/ksnoop"
	bpftracePath = "/usr/bin/bpftrace"
)

// TestBench prints the costs of tracing beside those of empty programs, bcc's
// ksnoop and bpftrace. It runs in virtual machines in which a nanosecond is one
// instruction, so that load does not change the figures.
func TestBench(t *testing.T) {
	if *results == "" {
		t.Skip("measures for minutes: -results says where the table goes")
	}
	requireMachine(t, vm.AMD64)
	qemu, err := vm.QEMU(t.Context(), vm.AMD64)
	require.NoError(t, err)
	files := append(guestFiles(t, vm.AMD64), peerFiles(t)...)
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

// benchKernel boots a kernel and returns the rows that the guest prints.
func benchKernel(t *testing.T, line string, m vm.Machine) (rows []bench.Row) {
	kernel, err := fetchKernel(suiteOf(vm.AMD64, line))
	require.NoError(t, err)
	m.Kernel, m.Icount, m.Args = kernel, true, append(guestArgs("-test.run=^TestGuestBench$"), "-steps="+*steps)
	m.Memory = 2048 // the peers' libraries take 200 MB
	waitForTurn(t, secondsOf(t))
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

// peerFiles returns the peers, installed if they are missing, with the
// libraries that they need.
func peerFiles(t *testing.T) (files []vm.File) {
	for path, name := range map[string]string{bccPath: "libbpf-tools", bpftracePath: "bpftrace"} {
		_, err := vm.Install(t.Context(), path, name)
		require.NoError(t, err)
		for _, file := range append(libraries(t, path), path) {
			f := vm.File{Path: file[1:], Source: file}
			if !slices.ContainsFunc(files, func(other vm.File) bool { return other.Path == f.Path }) {
				files = append(files, f)
			}
		}
	}
	return files
}

// libraries lists the libraries of a program, including the dynamic linker.
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

// sizeRow returns the row with the sizes of the programs, including all
// libraries that they need.
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
