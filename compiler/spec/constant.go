package spec

import (
	"errors"
	"strconv"
	"strings"
)

// lowest is the magnitude of the lowest constant, -2^63.
const lowest = 1 << 63

// constant parses the constant that a value is compared with.
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
		c, err = p.integer(start, sign == "-", p.isTimed())
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

// integer parses a number. Start is the offset of its sign, if it has one. A number that
// is timed stands for a duration or is compared with one, so it cannot be a size.
func (p *parser) integer(start int, neg, timed bool) (c Constant, err error) {
	number, shift := p.tok.text, uint(0)
	if amount, s, ok := cutSize(number); ok && !timed {
		number, shift = amount, s
	}
	digits, base := radix(number)
	abs, err := strconv.ParseUint(digits, base, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return c, p.badNumber(digits, base, timed)
	}
	if abs<<shift>>shift != abs {
		err = strconv.ErrRange
	}
	abs <<= shift
	at := Span{start, p.tok.at.End}
	if err != nil || neg && abs > lowest {
		return c, p.errorf(at, "%s is out of range", Quote(p.text[at.Start:at.End])).
			WithHint("constants go from -%d (-2^63) to %d (2^64-1)", uint64(lowest), ^uint64(0))
	}
	return Constant{Text: p.text[at.Start:at.End], Neg: neg && abs != 0, Abs: abs, At: at}, p.advance()
}

// radix splits a C integer into its digits and their base.
func radix(number string) (digits string, base int) {
	switch {
	case strings.HasPrefix(number, "0x"), strings.HasPrefix(number, "0X"):
		return number[2:], 16
	case strings.HasPrefix(number, "0o"), strings.HasPrefix(number, "0O"):
		return number[2:], 8
	case len(number) > 1 && number[0] == '0':
		return number[1:], 8
	default:
		return number, 10
	}
}

// ParseUint parses a number as C does: decimal, hexadecimal after 0x, or octal
// after 0 or 0o.
func ParseUint(number string) (uint64, error) {
	digits, base := radix(number)
	return strconv.ParseUint(digits, base, 64)
}

// badNumber returns the error for a token that is not a number of this base.
func (p *parser) badNumber(digits string, base int, timed bool) error {
	text := p.tok.text
	err := p.errorf(p.tok.at, "%s is not a number", Quote(text))
	plain := strings.TrimRight(digits, "uUlL")
	amount, unit, counted := cutUnit(text)
	size := sizeHabits.Meaning(unit)
	switch {
	case digits == "" && base == 8:
		return err.WithHint("octal digits belong after %s", text)
	case digits == "":
		return err.WithHint("hexadecimal digits belong after %s", text)
	case isDuration(text):
		return err.WithHint("only $duration is compared with a time")
	case size != "" && counted && !timed:
		return err.WithMeant("%s%s", amount, size)
	case sizes[unit] != 0 && strings.Contains(amount, ".") && !timed:
		return err.WithHint("a size is a whole number: 1536K is 1.5 times 1M")
	case meantUnit(text) != "":
		return err.WithMeant("%s%s", amount, meantUnit(text))
	case only(plain, "01234567") && base == 8, only(plain, decimal) && base == 10, only(plain, hexadecimal) && base == 16:
		return err.WithHint("leave out the suffix '%s'", digits[len(plain):])
	case only(text, "numsh."+decimal) && strings.Trim(text[len(text)-1:], "smh") == "":
		return err.WithHint("a time has one number, perhaps with a fraction, and one unit: 1.5s")
	case strings.Count(text, ".") == 3:
		return err.WithHint("an address is in quotes: \"%s\"", text)
	case strings.Contains(text, ".."):
		return err.WithHint("a range is two comparisons: count >= 1, count <= 5")
	case strings.Contains(text, "."):
		return err.WithHint("constants are integers")
	case only(digits, decimal):
		return err.WithHint("a leading 0 means octal; the decimal number is %s", strings.TrimLeft(digits, "0"))
	case only(strings.ReplaceAll(text, "_", ""), decimal):
		return err.WithMeant("%s", strings.ReplaceAll(text, "_", ""))
	case exponent(text) != "":
		return err.WithHint("there are no exponents: write %s, or 0x%s if it is hexadecimal", exponent(text), text)
	case only(text, hexadecimal) && base == 10:
		return err.WithHint("hexadecimal is written 0x%s", text)
	default:
		return err
	}
}

// exponent returns the number that text is in C if it has an exponent, such as 1e6. It
// returns "" if there is none, or if the number may not fit into 64 bits.
func exponent(text string) string {
	const most = 19 // decimal digits that always fit
	mantissa, power, _ := strings.Cut(strings.ToLower(text), "e")
	zeros, err := strconv.ParseUint(power, 10, 8)
	if err != nil || !only(mantissa, decimal) || len(mantissa)+int(zeros) > most {
		return ""
	}
	return mantissa + strings.Repeat("0", int(zeros))
}

const (
	decimal     = "0123456789"
	hexadecimal = "0123456789abcdefABCDEF"
)

// only reports whether text is not empty and consists of these digits.
func only(text, digits string) bool {
	return text != "" && strings.Trim(text, digits) == ""
}

// sizes has the suffixes of sizes and the exponents of their powers of two.
var sizes = map[string]uint{"k": 10, "K": 10, "M": 20, "G": 30, "T": 40}

// cutSize splits a size such as 64K into its number, which is decimal and has no
// leading zero, and the exponent of the power of two that the suffix means.
func cutSize(text string) (amount string, shift uint, ok bool) {
	amount, unit, _ := cutUnit(text)
	shift = sizes[unit]
	return amount, shift, shift != 0 && only(amount, decimal) && amount[0] != '0'
}
