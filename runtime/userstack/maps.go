package userstack

import (
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/ksnoop/ksnoop/runtime/clock"
)

// mapping is a part of the memory of a process with code.
type mapping struct {
	start, end uint64
	offset     uint64 // in the file
	device     string
	inode      uint64
	name       string // the file, or [vdso]
}

func (m *mapping) isFile() bool { return strings.HasPrefix(m.name, "/") }

// snapshot holds a process's mappings at one time.
type snapshot struct {
	taken    time.Duration
	mappings []mapping // with code, by address
}

// at returns the mapping at an address, or nil.
func (s *snapshot) at(addr uint64) *mapping {
	i, found := slices.BinarySearchFunc(s.mappings, addr, func(m mapping, addr uint64) int {
		switch {
		case m.end <= addr:
			return -1
		case m.start > addr:
			return 1
		}
		return 0
	})
	if !found {
		return nil
	}
	return &s.mappings[i]
}

// mostProcesses bounds the processes whose mappings are remembered.
const mostProcesses = 256

// mapped returns what is mapped in a process. A snapshot is only used for stacks from
// before it was taken: since then, other files may have been mapped at the same
// addresses.
func (s *Stacks) mapped(pid uint32, when time.Duration) *snapshot {
	known := s.maps[pid]
	if known != nil && known.taken >= when {
		return known
	}
	now := &snapshot{taken: clock.Now()}
	if s.proc != "" {
		text, _ := os.ReadFile(filepath.Join(s.proc, strconv.Itoa(int(pid)), "maps")) // none of a process that has gone
		now.mappings = parseMaps(string(text))
	}
	if len(s.maps) >= mostProcesses {
		clear(s.maps)
	}
	s.maps[pid] = now
	return now
}

// parseMaps returns the mappings with code of a /proc/PID/maps, and skips what it
// does not understand.
func parseMaps(text string) (mappings []mapping) {
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		var field [5]string // addresses, permissions, offset, device, inode
		rest, ok := line, true
		for i := range field {
			field[i], rest, ok = strings.Cut(rest, " ")
			if !ok {
				break
			}
		}
		from, to, isRange := strings.Cut(field[0], "-")
		start, err1 := strconv.ParseUint(from, 16, 64)
		end, err2 := strconv.ParseUint(to, 16, 64)
		offset, err3 := strconv.ParseUint(field[2], 16, 64)
		inode, err4 := strconv.ParseUint(field[4], 10, 64)
		if !ok || !isRange || err1 != nil || err2 != nil || err3 != nil || err4 != nil || !strings.Contains(field[1], "x") {
			continue
		}
		mappings = append(mappings, mapping{start, end, offset, field[3], inode, strings.TrimLeft(rest, " ")})
	}
	sort.SliceStable(mappings, func(i, j int) bool { return mappings[i].start < mappings[j].start })
	return mappings
}
