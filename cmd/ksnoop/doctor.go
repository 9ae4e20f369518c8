package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/pflag"

	"github.com/ksnoop/ksnoop/btfdump"
	"github.com/ksnoop/ksnoop/runtime"
)

func doctorCommand() *subcommand {
	return &subcommand{
		name:  "doctor",
		usage: "say what can be traced here, and what is missing",
		description: `Any user may do this. What can be tried is tried, on functions that are seldom called. The status is 0 if
there is one way to trace or more, and 1 if there is none.

   ksnoop doctor                what this kernel and this user's capabilities allow
   ksnoop doctor --self-test    trace calls of its own in each way, and compare all values`,
		flags: []flags{doctorFlags},
		run:   doctor,
	}
}

func doctorFlags(f *pflag.FlagSet) {
	f.StringP("output", "o", "text", "print `FORMAT`: text, or json for one object")
	f.Bool("self-test", false, "trace known calls of ksnoop's own and compare what is shown")
}

// check is one thing that was looked at.
type check struct {
	group string // kernel, attach, user, system or self-test
	name  string
	state string
	note  string // why, and what would change it; "": it is as it should be
}

// States of attach kinds.
const (
	usable    = "usable"
	notUsable = "not usable"
)

// diagnosis is what the doctor says.
type diagnosis struct {
	checks []*check
	usable bool   // something can be traced
	failed bool   // the self-test found a difference
	reason string // why not, or what to do about it
}

func doctor(c *invocation) error {
	output := c.String("output")
	if output != "text" && output != "json" {
		return unknownName("--output", output, []string{"text", "json"})
	}
	survey, err := runtime.NewSurvey()
	if err != nil {
		return err
	}
	d := new(diagnosis)
	p, err := newPatient()
	survey.Types = err
	d.addKernel(survey, p)
	d.addAttach(survey, p)
	d.addUser(survey)
	d.addSystem(survey)
	if c.Bool("self-test") {
		d.addSelfTest(p)
	}
	if output == "json" {
		_, err = c.stdout.Write(d.json())
	} else {
		_, err = io.WriteString(c.stdout, d.text(widthOf(c.stdout)))
	}
	if err != nil {
		return fmt.Errorf("write what the doctor found: %w", err)
	}
	if d.reason == "" {
		return nil
	}
	return errors.New(d.reason)
}

func (d *diagnosis) add(group, name, state, note string) {
	d.checks = append(d.checks, &check{group, name, state, note})
}

// text is the table, with an empty line between groups.
func (d *diagnosis) text(width int) string {
	t := newTable("", "", "")
	group := "kernel"
	for _, c := range d.checks {
		if c.group != group {
			t.row("", "", "")
			group = c.group
		}
		t.row(c.name, c.state, c.note)
	}
	t.rows = t.rows[1:] // no headings
	return t.fit(width)
}

// json is one object on a line.
func (d *diagnosis) json() []byte {
	text := fmt.Appendf(nil, `{"type":"doctor","version":1,"usable":%t,"failed":%t`, d.usable, d.failed)
	add := func(name, value string) {
		text = append(text, `,"`+name+`":`...)
		text = btfdump.AppendJSONString(text, []byte(value))
	}
	add("ksnoop", buildVersion())
	add("reason", d.reason)
	text = append(text, `,"checks":[`...)
	for i, c := range d.checks {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(text, `{"group":"`+c.group+`"`...)
		add("name", c.name)
		add("state", c.state)
		add("note", c.note)
		text = append(text, '}')
	}
	return append(text, "]}\n"...)
}
