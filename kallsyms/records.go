package kallsyms

import (
	"encoding/binary"
	"io"
	"strings"
)

// RecordHead is the size in bytes of the fields before the names in a record.
const RecordHead = 10

// ReadRecords reads a symbol table as Read does, from records that a program
// writes for each symbol (bpf_iter__ksym, Linux 6.0). A record has the address
// in eight bytes, the type in one, whether a module exports the symbol in one,
// then the name of the symbol and the name of its module, which may be empty.
// Each name ends with a zero byte.
func ReadRecords(r io.Reader, keep func(name string) bool) (*Table, error) {
	return readItems(r, keep, splitRecord, parseRecord)
}

// splitRecord returns the size of the first record in text, or 0 if the record
// is incomplete. If all is true, an incomplete record takes the rest of text,
// and parseRecord refuses it.
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
	if s.Module != "" { // as in /proc/kallsyms: upper case means exported
		s.Type |= 0x20
		if record[9] != 0 {
			s.Type &^= 0x20
		}
	}
	return s, ok && s.Name != "" && s.Type > ' '
}
