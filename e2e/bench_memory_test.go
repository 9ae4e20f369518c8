//go:build linux

package e2e

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/stretchr/testify/require"
)

func peakRSS(t *testing.T, s *subject) float64 {
	return numberIn(t, fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid), "VmHWM:") * 1024
}

// kernelMemory returns the memory of BPF objects that did not exist before, in
// bytes, including the buffers that the process shares with the kernel.
func (b *benchmark) kernelMemory(t *testing.T, s *subject, before objects) (maps, programs float64) {
	now := bpfObjects(t)
	for id := range now.programs.without(before.programs) {
		p, err := ebpf.NewProgramFromID(ebpf.ProgramID(id))
		require.NoError(t, err)
		programs += memlock(t, p.FD())
		p.Close()
	}
	for id := range now.maps.without(before.maps) {
		m, err := ebpf.NewMapFromID(ebpf.MapID(id))
		require.NoError(t, err)
		size := memlock(t, m.FD())
		if m.Type() == ebpf.RingBuf { // Linux 6.1 does not count its memory
			size = max(size, float64(m.MaxEntries()))
		}
		maps += size
		m.Close()
	}
	return maps + perfBuffers(t, s), programs
}

func memlock(t *testing.T, fd int) float64 {
	return numberIn(t, fmt.Sprintf("/proc/self/fdinfo/%d", fd), "memlock:")
}

// perfBuffers returns the size of the buffers of perf events.
func perfBuffers(t *testing.T, s *subject) (size float64) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", s.cmd.Process.Pid))
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		var from, to uint64
		if strings.Contains(line, "[perf_event]") {
			_, err := fmt.Sscanf(line, "%x-%x", &from, &to)
			require.NoError(t, err)
			size += float64(to - from)
		}
	}
	return size
}

// numberIn returns the number after a word at the beginning of a line in the
// named file.
func numberIn(t *testing.T, name, word string) float64 {
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, word); ok {
			n, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			require.NoError(t, err)
			return n
		}
	}
	require.Fail(t, "no "+word, name)
	return 0
}
