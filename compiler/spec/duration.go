package spec

import (
	"math/bits"
	"strconv"
	"strings"
)

// units are the units of durations in nanoseconds.
var units = map[string]uint64{
	"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9, "m": 60e9, "h": 3600e9,
}

// otherUnits has other common names of units.
var otherUnits = map[string]string{
	"nsec": "ns", "nsecs": "ns", "nanos": "ns", "NS": "ns",
	"usec": "us", "usecs": "us", "micros": "us", "US": "us",
	"msec": "ms", "msecs": "ms", "millis": "ms", "MS": "ms",
	"S": "s", "sec": "s", "secs": "s", "second": "s", "seconds": "s",
	"M": "m", "min": "m", "mins": "m", "minute": "m", "minutes": "m",
	"H": "h", "hr": "h", "hrs": "h", "hour": "h", "hours": "h",
}

// cutUnit splits a number into digits with at most one dot among them and the unit
// after them. It returns false if the number does not begin with a digit.
func cutUnit(number string) (amount, unit string, ok bool) {
	unit = strings.TrimLeft(number, decimal+".")
	amount = number[:len(number)-len(unit)]
	whole, fraction, dot := strings.Cut(amount, ".")
	return amount, unit, only(whole, decimal) && (!dot || only(fraction, decimal))
}

// isDuration reports whether number has a unit of durations.
func isDuration(number string) bool {
	_, unit, ok := cutUnit(number)
	return ok && units[unit] != 0
}

// meantUnit returns the unit that is meant by the unknown unit of a number, or "".
func meantUnit(number string) string {
	_, unit, ok := cutUnit(number)
	if !ok {
		return ""
	}
	return otherUnits[unit]
}

// ParseDuration parses a duration such as 1.5ms and returns it in nanoseconds. Its
// error is always an [*Error].
func ParseDuration(text string) (ns uint64, err error) {
	p := &parser{lexer: lexer{text: text}}
	var c Constant
	if err = p.advance(); err == nil {
		c, err = p.constant()
	}
	if err == nil && (c.Kind != Duration || p.tok.kind != end) {
		err = Errorf(text, Span{0, len(text)}, "%s is not a duration", Quote(text)).WithHint("a duration has a unit: 10ms, 1.5s")
	}
	return c.Abs, err
}

// duration parses a number with a unit, after the sign, which may be empty.
func (p *parser) duration(sign string) (c Constant, err error) {
	t := p.tok
	if sign != "" {
		return c, p.errorf(Span{p.prev.at.Start, t.at.End}, "a duration has no sign").WithHint("write %s", t.text)
	}
	amount, unit, _ := cutUnit(t.text)
	whole, fraction, _ := strings.Cut(amount, ".")
	part, ok := fractionOf(fraction, units[unit])
	if !ok {
		return c, p.errorf(t.at, "%s is not a whole number of nanoseconds", t)
	}
	n, err := strconv.ParseUint(whole, 10, 64)
	high, low := bits.Mul64(n, units[unit])
	ns, carry := bits.Add64(low, part, 0)
	if err != nil || high+carry > 0 {
		return c, p.errorf(t.at, "%s is out of range", t).
			WithHint("durations go up to %d (2^64-1) nanoseconds, 584 years", ^uint64(0))
	}
	return Constant{Kind: Duration, Abs: ns, At: t.at}, p.advance()
}

// fractionOf returns the part of a unit given by the digits after the dot. It
// returns false if that is not a whole number.
func fractionOf(digits string, unit uint64) (n uint64, ok bool) {
	const most = 13 // an hour has 13 factors of 2 and 11 of 5
	digits = strings.TrimRight(digits, "0")
	if digits == "" {
		return 0, true
	}
	if len(digits) > most {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	high, low := bits.Mul64(n, unit)
	scale := uint64(1)
	for range digits {
		scale *= 10
	}
	n, rest := bits.Div64(high, low, scale)
	return n, err == nil && rest == 0
}
