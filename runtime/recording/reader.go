package recording

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/kallsyms"
	"github.com/ksnoop/ksnoop/runtime"
)

// Reader reads a recording.
type Reader struct {
	Origin
	Unit *compiler.Unit // what decodes and shows the records; it cannot be loaded
	// Symbols, unless nil, is called with what finds all symbols that are known so
	// far, before the records that refer to them.
	Symbols func(kallsyms.Finder)

	blocks  blocks
	content []byte // entries of the block that are not read yet
	words   []byte // of its records
	delta   delta
	record  []byte
	symbols symbols
	ended   bool
	damage  *DamageError // of blocks that were skipped, or nil
}

// ErrNoEnd is returned by [Reader.Next] at the end of a file that was not ended: what
// came later is missing.
var ErrNoEnd = errors.New("the recording has no end: it goes on, or its process was killed, or the disk was full")

// DamageError says that a file is damaged, and what was not read.
type DamageError struct {
	At      int64 // offset of the first block that cannot be read
	Reason  error
	Skipped bool  // whole blocks after that were read
	Bytes   int64 // that were not, if so
	More    int   // other places where blocks are missing
	End     error // why the recording does not end as a whole one, or nil
}

func (e *DamageError) Error() string {
	text := fmt.Sprintf("the recording is damaged at byte %d", e.At)
	if !e.Skipped {
		return fmt.Sprintf("%s, and cannot be read from there on: %s", text, e.Reason)
	}
	switch {
	case e.More == 1:
		text += " and in another place"
	case e.More > 1:
		text += fmt.Sprintf(" and in %d other places", e.More)
	}
	text += fmt.Sprintf(", and %d bytes are not read: %s", e.Bytes, e.Reason)
	if e.End != nil {
		text += "; " + e.End.Error()
	}
	return text
}

func (e *DamageError) Unwrap() []error { return []error{e.Reason, e.End} }

// NewReader reads the beginning of a recording.
func NewReader(r io.Reader) (*Reader, error) {
	head := make([]byte, len(magic))
	n, err := io.ReadFull(r, head)
	last := len(magic) - 1
	switch {
	case err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
		return nil, err
	case n == 0:
		return nil, errors.New("it is empty: nothing was recorded, or its file system was full")
	case n < len(magic) && strings.HasPrefix(magic, string(head[:n])):
		return nil, fmt.Errorf("it ends after %d bytes, before its first block", n)
	case n < len(magic) || string(head[:last]) != magic[:last]:
		return nil, errors.New("it is not a recording of ksnoop record")
	case head[last] != magic[last]:
		return nil, fmt.Errorf("its format has version %d, and this ksnoop reads version %d: use a ksnoop of the same version as the one that recorded", head[last], magic[last])
	}
	f := &Reader{blocks: blocks{r: r, at: int64(len(magic))}}
	if f.content, f.words, err = f.blocks.next(); err == io.EOF {
		err = errCut
	}
	if err != nil {
		return nil, f.damaged(err)
	}
	k, content, err := f.entry()
	if err == nil && k != originEntry {
		err = errContent
	}
	if err != nil {
		return nil, f.damaged(err)
	}
	c := &codec{buf: content, reading: true}
	if c.origin(&f.Origin); c.err != nil {
		return nil, f.damaged(c.err)
	}
	if f.Unit, err = readUnit(c.buf); err != nil {
		return nil, f.damaged(err)
	}
	return f, nil
}

func (f *Reader) damaged(err error) error { return &DamageError{At: f.blocks.at, Reason: err} }

// entry reads the next entry of the block.
func (f *Reader) entry() (kind, []byte, error) {
	c := &codec{buf: f.content, reading: true}
	var k kind
	var content []byte
	number(c, &k)
	c.bytes(&content)
	f.content = c.buf
	return k, content, c.err
}

// Next returns the next item, also after blocks that cannot be read. After the last one it
// returns io.EOF, or an error that says what is missing: [ErrNoEnd], a [*DamageError], or
// that something follows the end.
func (f *Reader) Next() (Item, error) {
	for {
		if f.ended {
			return Item{}, f.last(f.rest())
		}
		if len(f.content) == 0 {
			if len(f.words) > 0 {
				return Item{}, f.damaged(errDelta)
			}
			if err := f.nextBlock(); err != nil {
				return Item{}, f.last(err)
			}
			continue
		}
		k, content, err := f.entry()
		if err != nil {
			return Item{}, f.damaged(err)
		}
		if k == symbolsEntry {
			if err := f.symbols.add(content); err != nil {
				return Item{}, f.damaged(err)
			}
			if f.Symbols != nil {
				f.Symbols(&f.symbols)
			}
			continue
		}
		item, err := f.item(k, content)
		if err != nil {
			return Item{}, f.damaged(err)
		}
		return item, nil
	}
}

// nextBlock reads the next block that can be read.
func (f *Reader) nextBlock() (err error) {
	f.delta.nextBlock()
	at := f.blocks.at
	f.content, f.words, err = f.blocks.next()
	if err == nil {
		return nil
	}
	if err == io.EOF {
		return ErrNoEnd
	}
	damage := f.damaged(err).(*DamageError)
	if found, err := f.blocks.skip(); err != nil {
		return err
	} else if !found {
		return damage
	}
	if f.damage == nil {
		f.damage = damage
		f.damage.Skipped = true
	} else {
		f.damage.More++
	}
	f.damage.Bytes += f.blocks.at - at
	return nil
}

// last returns the last error of a recording, with what was skipped.
func (f *Reader) last(err error) error {
	if f.damage == nil {
		return err
	}
	if err != io.EOF {
		f.damage.End = err
	}
	return f.damage
}

// rest returns io.EOF, or an error if something follows the end of the recording.
func (f *Reader) rest() error {
	n, err := io.Copy(io.Discard, f.blocks.r)
	n += int64(len(f.blocks.ahead()))
	if err == nil && n > 0 {
		return fmt.Errorf("the recording ends at byte %d, and %d bytes that follow are not read: if files were joined, replay each by its name", f.blocks.at, n)
	}
	return cmp.Or(err, io.EOF)
}

func (f *Reader) item(k kind, content []byte) (item Item, err error) {
	c := &codec{buf: content, reading: true}
	switch k {
	case recordEntry:
		f.record, f.words, err = f.delta.decode(f.record[:0], content, f.words)
		return Item{Record: f.record}, err
	case clockEntry:
		item.Clock = &Clock{}
		c.clock(item.Clock)
	case lossEntry:
		item.Loss = &Loss{}
		c.loss(item.Loss, f.Unit)
	case tableEntry:
		item.Table = &runtime.Table{}
		c.table(item.Table, -1, f.Unit)
	case endEntry:
		f.ended = true
		item.End = &runtime.SessionCounts{}
		c.end(item.End, f.Unit)
	case frameEntry:
		item.Frame = &Frame{}
		c.frame(item.Frame)
	case containerEntry:
		item.Container = &Container{}
		c.container(item.Container)
	case againEntry:
		item.Again = true
	case continuedEntry:
		f.ended, item.Next = true, true
	default:
		return item, fmt.Errorf("there is an entry of kind %d", k)
	}
	if c.err == nil && len(c.buf) > 0 {
		c.fail()
	}
	return item, c.err
}
