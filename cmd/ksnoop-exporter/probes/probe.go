package probes

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/codegen"
	"github.com/ksnoop/ksnoop/compiler/resolve"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/compiler/suite"
	"github.com/ksnoop/ksnoop/compiler/suite/bind"
	"github.com/ksnoop/ksnoop/runtime"
	"github.com/ksnoop/ksnoop/runtime/cgroup"
	"github.com/ksnoop/ksnoop/runtime/render"
)

// Options are the limits of what is counted and served.
type Options struct {
	Series int       // label sets of a metric; further keys are counted together
	Keys   int       // keys that a table in the kernel has room for, or 0 for the default
	Warn   io.Writer // for remarks
}

// Probe is a metric line, and the session that counts its calls. Each has a session
// of its own, so that one can go on when others change.
type Probe struct {
	File, Suite, Name string
	Text              string // the line
	// Err is why it counts nothing: an error, or what the kernel lacks.
	Err error
	// Absent is true if Err is not a defect: this kernel has nothing to count.
	Absent bool

	id      string // equal ids count the same calls
	metric  *suite.Metric
	base    string // name of the metric
	traces  []*spec.Trace
	plan    *compiler.Plan
	session *runtime.Session
	printer render.Printer
	rows    *series
}

// newProbe returns a probe that is not attached.
func newProbe(s *suite.Suite, m *suite.Metric, o *Options) *Probe {
	p := &Probe{File: s.File, Suite: s.Name, Name: m.Name, Text: m.String(), metric: m, base: metricName(s, m), rows: newSeries(o.Series)}
	p.id = s.Name + "\n" + p.base + "\n" + p.Text
	for _, r := range s.Requires {
		p.id += "\n" + r.String()
	}
	return p
}

// absent records that the kernel has nothing to count.
func (p *Probe) absent(reason string) { p.Err, p.Absent = errors.New(reason), true }

// bind binds the specs of a probe to a kernel.
func (p *Probe) bind(s *suite.Suite, target *compiler.Target, release string) {
	p.Err, p.Absent, p.traces, p.plan = nil, false, nil, nil
	if unmet := bind.Unmet(s.Requires, target, release); unmet != "" {
		p.absent(unmet)
		return
	}
	for i, step := range p.metric.Path {
		t, err := bind.Choose(step.AnyOf, target)
		if err != nil {
			p.absent(bind.Sentence(err))
			return
		}
		if i == len(p.metric.Path)-1 {
			if t, p.Err = lower(p.metric.Kind, t); p.Err != nil {
				return
			}
		}
		p.traces = append(p.traces, t)
	}
	wishes := resolve.Wishes{Chain: len(p.traces) > 1}
	if p.metric.Kind == suite.Calls {
		wishes.Measures = map[*spec.Trace]compiler.Measure{p.traces[len(p.traces)-1]: compiler.Calls}
	}
	p.plan, p.Err = resolve.All(p.traces, target, wishes)
}

// all returns the traces of a probe before they are bound.
func (p *Probe) all() (all []*spec.Trace) {
	for _, step := range p.metric.Path {
		all = append(all, step.AnyOf...)
	}
	return all
}

// attach compiles, loads and attaches what is bound.
func (p *Probe) attach(k *runtime.Kernel, o *Options) error {
	compile := func() (*compiler.Unit, error) {
		opts := compiler.Options{RingBytes: uint32(os.Getpagesize()), Keys: o.Keys, CountCalls: true}
		if err := k.FindProcesses(&opts); err != nil {
			return nil, err
		}
		return codegen.Compile(p.plan.Probes, opts)
	}
	unit, err := compile()
	if err != nil {
		return err
	}
	session, err := runtime.Load(unit, k)
	if err != nil {
		return err
	}
	session.Recompile = compile
	n, err := session.Attach()
	if n == 0 {
		return errors.Join(cmp.Or(err, errors.New("nothing could be attached")), session.Close())
	}
	for _, note := range slices.Concat(p.plan.Notes, session.Notes()) {
		fmt.Fprintf(o.Warn, "%s: %s\n", p.Name, note)
	}
	if err != nil { // some functions of a glob
		fmt.Fprintf(o.Warn, "%s: %v\n", p.Name, err)
	}
	symbols := render.NewSymbols(k.Finder, func(err error) { fmt.Fprintf(o.Warn, "%s: %v\n", p.Name, err) })
	if render.NeedsSymbols(session.Unit(), "json") {
		symbols.Load()
	}
	p.printer, err = render.New(&compiler.Unit{}, render.Options{Format: "json", Symbols: symbols, Containers: cgroup.NewTable(), Wall: unset})
	if err == nil {
		err = p.printer.Flush(io.Discard) // the line before the rows
	}
	if err == nil {
		_, err = session.Tables() // loads what reads them, which needs privileges
	}
	p.session = session
	if err == nil {
		err = p.checkColumns()
	}
	if err != nil {
		p.session = nil
		return errors.Join(err, session.Close())
	}
	return nil
}

// unset takes the place of the clock for the time of day, which rows do not show. With the real
// one, the printer would write a line before the next row whenever that clock is set.
func unset() time.Duration { return 0 }

// Close detaches the probe.
func (p *Probe) Close() error {
	if p.session == nil {
		return nil
	}
	return p.session.Close()
}
