// Package values prints values of the running kernel, without a call.
package values

import (
	"cmp"
	"errors"
	"fmt"
	"math/bits"
	"os"
	"slices"
	"time"

	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/exit"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/listing"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/run"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/term"
	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/codegen"
	"github.com/ksnoop/ksnoop/compiler/resolve"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/runtime"
	"github.com/ksnoop/ksnoop/runtime/cgroup"
	"github.com/ksnoop/ksnoop/runtime/render"
)

// Options selects what is printed, how often, and how it is shown.
type Options struct {
	Exprs    []string
	CPUs     string        // as in 0-3,8; "all" for all possible ones, "" for those online
	Every    time.Duration // time between readings, or 0 for one reading
	Bounds   run.Bounds    // of the readings
	MaxBytes int           // of a value, or 0 for the default
	run.Appearance
	Debug bool
	Own   run.Inherited
}

// DefaultMaxBytes is the number of bytes of a value that are read by default. While
// the program runs, nothing else can on its CPU: this takes some 20 microseconds.
const DefaultMaxBytes = 64 << 10

// Print reads values and prints them, once or until a limit or a signal.
func Print(o *Options, s *term.Streams) error {
	if o.Every == 0 && o.Bounds != (run.Bounds{}) {
		return exit.Usagef("--events and --for limit how often values are read: give the time between, as in --every 1s")
	}
	looks, err := o.On(s.Out)
	if err != nil {
		return err
	}
	looks.Look.Width = 0
	r := &reader{every: o.Every, stopped: make(chan struct{})}
	k, err := r.compile(o)
	if err != nil {
		return err
	}
	if r.cpus, err = r.chooseCPUs(o.CPUs); err != nil {
		return err
	}
	looks.Symbols, looks.Containers = render.NewSymbols(k.Finder, term.WarnOn(s.Err)), cgroup.NewTable()
	if !o.NoSymbols {
		looks.Pointers = render.NewPointerNames(k.Finder)
	}
	if r.out, err = render.NewValues(looks); err != nil {
		return err
	}
	if o.Debug {
		listing.Describe(s.Err, r.unit)
	}
	if r.session, err = runtime.Load(r.unit, k); err != nil {
		var refused *runtime.VerifierError
		if errors.As(err, &refused) {
			listing.DescribeRefusal(s.Err, r.unit, refused, o.Debug)
		}
		return err
	}
	defer r.session.Close()
	listing.WarnRefused(s.Err, r.unit, r.session.Refused(), o.Debug)
	if o.Every > 0 {
		run.StopOnSignal(r, nil, nil, o.Own, func() { term.Hurry(s.Out) })
	}
	return r.repeat(o.Bounds, s)
}

// compile binds the expressions to the running kernel and compiles them.
func (r *reader) compile(o *Options) (*runtime.Kernel, error) {
	var traces []*spec.Trace
	var errs []error
	for _, text := range o.Exprs {
		t, err := spec.ParseValues(text)
		traces, errs = append(traces, t), append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, exit.Misuse(err)
	}
	var plan *compiler.Plan
	var misfit error
	k, err := runtime.OpenFor(traces, nil, func(target *compiler.Target) bool {
		plan, misfit = resolve.All(traces, target, resolve.Wishes{})
		return resolve.Settled(misfit, target)
	})
	if err := cmp.Or(err, misfit); err != nil {
		return nil, err
	}
	opts := compiler.Options{MaxBytes: cmp.Or(o.MaxBytes, DefaultMaxBytes), RingBytes: 1 << 30}
	if r.unit, err = codegen.Compile(plan.Probes, opts); err != nil {
		return nil, err
	}
	largest := 0
	for _, ev := range r.unit.Events {
		largest = max(largest, ev.Layout.Size)
	}
	// Room for one record: each is read before the next program runs.
	r.unit.Collection.Maps[compiler.EventsMap].MaxEntries = max(uint32(os.Getpagesize()), uint32(1)<<bits.Len(uint(largest+8)))
	return k, nil
}

// chooseCPUs returns the CPUs whose variables are read.
func (r *reader) chooseCPUs(list string) ([]int, error) {
	depends := slices.ContainsFunc(r.unit.Probes(), func(p *compiler.Probe) bool {
		return slices.ContainsFunc(p.Entry, (*compiler.Value).OfCPU)
	})
	switch {
	case !depends && list != "":
		return nil, exit.Usagef("--cpu is for per-CPU variables, and none is to be printed")
	case !depends:
		return []int{0}, nil
	case list == "":
		return runtime.OnlineCPUs()
	}
	possible, err := runtime.PossibleCPUs()
	if err != nil || list == "all" {
		return possible, err
	}
	cpus, err := runtime.ParseCPUs(list)
	if err != nil {
		return nil, exit.Usagef("--cpu is %q: it must be all, or numbers and ranges such as 0-3,8", list)
	}
	for _, cpu := range cpus {
		if !slices.Contains(possible, cpu) {
			return nil, exit.Usagef("--cpu is %q: this system has no CPU %d, but %s", list, cpu, numbers(possible))
		}
	}
	return cpus, nil
}

// numbers describes the CPUs of a system.
func numbers(cpus []int) string {
	if last := cpus[len(cpus)-1]; last > 0 {
		return fmt.Sprintf("0 to %d", last)
	}
	return "only 0"
}
