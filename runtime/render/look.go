package render

import (
	"strconv"
	"time"
)

// Clock is the clock by which the time of an event is shown.
type Clock string

// Clocks are the clocks that times can be shown by, the default first.
var Clocks = []Clock{Mono, Wall, Delta}

const (
	Mono  Clock = "mono"
	Wall  Clock = "wall"
	Delta Clock = "delta"
)

// Look is the style of lines of text.
type Look struct {
	NoHeader bool
	Width    int // columns after which a line of compact output is wrapped, or 0 for no limit
	Time     Clock
	wall     func() time.Duration // from CLOCK_MONOTONIC to the time of day
}

// time prints the time of an event right-aligned in a column: ns of CLOCK_MONOTONIC,
// the time of day, or seconds since the previous line.
func (p *page) time(at time.Duration, width int) {
	var room [32]byte
	text := p.appendTime(room[:0], at)
	p.blanks(width - len(text))
	p.text = append(append(p.text, text...), ' ')
}

func (p *page) appendTime(dst []byte, at time.Duration) []byte {
	switch p.look.Time {
	case Wall:
		return appendClock(dst, p.wallTime(at))
	case Delta:
		return appendSeconds(dst, p.sinceLast(at), 9)
	}
	return strconv.AppendInt(dst, at.Nanoseconds(), 10)
}

// seconds prints the time as the kernel does in its trace file, or with another
// clock that clock's time instead of seconds since boot.
func (p *page) seconds(at time.Duration) {
	if p.look.Time == Wall {
		p.text = appendClock(p.text, p.wallTime(at))
		return
	}
	if p.look.Time == Delta {
		at = p.sinceLast(at)
	}
	var room [32]byte
	text := appendSeconds(room[:0], at, 6)
	p.blanks(13 - len(text))
	p.text = append(p.text, text...)
}

// wallTime returns the time of day of an event. The offset is measured anew after
// each flush, because the clock may have been set.
func (p *page) wallTime(at time.Duration) time.Time {
	if p.offset == 0 {
		p.offset = p.look.wall()
	}
	return time.Unix(0, int64(p.offset+at))
}

// sinceLast returns the time since the previous line. Lines of different CPUs may
// come in another order than the events.
func (p *page) sinceLast(at time.Duration) time.Duration {
	last := p.last
	p.last = at
	if last == 0 {
		return 0
	}
	return at - last
}

// appendClock appends hours, minutes, seconds and microseconds.
func appendClock(dst []byte, t time.Time) []byte {
	hour, minute, second := t.Clock()
	for _, n := range []int{hour, minute, second} {
		dst = append(appendDigits(dst, n, 2), ':')
	}
	dst[len(dst)-1] = '.'
	return appendDigits(dst, t.Nanosecond()/1000, 6)
}

// appendSeconds appends a duration in seconds, with a number of digits after the point.
func appendSeconds(dst []byte, d time.Duration, digits int) []byte {
	if d < 0 {
		dst, d = append(dst, '-'), -d
	}
	dst = append(strconv.AppendInt(dst, int64(d/time.Second), 10), '.')
	fraction := int(d % time.Second)
	for range 9 - digits {
		fraction /= 10
	}
	return appendDigits(dst, fraction, digits)
}

// appendDigits appends a number with leading zeros.
func appendDigits(dst []byte, n, width int) []byte {
	var room [20]byte
	text := strconv.AppendInt(room[:0], int64(n), 10)
	for range width - len(text) {
		dst = append(dst, '0')
	}
	return append(dst, text...)
}
