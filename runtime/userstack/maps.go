package userstack

import (
	"bytes"
	"os"
	"path/filepath"
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
	name       string        // the file, or [vdso]
	since      time.Duration // every snapshot has had it from then on
}

func (m *mapping) isFile() bool { return strings.HasPrefix(m.name, "/") }

// snapshot holds a process's mappings at one time.
type snapshot struct {
	taken    time.Duration
	mappings []mapping // with code, by address
}

// at returns the mapping at an address, or nil.
func (s *snapshot) at(addr uint64) *mapping {
	i := sort.Search(len(s.mappings), func(i int) bool { return addr < s.mappings[i].end })
	if i == len(s.mappings) || addr < s.mappings[i].start {
		return nil
	}
	return &s.mappings[i]
}

// mostProcesses bounds the processes whose mappings are remembered.
const mostProcesses = 256

// mapped returns what is mapped in a process. A snapshot is only used for stacks from
// before it was taken: since then, other files may have been mapped at the same
// addresses. What it has may also be newer than the stack, if the snapshot before did
// not have it: see mapping.since.
func (s *Stacks) mapped(pid uint32, when time.Duration) *snapshot {
	known := s.maps[pid]
	if known != nil && known.taken >= when {
		return known
	}
	now := &snapshot{taken: clock.Now()}
	if s.proc != "" {
		dir := filepath.Join(s.proc, strconv.Itoa(int(pid)))
		text, _ := os.ReadFile(dir + "/maps") // none of a process that has gone
		since := clock.Now()
		if known == nil {
			since, known = begun(dir), &snapshot{}
		}
		now.mappings = parseMaps(string(text), since)
		now.follow(known)
	}
	if len(s.maps) >= mostProcesses {
		clear(s.maps)
	}
	s.maps[pid] = now
	return now
}

// follow takes over since when mappings are there that an earlier snapshot has, too.
func (s *snapshot) follow(earlier *snapshot) {
	for i := range s.mappings {
		m := &s.mappings[i]
		if old := earlier.at(m.start); old != nil {
			since := m.since
			if m.since = old.since; *m != *old {
				m.since = since
			}
		}
	}
}

// begun returns when the process with a directory in /proc began, to 10ms below: before
// then, another one had its id. It returns 0 if the process has gone.
func begun(dir string) time.Duration {
	stat, _ := os.ReadFile(dir + "/stat")
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 20 {
		return 0
	}
	ticks, _ := strconv.Atoi(fields[19])
	return time.Duration(ticks)*(time.Second/100) - clock.Asleep() // the kernel counts its sleep, too
}

// parseMaps returns the mappings with code of a /proc/PID/maps, and skips what it
// does not understand.
func parseMaps(text string, since time.Duration) (mappings []mapping) {
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
		mappings = append(mappings, mapping{start, end, offset, field[3], inode, strings.TrimLeft(rest, " "), since})
	}
	sort.SliceStable(mappings, func(i, j int) bool { return mappings[i].start < mappings[j].start })
	return mappings
}
