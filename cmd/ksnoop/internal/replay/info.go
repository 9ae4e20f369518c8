package replay

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/ksnoop/ksnoop/btfdump"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/exit"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/listing"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/run"
	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/runtime"
	"github.com/ksnoop/ksnoop/runtime/recording"
	"github.com/ksnoop/ksnoop/runtime/render"
)

// Info prints what the words and files of a command line name: recordings first, and then,
// by package listing, functions and types.
func Info(o *listing.ListOptions, stdout io.Writer) error {
	words := o.Specs.Texts
	if slices.Contains(words, "-") {
		return exit.Usagef("info needs the name of a recording, and - is standard input: write it to a file, as in ksnoop info FILE")
	}
	var errs []error // of recordings; the others are shown nevertheless
	var others []string
	for _, word := range words {
		if isRecording(word) {
			errs = append(errs, infoRecording(word, o.Format, stdout))
		} else {
			others = append(others, word)
		}
	}
	if len(errs) > 0 && len(others)+len(o.Specs.Files) == 0 {
		return errors.Join(errs...)
	}
	for _, word := range others {
		if _, err := os.Stat(word); err == nil && strings.Contains(word, "/") {
			return errors.Join(append(errs, fmt.Errorf("read %s: it is not a recording of ksnoop record", word))...)
		}
	}
	o.Specs.Texts = others
	return errors.Join(append(errs, listing.Info(o, stdout))...)
}

// isRecording reports whether a file is a recording, of any version, or the beginning of
// one, or perhaps one that this user may not read.
func isRecording(name string) bool {
	n, err := run.BytesOfMagic(name)
	return n >= 0 || errors.Is(err, fs.ErrPermission)
}

// infoRecording prints where, when and of what a recording was made, and what is in it. Of a
// damaged one, it prints what can be read, and returns what is wrong.
func infoRecording(name, format string, out io.Writer) error {
	f, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("read the recording: %w", err)
	}
	defer f.Close()
	r, err := recording.NewReader(bufio.NewReaderSize(f, 64<<10))
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	c := &contents{Reader: r, records: make([]uint64, len(r.Unit.Events)), last: r.Clock.Mono}
	damage := c.read()
	var text []byte
	if format == "json" {
		text = c.json(name, damage)
	} else {
		text = c.text(name)
	}
	if _, err := out.Write(text); err != nil {
		return err
	}
	if damage != nil {
		return fmt.Errorf("read %s: %w", name, damage)
	}
	return nil
}

// contents summarizes a recording.
type contents struct {
	*recording.Reader
	records []uint64 // of each event
	tables  uint64
	last    time.Duration // time of the latest item
	end     *runtime.SessionCounts
	next    bool
}

// read reads all items. It returns why some cannot be read.
func (c *contents) read() error {
	var ev runtime.Event
	for {
		item, err := c.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		switch {
		case item.Record != nil:
			if err := ev.Decode(c.Unit, item.Record); err != nil {
				return err
			}
			c.records[ev.Number]++
			c.last = max(c.last, ev.Time)
		case item.Table != nil:
			c.tables++
			c.last = max(c.last, item.Table.Time)
		case item.Loss != nil:
			c.last = max(c.last, item.Loss.Time)
		case item.End != nil:
			c.end = item.End
		case item.Next:
			c.next = true
		}
	}
}

// losses counts the events that a recording lacks, by reason. Only its end has the counts.
type losses struct {
	Lost       uint64 `json:"lost"`
	NoRoom     uint64 `json:"noroom"`
	Unreadable uint64 `json:"unreadable"`
	Unpaired   uint64 `json:"unpaired"`
	Missed     uint64 `json:"missed"`
	Uncounted  bool   `json:"uncounted,omitempty"` // more may have been missed
	Unfollowed uint64 `json:"unfollowed"`
}

func (c *contents) losses() *losses {
	l := &losses{Unfollowed: c.end.Unfollowed}
	for i := range c.end.Events {
		n := &c.end.Events[i].Counters
		l.Lost += n.Lost
		l.NoRoom += n.NoRoom
		l.Unreadable += n.Unreadable
		l.Unpaired += n.Unpaired
	}
	for _, m := range runtime.MissedOnce(c.end.Missed) {
		l.Missed += m.N
		l.Uncounted = l.Uncounted || m.Uncounted
	}
	return l
}

func (l *losses) String() string {
	text := fmt.Sprintf("%d lost, %d without room, %d unreadable, %d unpaired, %d missed", l.Lost, l.NoRoom, l.Unreadable, l.Unpaired, l.Missed)
	if l.Uncounted {
		text += " (the kernel does not count all)"
	}
	if l.Unfollowed > 0 {
		text += fmt.Sprintf(", %d processes not followed", l.Unfollowed)
	}
	return text
}

// kinds calls f with each event that has records.
func (c *contents) kinds(f func(ev *compiler.EventType, n uint64)) {
	for i, n := range c.records {
		if n > 0 {
			f(c.Unit.Events[i], n)
		}
	}
}

func (c *contents) text(name string) []byte {
	var b bytes.Buffer
	line := func(what, format string, args ...any) {
		fmt.Fprintf(&b, "  %-8s %s\n", what, render.PlainName(fmt.Sprintf(format, args...)))
	}
	fmt.Fprintf(&b, "%s: a recording of ksnoop %s\n", render.PlainName(name), render.PlainName(c.Version))
	line("system", "%s, Linux %s (%s), boot %s", c.Host, c.Kernel, c.Arch, c.Boot)
	line("specs", "%s", strings.Join(c.Specs, " "))
	line("began", "%s", time.Unix(0, int64(c.Clock.Mono+c.Clock.Offset)).UTC().Format(time.RFC3339Nano))
	line("lasted", "%s", (c.last - c.Clock.Mono).Round(time.Millisecond))
	total, of := uint64(0), []string{}
	c.kinds(func(ev *compiler.EventType, n uint64) {
		total += n
		of = append(of, fmt.Sprintf("%d of %s", n, render.SideName(ev)))
	})
	line("records", "%s", strings.TrimSuffix(fmt.Sprintf("%d: %s", total, strings.Join(of, ", ")), ": "))
	if c.tables > 0 {
		line("tables", "%d", c.tables)
	}
	if c.end != nil {
		line("losses", "%s", c.losses())
	}
	if c.next || c.Part > 0 {
		line("part", "%d%s", c.Part, map[bool]string{true: ", another one follows"}[c.next])
	}
	return b.Bytes()
}

// recordingLine and recordedEvent are described in docs/info.schema.json.
type (
	recordingLine struct {
		Type     string               `json:"type"`
		Version  int                  `json:"version"`
		File     btfdump.JSONString   `json:"file"`
		Ksnoop   btfdump.JSONString   `json:"ksnoop"`
		Kernel   btfdump.JSONString   `json:"kernel"`
		Arch     btfdump.JSONString   `json:"arch"`
		Host     btfdump.JSONString   `json:"host"`
		Boot     btfdump.JSONString   `json:"boot,omitempty"`
		Realtime int64                `json:"realtime"`
		Begin    int64                `json:"begin"`
		End      int64                `json:"end"`
		Specs    []btfdump.JSONString `json:"specs"`
		Events   []recordedEvent      `json:"events"`
		Tables   uint64               `json:"tables"`
		Lost     *uint64              `json:"lost,omitempty"`
		Losses   *losses              `json:"losses,omitempty"`
		Part     int                  `json:"part"`
		Next     bool                 `json:"next"`
		Damage   btfdump.JSONString   `json:"damage,omitempty"`
	}
	recordedEvent struct {
		Func    btfdump.JSONString `json:"func"`
		Kind    string             `json:"kind"`
		Records uint64             `json:"records"`
	}
)

func (c *contents) json(name string, damage error) []byte {
	l := recordingLine{
		Type: "recording", Version: 1, File: btfdump.JSONString(name), Ksnoop: btfdump.JSONString(c.Version),
		Kernel: btfdump.JSONString(c.Kernel), Arch: btfdump.JSONString(c.Arch), Host: btfdump.JSONString(c.Host), Boot: btfdump.JSONString(c.Boot),
		Realtime: int64(c.Clock.Offset), Begin: int64(c.Clock.Mono), End: int64(c.last), Tables: c.tables, Part: c.Part, Next: c.next,
		Specs: []btfdump.JSONString{}, Events: []recordedEvent{},
	}
	for _, s := range c.Specs {
		l.Specs = append(l.Specs, btfdump.JSONString(s))
	}
	c.kinds(func(ev *compiler.EventType, n uint64) {
		l.Events = append(l.Events, recordedEvent{btfdump.JSONString(render.FunctionName(ev.Probe.Func)), ev.Kind.String(), n})
	})
	if c.end != nil {
		l.Losses = c.losses()
		lost := l.Losses.Lost + l.Losses.NoRoom
		l.Lost = &lost
	}
	if damage != nil {
		l.Damage = btfdump.JSONString(damage.Error())
	}
	return render.AppendJSON(nil, l)
}
