package recording

import (
	"encoding/binary"
	"fmt"
	"io"
	goruntime "runtime"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/kallsyms"
	"github.com/ksnoop/ksnoop/runtime"
	"github.com/ksnoop/ksnoop/runtime/userstack"
)

// order is the byte order of files. That of records is the machine's, and all
// architectures that ksnoop runs on have this one.
var order = binary.LittleEndian

// block is the number of bytes after which a block is written.
const block = 256 << 10

// mostEntry is the largest size of an entry in bytes that is written. A block with such an
// entry is not too large, even if it cannot be compressed.
const mostEntry = mostBlock - 1<<20

// Writer writes a recording. It keeps what is to be written until a block is full, or
// until Flush. Only one goroutine at a time may use it.
type Writer struct {
	w       io.Writer
	unit    *compiler.Unit
	names   *names // nil if addresses have no names
	size    int64
	content []byte // entries of the next block
	words   []byte // of its records
	delta   delta
	blocks  blockWriter
}

// NewWriter begins a recording of a unit's records. symbols names the addresses in
// them, and is nil if they are to have no names.
func NewWriter(w io.Writer, unit *compiler.Unit, from Origin, symbols kallsyms.Finder) (*Writer, error) {
	if from.Arch == "" {
		from.Arch = goruntime.GOARCH
	}
	described, err := describe(unit)
	if err != nil {
		return nil, err
	}
	r := &Writer{w: w, unit: unit, blocks: blockWriter{compress: newCompressor()}}
	if symbols != nil {
		r.names = newNames(symbols, from.Arch)
		r.names.places(unit)
	}
	c := &codec{}
	c.origin(&from)
	content := append(c.buf, described...)
	if len(content) > mostEntry {
		return nil, fmt.Errorf("what decodes the records takes %d MB, more than a recording can have: trace fewer functions", len(content)>>20)
	}
	r.add(originEntry, content)
	if r.size, err = int64(len(magic)), writeAll(w, []byte(magic)); err != nil {
		return nil, err
	}
	return r, r.Flush()
}

func writeAll(w io.Writer, b []byte) error {
	if _, err := w.Write(b); err != nil {
		return fmt.Errorf("write the recording: %w", err)
	}
	return nil
}

// add adds an entry: its kind, the number of its bytes, and these.
func (r *Writer) add(k kind, content []byte) {
	to := append(r.content, byte(k))
	if n := len(content); n < 1<<7 {
		to = append(to, byte(n))
	} else {
		to = binary.AppendUvarint(to, uint64(n))
	}
	r.content = append(to, content...)
}

// Record adds a record as a program of the unit wrote it.
func (r *Writer) Record(rec []byte) error {
	if len(rec) < compiler.HeaderSize {
		return fmt.Errorf("write a record of %d bytes: it has no header", len(rec))
	}
	if r.encode(rec) { // or else the addresses are those of another record
		r.names.in(rec[compiler.HeaderSize:])
	}
	return r.flushFull()
}

func (r *Writer) flushFull() error {
	if len(r.content)+len(r.words) < block && r.delta.used < mostKept {
		return nil
	}
	return r.Flush()
}

// Clock adds a clock pair.
func (r *Writer) Clock(k Clock) error {
	c := &codec{}
	c.clock(&k)
	return r.entry(clockEntry, c)
}

// Frame adds how a frame of a process is named, before the record that has it.
func (r *Writer) Frame(k userstack.Key, f userstack.Frame) error {
	c := &codec{}
	c.frame(&Frame{k, f})
	return r.entry(frameEntry, c)
}

// Container adds the container of a cgroup, before the record that has it.
func (r *Writer) Container(k Container) error {
	c := &codec{}
	c.container(&k)
	return r.entry(containerEntry, c)
}

// Loss adds what was lost.
func (r *Writer) Loss(l Loss) error {
	c := &codec{}
	c.loss(&l, r.unit)
	return r.entry(lossEntry, c)
}

// Tables adds what was counted of the specs with aggregates: a table for each.
func (r *Writer) Tables(all []*runtime.Table) error {
	for i, t := range all {
		for _, row := range t.Rows {
			for _, v := range row.Key {
				r.names.in(v.Data)
			}
		}
		c := &codec{}
		c.table(t, i, r.unit)
		if len(c.buf) > mostEntry {
			return fmt.Errorf("a table takes %d MB, more than a recording can have: give --keys a smaller number", len(c.buf)>>20)
		}
		if err := r.entry(tableEntry, c); err != nil {
			return err
		}
	}
	return nil
}

// End ends the recording.
func (r *Writer) End(s runtime.SessionCounts) error {
	c := &codec{}
	c.end(&s, r.unit)
	if err := r.entry(endEntry, c); err != nil {
		return err
	}
	return r.Flush()
}

// Continue ends a file of a recording that continues in the next one.
func (r *Writer) Continue() error {
	r.add(continuedEntry, nil)
	return r.Flush()
}

// Again separates the objects of iterators from those that follow, when the iterators have
// been read again.
func (r *Writer) Again() error { return r.entry(againEntry, &codec{}) }

func (r *Writer) entry(k kind, c *codec) error {
	if c.err != nil {
		return fmt.Errorf("write the recording: %w", c.err)
	}
	if len(r.content)+len(r.words)+len(c.buf) > mostEntry {
		if err := r.Flush(); err != nil {
			return err
		}
	}
	r.add(k, c.buf)
	return r.flushFull()
}

// Size returns the number of bytes that were written so far.
func (r *Writer) Size() int64 { return r.size }

// Flush writes what there is as a block. The symbols of its records come first, in a block
// of their own if one would be too large for both.
func (r *Writer) Flush() error {
	if len(r.content) == 0 {
		return nil
	}
	if r.names != nil && len(r.names.lines) > 0 && r.blocks.number > 0 {
		entries := r.content
		r.content = nil
		r.add(symbolsEntry, r.names.lines)
		r.names.lines = r.names.lines[:0]
		if len(r.content)+len(entries)+len(r.words) > mostEntry {
			if err := r.write(len(r.content)); err != nil {
				return err
			}
		}
		r.content = append(r.content, entries...)
	}
	entries := len(r.content)
	r.content = append(r.content, r.words...)
	r.words = r.words[:0]
	r.delta.nextBlock()
	return r.write(entries)
}

// write writes the content as a block, in which the first entries bytes are the entries.
func (r *Writer) write(entries int) error {
	b := r.blocks.of(r.content, entries)
	r.content = r.content[:0]
	r.size += int64(len(b))
	return writeAll(r.w, b)
}
