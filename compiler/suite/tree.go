package suite

import (
	"strings"
	"time"

	"github.com/ksnoop/ksnoop/compiler/spec"
)

// Suite is a parsed probe file.
type Suite struct {
	File     string
	Name     string
	Requires []*Require // if the kernel lacks any of these, everything is skipped
	Run      *Run       // nil if the command comes from the command line
	Settle   time.Duration
	Asserts  []*Assert
	Metrics  []*Metric
	Evidence []*Evidence
	XFails   []*XFail
}

// Require is something that a kernel must have.
type Require struct {
	Kind RequireKind
	Op   spec.Op // of RequireKernel: compares the kernel's version with Version
	Version
	Keyword string // of RequireBTF: struct, union, enum or typedef
	Name    string // of RequireFunc and RequireBTF
	From    spec.Source
}

// RequireKind is the kind of thing that is required.
type RequireKind uint8

// The kinds.
const (
	RequireKernel RequireKind = iota
	RequireFunc
	RequireBTF
)

// Run is the command that makes the calls.
type Run struct {
	Command []string
	Timeout time.Duration // 0 if there is none
	Status  int           // the exit status that it must have
	From    spec.Source
}

// Spec holds the traces of an assertion, a metric or evidence. Only any-of has several
// traces; the first whose function the kernel has is used.
type Spec struct {
	AnyOf []*spec.Trace
	// Text is a kprobe_events line as it is written, with its quotes. It is empty for
	// specs.
	Text string
}

// Assert is a condition that must hold for the calls of a function.
type Assert struct {
	Name  string
	Path  []*Spec // one spec, or after -s the functions of a chain, the outermost first
	Other *Spec   // the spec after ~, for Difference and Ratio
	Condition
	AllowUnreached bool
	Scope          Scope
	From           spec.Source
}

// Metric is a number or a histogram that is reported. It cannot fail.
type Metric struct {
	Name  string
	Path  []*Spec // as in [Assert]
	Kind  MetricKind
	Scope Scope
	From  spec.Source
}

// MetricKind selects the number that a metric reports of its spec's values or calls.
type MetricKind uint8

// The kinds.
const (
	Sum       MetricKind = iota // of the values
	Calls                       // the number of calls; the word is count
	Histogram                   // of the values
	Rows                        // the table of a spec with aggregates; the word is table
)

// Scope selects the tasks whose calls count.
type Scope uint8

// The scopes.
const (
	System Scope = iota
	Task         // the command and its children
	Cgroup       // the cgroup of the command
)

// Evidence selects events that are shown with an assertion or a metric.
type Evidence struct {
	Name string  // of the assertion or the metric
	Path []*Spec // as in [Assert]
	Last int     // the number of events that are kept
	From spec.Source
}

// XFail is a line that says where an assertion is expected to fail.
type XFail struct {
	Name    string // of the assertion
	On      XFailOn
	Op      spec.Op // of OnKernel
	Version         // of OnKernel
	Reason  string
	From    spec.Source
}

// XFailOn is a place where a failure is expected.
type XFailOn uint8

// The places.
const (
	Always   XFailOn = iota
	OnQEMU           // an emulated CPU
	OnKernel         // a kernel of certain versions
)

// String returns s as a probe file, without comments, and with its statements in
// the order of the reference.
func (s *Suite) String() string {
	lines := []string{header + " " + version, "suite " + s.Name}
	for _, r := range s.Requires {
		lines = append(lines, r.String())
	}
	if s.Run != nil {
		lines = append(lines, s.Run.String())
	}
	if s.Settle > 0 {
		lines = append(lines, "settle "+duration(s.Settle))
	}
	for _, a := range s.Asserts {
		lines = append(lines, a.String())
	}
	for _, m := range s.Metrics {
		lines = append(lines, m.String())
	}
	for _, e := range s.Evidence {
		lines = append(lines, e.String())
	}
	for _, x := range s.XFails {
		lines = append(lines, x.String())
	}
	return strings.Join(lines, "\n") + "\n"
}
