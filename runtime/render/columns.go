package render

// wideRunes are the characters that take two columns of a terminal, from the first to the
// last of each range: those of Chinese, Japanese and Korean, their full-width forms, and
// emoji. It is a rough form of Unicode's East Asian Width.
var wideRunes = [...][2]rune{
	{0x1100, 0x115f}, {0x2e80, 0xa4cf}, {0xac00, 0xd7a3}, {0xf900, 0xfaff}, {0xfe30, 0xfe6f},
	{0xff00, 0xff60}, {0xffe0, 0xffe6}, {0x1f300, 0x1f64f}, {0x1f900, 0x1f9ff}, {0x20000, 0x3fffd},
}

// columnsOf returns the number of columns that a text takes on a terminal. It is not
// inlined: it has a dozen callers.
//
//go:noinline
func columnsOf(text string) (n int) {
	for _, r := range text {
		n++
		if r < wideRunes[0][0] {
			continue
		}
		for _, wide := range wideRunes {
			if wide[0] <= r && r <= wide[1] {
				n++
			}
		}
	}
	return n
}
