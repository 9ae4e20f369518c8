package kprobe

import (
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/ksnoop/ksnoop/compiler/spec"
)

// badNumber returns the error for a number that [spec.ParseUint] refused with err.
func (p *parser) badNumber(id spec.Ident, err error) error {
	if errors.Is(err, strconv.ErrRange) {
		return p.errorf(id.At, "%s is out of range", spec.Quote(id.Name)).
			WithHint("numbers go up to %d (2^64-1)", uint64(math.MaxUint64))
	}
	refusal := p.errorf(id.At, "%s is not a number", spec.Quote(id.Name))
	switch {
	case strings.Trim(id.Name, digits) == "":
		return refusal.WithHint("a leading 0 means octal; the decimal number is %s", strings.TrimLeft(id.Name, "0"))
	case strings.Trim(id.Name, digits+"abcdefABCDEF") == "":
		return refusal.WithHint("hexadecimal is written 0x%s", id.Name)
	default:
		return refusal.WithHint("a number is decimal, or hexadecimal with 0x")
	}
}

// number parses a number. Want describes it in error messages.
func (p *parser) number(want string) (n uint64, err error) {
	id := p.run(spec.IsWord)
	if id.Name == "" {
		return 0, p.expected(want)
	}
	n, err = spec.ParseUint(id.Name)
	if err != nil {
		return 0, p.badNumber(id, err)
	}
	return n, nil
}

// signed parses a number after a sign. Start is the offset of the sign.
func (p *parser) signed(start int, neg bool, want string) (n int64, err error) {
	magnitude, err := p.number(want)
	switch {
	case err != nil:
		return 0, err
	case neg && magnitude == 1<<63:
		return math.MinInt64, nil
	case magnitude > math.MaxInt64:
		return 0, p.errorf(p.from(start), "%s is out of range", spec.Quote(p.word(p.from(start)))).
			WithHint("offsets go from -2^63 to 2^63-1")
	case neg:
		return -int64(magnitude), nil
	default:
		return int64(magnitude), nil
	}
}
