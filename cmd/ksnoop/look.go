package main

import (
	"io"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"
)

// colorFlag is when text has colours.
func colorFlag(f *pflag.FlagSet) {
	f.String("color", "auto", "colour names, types and faults `WHEN`: auto, always or never (auto: on a terminal, unless $NO_COLOR is set or $TERM is dumb)")
}

// lookFlags is how lines of text look.
func lookFlags(f *pflag.FlagSet) {
	colorFlag(f)
	f.Bool("no-header", false, "leave out the headings of the columns")
	f.String("time", string(monoTime), "show the time as `CLOCK`: mono, wall or delta (ns since boot, the time of day, seconds since the line before)")
}

// timeStyle is how the time of an event is shown.
type timeStyle string

const (
	monoTime  timeStyle = "mono"
	wallTime  timeStyle = "wall"
	deltaTime timeStyle = "delta"
)

// look is how lines of text look.
type look struct {
	noHeader bool
	width    int // columns that a line of compact output is cut to; 0: it is not
	time     timeStyle
	wall     func() time.Duration // from CLOCK_MONOTONIC to the time of day
}

// readLook reads what the command line says of the text in a format.
func readLook(c *invocation, format string) (look, error) {
	l := look{noHeader: c.Bool("no-header"), time: timeStyle(c.String("time")), wall: wallOffset}
	switch l.time {
	case monoTime, wallTime, deltaTime:
	default:
		return l, unknownName("--time", string(l.time), []string{"mono", "wall", "delta"})
	}
	if format == "json" {
		if l.time != monoTime {
			return l, usagef("--time is %q: it is of text, and JSON always has ns of CLOCK_MONOTONIC, as mono", l.time)
		}
		return l, nil
	}
	l.width = widthOf(c.stdout)
	return l, setColor(c)
}

// setColor makes standard output have colours from now on, if it is to.
func setColor(c *invocation) error {
	color := false
	switch when := c.String("color"); when {
	case "auto":
		color = isTerminal(fileOf(c.stdout)) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	case "always":
		color = true
	case "never":
	default:
		return unknownName("--color", when, []string{"auto", "always", "never"})
	}
	if out, ok := c.stdout.(*plainWriter); ok {
		out.color = color
	}
	return nil
}

// widthOf is how many columns a terminal has; 0: w is none, and lines may be of
// any length.
func widthOf(w io.Writer) int {
	file, ok := fileOf(w).(interface{ Fd() uintptr })
	if !ok {
		return 0
	}
	size, err := unix.IoctlGetWinsize(int(file.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0
	}
	return int(size.Col)
}

// wallOffset is what lies between CLOCK_MONOTONIC and the time of day, which may be
// set at any moment.
func wallOffset() time.Duration {
	var before, day, after unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &before) // these clocks are always there
	_ = unix.ClockGettime(unix.CLOCK_REALTIME, &day)
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &after)
	return time.Duration(day.Nano() - (before.Nano()+after.Nano())/2)
}

// wrap breaks a line at blanks where it is longer than a width, with the rest
// indented; 0: it does not.
func wrap(line string, width, indent int) string {
	var text strings.Builder
	for width > indent+20 && utf8.RuneCountInString(line) > width {
		at := breakPlace(line, width, indent)
		if at < 0 {
			break
		}
		text.WriteString(line[:at] + "\n")
		line = strings.Repeat(" ", indent) + line[at+1:]
	}
	return text.String() + line
}

// breakPlace is the last blank of a line that fits into a width, behind the
// indentation; -1: there is none.
func breakPlace(line string, width, indent int) int {
	at, column := -1, 0
	for i, r := range line {
		if column > width {
			break
		}
		if r == ' ' && column > indent {
			at = i
		}
		column++
	}
	return at
}

// cutTo cuts the last line of a text, from a place on, to a width.
func cutTo(text []byte, from, width int) []byte {
	const dots = "..."
	if width <= len(dots) || utf8.RuneCount(text[from:]) <= width {
		return text
	}
	at := from
	for range width - len(dots) {
		_, size := utf8.DecodeRune(text[at:])
		at += size
	}
	return append(text[:at], dots...)
}
