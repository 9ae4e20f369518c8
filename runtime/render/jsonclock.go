package render

import (
	"time"

	"github.com/ksnoop/ksnoop/btfdump"
)

// jsonRun is what a run line begins with: also what the lines of many hosts can be put in
// order by.
type jsonRun struct {
	Type    string             `json:"type"`
	Version int                `json:"version"`
	Ksnoop  btfdump.JSONString `json:"ksnoop"`
	Kernel  btfdump.JSONString `json:"kernel"`
	Host    btfdump.JSONString `json:"host"`
	Boot    btfdump.JSONString `json:"boot,omitempty"`
	// Realtime is the time of day at 0 of CLOCK_MONOTONIC, in ns since 1970.
	Realtime int64 `json:"realtime"`
}

// run returns the beginning of a run line, with the clocks as they are now.
func (p *jsonPrinter) run() jsonRun {
	p.offset = p.look.wall()
	p.noted = p.offset
	return jsonRun{
		"run", jsonVersion, btfdump.JSONString(p.version), btfdump.JSONString(p.system.Kernel),
		btfdump.JSONString(p.system.Host), btfdump.JSONString(p.system.Boot), p.noted.Nanoseconds(),
	}
}

// clockLine is printed when the time of day has been set, a leap second was inserted, or
// the machine has slept.
type clockLine struct {
	Type     string `json:"type"`
	Realtime int64  `json:"realtime"`
}

// steady is by how much the offset of the clocks may differ from the one that was
// printed: interrupts between reading the two clocks make less of a difference.
const steady = 10 * time.Millisecond

// clock prints the clocks again if they no longer are as they were printed, which it
// finds out once after each flush.
func (p *jsonPrinter) clock() {
	if p.noted == 0 || p.offset != 0 {
		return
	}
	now := p.look.wall()
	p.offset = p.noted // so that wall is realtime + time
	if (now - p.noted).Abs() <= steady {
		return
	}
	if again := p.look.wall(); (again - now).Abs() > steady {
		return // ksnoop did not run for a while between reading the two clocks
	}
	p.noted, p.offset = now, now
	p.text = AppendJSON(p.text, clockLine{"clock", p.noted.Nanoseconds()})
}

// wall adds the time of day of an event, if it is asked for.
func (p *jsonPrinter) wall(at time.Duration) {
	if p.look.Time == Wall {
		p.text = p.wallTime(at).UTC().AppendFormat(append(p.text, `,"wall":"`...), wallLayout)
		p.text = append(p.text, '"')
	}
}

// wallText returns the time of day of an event, or "" if it is not asked for.
func (p *jsonPrinter) wallText(at time.Duration) string {
	if p.look.Time != Wall {
		return ""
	}
	return p.wallTime(at).UTC().Format(wallLayout)
}

// wallLayout is RFC 3339 with all nanoseconds, so that texts sort as times do.
const wallLayout = "2006-01-02T15:04:05.000000000Z07:00"
