package main

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"github.com/ksnoop/ksnoop/btfdump"
	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/runtime"
)

// output prints what a session sees, in one of the formats. The text gathers
// until flush.
type output interface {
	use(look) // before all else
	begin()   // once everything is attached
	event(*runtime.Event) error
	loss(loss)     // was just lost; text formats leave it to stderr
	end(summary)   // comes last
	gathered() int // bytes that flush would write
	flush(io.Writer) error
}

// outputFormats are the values of --output, the default first.
var outputFormats = []string{"text", "compact", "json"}

func outputFlag(f *pflag.FlagSet) {
	f.StringP("output", "o", outputFormats[0], "print events as `FORMAT`: "+orList(outputFormats))
}

func outputFormat(c *invocation) (string, error) {
	format := c.String("output")
	if c.Bool("compact") && !c.IsSet("output") {
		return "compact", nil
	}
	if !slices.Contains(outputFormats, format) {
		return "", unknownName("--output", format, outputFormats)
	}
	return format, nil
}

// newOutput prints the events of a unit, with values as options say.
func newOutput(format string, options btfdump.Options, unit *compiler.Unit, s *symbols) (output, error) {
	switch format {
	case "json":
		release, err := runtime.Release()
		return newJSON(options, unit, s, release), err
	case "compact":
		return newCompact(options, s), nil
	}
	return newPrinter(options, unit, s), nil
}

// page is text that is to be written.
type page struct {
	text   []byte
	look   look
	last   time.Duration // the time of the line before; 0: there is none
	offset time.Duration // from CLOCK_MONOTONIC to the time of day; 0: not yet known
}

func (p *page) use(l look) { p.look = l }

// header adds headings, unless none are wanted.
func (p *page) header(text string) {
	if !p.look.noHeader {
		p.text = append(p.text, text...)
	}
}

func (p *page) gathered() int { return len(p.text) }

func (p *page) flush(w io.Writer) error {
	if len(p.text) == 0 {
		return nil
	}
	_, err := w.Write(p.text)
	p.text = p.text[:0]
	if err != nil {
		return fmt.Errorf("write events: %w", err)
	}
	return nil
}

// forms are the forms of values, each made once.
type forms struct {
	options btfdump.Options
	of      map[*compiler.Value]*form
}

// form is how the bytes of a value look.
type form struct {
	cast   string // its type, as in C
	dumper *btfdump.Dumper
}

func newForms(options btfdump.Options) forms {
	return forms{options, map[*compiler.Value]*form{}}
}

func (f *forms) form(v *compiler.Value) *form {
	made := f.of[v]
	if made == nil {
		made = &form{cast: castOf(v)}
		f.of[v] = made
	}
	return made
}

// dumper is for values that look as their type says.
func (f *forms) dumper(v *compiler.Value) (*btfdump.Dumper, error) {
	made := f.form(v)
	if made.dumper == nil {
		d, err := btfdump.New(shownType(v), f.options)
		if err != nil {
			return nil, fmt.Errorf("show '%s': %w", v.Name, err)
		}
		made.dumper = d
	}
	return made.dumper, nil
}

func castOf(v *compiler.Value) string {
	if v.Text != compiler.NoText {
		return "(char *)"
	}
	return "(" + btfdump.TypeName(shownType(v)) + ")"
}
