package recording

import (
	"encoding/binary"
	"errors"
	"unsafe"

	"github.com/ksnoop/ksnoop/runtime/userstack"
)

// codec writes values to a buffer, or reads them from it. One function describes a
// part of the format for both directions.
type codec struct {
	buf     []byte // written so far, or not read yet
	reading bool
	taken   uintptr // bytes of memory for what was read
	err     error
}

// mostTaken is how many bytes of memory may be taken for what is read of an entry. A list
// whose elements have a few bytes each could take hundreds of times the size of its entry.
const mostTaken = 256 << 20

func (c *codec) take(size uintptr) {
	if c.taken += size; c.taken > mostTaken {
		c.fail()
	}
}

var errContent = errors.New("its content is not what a recording has")

func (c *codec) fail() {
	if c.err == nil {
		c.err = errContent
	}
	c.buf = nil
}

// uint is a number: 7 bits in each byte, the lowest first.
func (c *codec) uint(p *uint64) {
	if !c.reading {
		c.buf = binary.AppendUvarint(c.buf, *p)
		return
	}
	v, n := binary.Uvarint(c.buf)
	if n <= 0 {
		c.fail()
		return
	}
	*p, c.buf = v, c.buf[n:]
}

// number is a number of any type that is not negative.
func number[T ~int | ~int64 | ~uint8 | ~uint32 | ~uint64](c *codec, all ...*T) {
	for _, p := range all {
		v := uint64(*p)
		c.uint(&v)
		if c.reading {
			if *p = T(v); uint64(*p) != v || *p < 0 {
				*p = 0
				c.fail()
			}
		}
	}
}

// index is a number from -1 on, less than n.
func (c *codec) index(p *int, n int) {
	v := *p + 1
	number(c, &v)
	if c.reading {
		if v > n {
			v = 0
			c.fail()
		}
		*p = v - 1
	}
}

// flags are a bit each, the first one the lowest.
func (c *codec) flags(all ...*bool) {
	var v uint64
	for i, p := range all {
		if *p {
			v |= 1 << i
		}
	}
	c.uint(&v)
	if c.reading {
		for i, p := range all {
			*p = v>>i&1 != 0
		}
	}
}

// bytes are their number, then the bytes. Those read refer to the buffer.
func (c *codec) bytes(p *[]byte) {
	n := uint64(len(*p))
	c.uint(&n)
	switch {
	case !c.reading:
		c.buf = append(c.buf, *p...)
	case n > uint64(len(c.buf)):
		c.fail()
	default:
		*p, c.buf = c.buf[:n:n], c.buf[n:]
	}
}

// mostText and mostName are the largest sizes in bytes of a text, such as a spec, and
// of the name of something in a process, that are accepted. A block that repeats itself
// is small in a file, but texts of its full size would fill the memory.
const (
	mostText = 1 << 20
	mostName = userstack.MostName
)

var errText = errors.New("a text is longer than any that is recorded")

func (c *codec) text(all ...*string) { c.limited(mostText, all) }

// name is a text that is kept as long as the recording is read.
func (c *codec) name(all ...*string) { c.limited(mostName, all) }

func (c *codec) limited(most int, all []*string) {
	for _, p := range all {
		b := []byte(*p)
		c.bytes(&b)
		if !c.reading {
			continue
		}
		if len(b) > most {
			c.err, c.buf = errText, nil
			return
		}
		c.take(uintptr(len(b)))
		*p = string(b)
	}
}

// texts is a list of texts.
func (c *codec) texts(list *[]string) { each(c, list, func(s *string) { c.text(s) }) }

// each is a list: the number of its elements, then each of them. Each takes a byte at
// least, so that what is read cannot be much longer than what there is.
func each[T any](c *codec, list *[]T, one func(*T)) {
	n := len(*list)
	if c.reading {
		*list = nil
	}
	c.repeat(n, unsafe.Sizeof(*new(T)), func(i int) {
		if c.reading {
			*list = append(*list, *new(T))
		}
		one(&(*list)[i])
	})
}

// repeat is the number of elements of a list, of which each has a size in memory, and
// calls one for each.
func (c *codec) repeat(n int, size uintptr, one func(i int)) {
	number(c, &n)
	if c.reading && n > len(c.buf) {
		c.fail()
	}
	for i := 0; i < n && c.err == nil; i++ {
		if c.reading {
			c.take(size)
		}
		if c.err == nil {
			one(i)
		}
	}
}
