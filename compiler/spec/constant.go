package spec

import (
	"errors"
	"strconv"
	"strings"
)

// lowest is the magnitude of the lowest constant, -2^63.
const lowest = 1 << 63

// constant parses an integer with an optional sign. It stands after the token
// before.
func (p *parser) constant(before token) (c Constant, err error) {
	start := p.tok.at.Start
	neg := p.tok.is("-")
	if neg || p.tok.is("+") {
		before = p.tok
		if err := p.advance(); err != nil {
			return c, err
		}
	}
	if p.tok.kind != number {
		return c, p.badConstant(before)
	}
	digits, base := radix(p.tok.text)
	abs, err := strconv.ParseUint(digits, base, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return c, p.badNumber(digits, base)
	}
	at := Span{start, p.tok.at.End}
	if err != nil || neg && abs > lowest {
		return c, Errorf(p.text, at, "%s is out of range", quote(p.text[at.Start:at.End])).
			WithHint("constants go from -%d (-2^63) to %d (2^64-1)", uint64(lowest), ^uint64(0))
	}
	return Constant{Text: p.text[at.Start:at.End], Neg: neg && abs != 0, Abs: abs, At: at}, p.advance()
}

// radix splits a C integer into its digits and their base.
func radix(number string) (digits string, base int) {
	switch {
	case strings.HasPrefix(number, "0x"), strings.HasPrefix(number, "0X"):
		return number[2:], 16
	case len(number) > 1 && number[0] == '0':
		return number[1:], 8
	default:
		return number, 10
	}
}

// badNumber refuses the token as a number of that base.
func (p *parser) badNumber(digits string, base int) error {
	text := p.tok.text
	err := Errorf(p.text, p.tok.at, "%s is not a number", quote(text))
	plain := strings.TrimRight(digits, "uUlL")
	switch {
	case digits == "":
		return err.WithHint("hexadecimal digits belong after %s", text)
	case strings.Contains(text, "."):
		return err.WithHint("constants are integers")
	case only(plain, "01234567") && base == 8, only(plain, decimal) && base == 10, only(plain, hexadecimal) && base == 16:
		return err.WithHint("leave out the suffix '%s'", digits[len(plain):])
	case only(digits, decimal):
		return err.WithHint("a leading 0 means octal; the decimal number is %s", strings.TrimLeft(digits, "0"))
	case only(text, hexadecimal) && base == 10:
		return err.WithHint("hexadecimal is written 0x%s", text)
	default:
		return err
	}
}

const (
	decimal     = "0123456789"
	hexadecimal = "0123456789abcdefABCDEF"
)

// only reports whether text consists of these digits, at least one.
func only(text, digits string) bool {
	return text != "" && strings.Trim(text, digits) == ""
}
