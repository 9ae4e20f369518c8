package spec

import (
	"errors"
	"strconv"
	"strings"
)

// lowest is the magnitude of the lowest constant, -2^63.
const lowest = 1 << 63

// constant parses what a value is compared with.
func (p *parser) constant() (c Constant, err error) {
	sign, start := "", p.tok.at.Start
	if p.tok.is("-") || p.tok.is("+") {
		sign = p.tok.text
		if err := p.advance(); err != nil {
			return c, err
		}
	}
	switch t := p.tok; {
	case t.kind == number && isDuration(t.text):
		c, err = p.duration(sign)
	case t.kind == number:
		c, err = p.integer(start, sign == "-")
	case t.kind == name && t.text != "return" && t.text != "if" && sign != "+":
		c, err = Constant{Kind: Name, Neg: sign == "-", Str: t.text, At: t.at}, p.advance()
	case t.kind == quoted && sign == "" && t.text[0] == '"':
		c, err = p.str()
	case t.kind == quoted && sign == "":
		c, err = p.char()
	default:
		return c, p.badConstant()
	}
	if err == nil {
		c.At.Start = start
		c.Text = p.text[start:c.At.End]
	}
	return c, err
}

// integer parses a number behind a sign at start, if there is one.
func (p *parser) integer(start int, neg bool) (c Constant, err error) {
	digits, base := radix(p.tok.text)
	abs, err := strconv.ParseUint(digits, base, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return c, p.badNumber(digits, base)
	}
	at := Span{start, p.tok.at.End}
	if err != nil || neg && abs > lowest {
		return c, Errorf(p.text, at, "%s is out of range", Quote(p.text[at.Start:at.End])).
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

// ParseUint reads a number as C does: decimal, 0x and hexadecimal, 0 and octal.
func ParseUint(number string) (uint64, error) {
	digits, base := radix(number)
	return strconv.ParseUint(digits, base, 64)
}

// badNumber refuses the token as a number of that base.
func (p *parser) badNumber(digits string, base int) error {
	text := p.tok.text
	err := Errorf(p.text, p.tok.at, "%s is not a number", Quote(text))
	plain := strings.TrimRight(digits, "uUlL")
	switch {
	case digits == "":
		return err.WithHint("hexadecimal digits belong after %s", text)
	case isDuration(text):
		return err.WithHint("only $duration is compared with a time")
	case meantUnit(text) != "":
		amount, _, _ := cutUnit(text)
		return err.WithHint("did you mean '%s%s'?", amount, meantUnit(text))
	case only(plain, "01234567") && base == 8, only(plain, decimal) && base == 10, only(plain, hexadecimal) && base == 16:
		return err.WithHint("leave out the suffix '%s'", digits[len(plain):])
	case only(text, "numsh."+decimal) && strings.Trim(text[len(text)-1:], "smh") == "":
		return err.WithHint("a time has one number, perhaps with a fraction, and one unit: 1.5s")
	case strings.Contains(text, "."):
		return err.WithHint("constants are integers")
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
