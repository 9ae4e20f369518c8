package render

import (
	"fmt"
	"time"

	"github.com/ksnoop/ksnoop/btfdump"
	"github.com/ksnoop/ksnoop/runtime"
	"github.com/ksnoop/ksnoop/runtime/userstack"
)

// process is the process in which a value was taken, at that time. The zero value stands
// for none: then frames only have their files.
type process struct {
	pid  uint32
	when time.Duration // CLOCK_MONOTONIC
}

func processOf(ev *runtime.Event) process { return process{ev.PID, ev.Time} }

// originOf returns the process of value i of an event.
func originOf(ev *runtime.Event, i int) process {
	pid, at := ev.Origin(i)
	return process{pid, at}
}

// frames returns the frames of a stack of a process.
func (p *page) frames(data []byte, proc process) []userstack.Frame {
	if p.stacks == nil {
		p.stacks = userstack.New("")
	}
	return p.stacks.Frames(proc.pid, data, proc.when)
}

// userStack prints each frame on a line of its own.
func (p *printer) userStack(data []byte, proc process) {
	for i, f := range p.frames(data, proc) {
		if i > 0 {
			p.text = append(p.text, '\n')
		}
		p.blanks(valueIndent)
		p.text = appendUserFrame(p.text, &f)
	}
}

func (p *compactPrinter) userStack(data []byte, proc process) {
	p.text = append(p.text, '[')
	for i, f := range p.frames(data, proc) {
		if i > 0 {
			p.text = append(p.text, ", "...)
		}
		p.text = appendUserFrame(p.text, &f)
	}
	p.text = append(p.text, ']')
}

// userStack prints each frame as an object, without the fields that are not known.
func (p *jsonPrinter) userStack(data []byte, proc process) {
	p.text = append(p.text, '[')
	for i, f := range p.frames(data, proc) {
		if i > 0 {
			p.text = append(p.text, ',')
		}
		p.text = append(p.text, '{')
		text := func(key, value string) {
			if value != "" {
				p.key(`"` + key + `"`)
				p.text = btfdump.AppendJSONString(p.text, []byte(value))
			}
		}
		text("symbol", symbolOf(&f))
		text("file", f.File)
		text("build_id", f.BuildID)
		if f.File == "" && f.BuildID == "" {
			p.key(`"address"`)
			p.hex(f.Address)
		} else {
			p.key(`"offset"`)
			p.hex(f.Offset)
		}
		p.text = append(p.text, '}')
	}
	p.text = append(p.text, ']')
}

// symbolOf returns the function of a frame with the offset in it, or "".
func symbolOf(f *userstack.Frame) string {
	if f.Symbol == "" || f.In == 0 {
		return f.Symbol
	}
	return fmt.Sprintf("%s+%#x", f.Symbol, f.In)
}

// appendUserFrame appends a frame: "function+0x5 (/bin/file+0x1234)".
func appendUserFrame(dst []byte, f *userstack.Frame) []byte {
	place := ""
	switch {
	case f.File != "":
		place = fmt.Sprintf("%s+%#x", PlainName(f.File), f.Offset)
	case f.BuildID != "":
		place = fmt.Sprintf("build id %s+%#x", f.BuildID, f.Offset)
	default:
		return appendHex(dst, f.Address)
	}
	if name := symbolOf(f); name != "" {
		return fmt.Appendf(dst, "%s (%s)", PlainName(name), place)
	}
	return append(dst, place...)
}
