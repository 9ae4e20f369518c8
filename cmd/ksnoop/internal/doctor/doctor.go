// Package doctor finds out what can be traced on this machine, by trying it.
package doctor

import (
	"errors"
	"fmt"
	"io"

	"github.com/ksnoop/ksnoop/btfdump"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/term"
	"github.com/ksnoop/ksnoop/runtime"
	"github.com/ksnoop/ksnoop/runtime/render"
)

// Formats are the formats of a diagnosis, the default first.
var Formats = []string{"text", "json"}

// Options are the options of [Run].
type Options struct {
	Format   string // one of Formats
	SelfTest bool
	Version  string // version of ksnoop
}

// finding is the result of one examination.
type finding struct {
	group string // kernel, attach, user, system or self-test
	name  string
	state string
	note  string // why, and what would change it; "" if all is well
}

// States of attach kinds.
const (
	usable    = "usable"
	notUsable = "not usable"
)

// diagnosis is the result of the doctor.
type diagnosis struct {
	checks []*finding
	usable bool   // whether something can be traced
	failed bool   // whether the self-test found a difference
	reason string // why nothing can be traced, or what to do about a failure
}

// Run prints a diagnosis. If nothing can be traced, it returns an error with what is
// missing.
func Run(o *Options, stdout io.Writer) error {
	survey, err := runtime.NewSurvey()
	if err != nil {
		return err
	}
	d := new(diagnosis)
	p, err := newTrialKernel()
	survey.Types = err
	d.addKernel(survey, p)
	d.addAttach(survey, p)
	d.addUser(survey)
	d.addSystem(survey)
	if o.SelfTest {
		d.addSelfTest(p)
	}
	if o.Format == "json" {
		_, err = stdout.Write(d.json(o.Version))
	} else {
		_, err = io.WriteString(stdout, d.text(term.WidthOf(stdout)))
	}
	if err != nil {
		return fmt.Errorf("write what the doctor found: %w", err)
	}
	if d.reason == "" {
		return nil
	}
	return errors.New(d.reason)
}

// add adds a row. It is not inlined: it has 30 callers.
//
//go:noinline
func (d *diagnosis) add(group, name, state, note string) {
	d.checks = append(d.checks, &finding{group, name, state, note})
}

// text returns the table, with an empty line between groups, and the conclusion.
func (d *diagnosis) text(width int) string {
	t := render.NewTable("", "", "")
	group := "kernel"
	for _, c := range d.checks {
		if c.group != group {
			t.Row("", "", "")
			group = c.group
		}
		t.Row(c.name, c.state, c.note)
	}
	t.Rows = t.Rows[1:] // no headings
	text := t.Fit(width)
	if can := d.can(); can != "" {
		text += "\n" + render.Wrap(can, width, 0) + "\n"
	}
	return text
}

// json returns the diagnosis as one object on a line.
func (d *diagnosis) json(version string) []byte {
	type check struct {
		Group string             `json:"group"`
		Name  btfdump.JSONString `json:"name"`
		State btfdump.JSONString `json:"state"`
		Note  btfdump.JSONString `json:"note"`
	}
	object := struct {
		Type    string             `json:"type"`
		Version int                `json:"version"`
		Usable  bool               `json:"usable"`
		Failed  bool               `json:"failed"`
		Ksnoop  btfdump.JSONString `json:"ksnoop"`
		Reason  btfdump.JSONString `json:"reason"`
		Can     btfdump.JSONString `json:"can"`
		Checks  []check            `json:"checks"`
	}{
		"doctor", 1, d.usable, d.failed, btfdump.JSONString(version), btfdump.JSONString(d.reason), btfdump.JSONString(d.can()), []check{},
	}
	for _, c := range d.checks {
		object.Checks = append(object.Checks, check{c.group, btfdump.JSONString(c.name), btfdump.JSONString(c.state), btfdump.JSONString(c.note)})
	}
	return render.AppendJSON(nil, object)
}
