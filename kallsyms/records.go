package kallsyms

import (
	"encoding/binary"
	"io"
	"strings"
)

// RecordHead is the size of what is in a record before the names.
const RecordHead = 10

// ReadRecords reads a symbol table as Read does, from records that a program
// writes for each symbol (bpf_iter__ksym, Linux 6.0): the address in eight bytes,
// the type, whether a module exports the symbol, then its name and that of its
// module or nothing, each with a zero behind it.
func ReadRecords(r io.Reader, keep func(name string) bool) (*Table, error) {
	return readItems(r, keep, splitRecord, parseRecord)
}

// splitRecord is the size of a record. What is left of one that is cut off is no
// record.
func splitRecord(text string, all bool) int {
	size := RecordHead
	for range 2 {
		end := -1
		if size < len(text) {
			end = strings.IndexByte(text[size:], 0)
		}
		if end < 0 && all {
			return len(text)
		}
		if end < 0 {
			return 0
		}
		size += end + 1
	}
	return size
}

// parseRecord parses a record. The strings of the symbol are parts of it.
func parseRecord(record string) (s Symbol, ok bool) {
	if len(record) < RecordHead+2 || record[len(record)-1] != 0 {
		return s, false
	}
	s.Addr = binary.NativeEndian.Uint64([]byte(record[:8]))
	s.Type = record[8]
	s.Name, s.Module, ok = strings.Cut(record[RecordHead:len(record)-1], "\x00")
	if s.Module != "" { // whose types the file has in one case
		s.Type |= 0x20
		if record[9] != 0 {
			s.Type &^= 0x20
		}
	}
	return s, ok && s.Name != "" && s.Type > ' '
}
