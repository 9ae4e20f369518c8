package suite

import (
	"time"

	"github.com/ksnoop/ksnoop/compiler/spec"
)

// Suite is a probe file.
type Suite struct {
	File     string
	Name     string
	Requires []*Require // what the kernel must have; else everything is skipped
	Run      *Run       // nil: the command comes from the command line
	Settle   time.Duration
	Asserts  []*Assert
	Metrics  []*Metric
	Evidence []*Evidence
	XFails   []*XFail
}

// Require is something that a kernel must have.
type Require struct {
	Kind RequireKind
	Op   spec.Op // of RequireKernel: how its version compares with Version
	Version
	Record string // of RequireBTF: struct, union, enum or typedef
	Name   string // of RequireFunc and RequireBTF
	From   spec.Source
}

// RequireKind is what kind of thing is required.
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
	Timeout time.Duration // 0: none
	Status  int           // what it must exit with
	From    spec.Source
}

// Spec is what is traced: the first of the traces whose function the kernel has.
// There are several of any-of alone.
type Spec struct {
	AnyOf []*spec.Trace
	// Text is as written, with its quotes, if it is a kprobe_events line.
	Text string
}

// Assert is a condition that must hold of the calls of a function.
type Assert struct {
	Name  string
	Path  []*Spec // one; of -s the functions of a stack, the outermost first
	Other *Spec   // behind ~, for Difference and Ratio
	Condition
	AllowUnreached bool
	Scope          Scope
	From           spec.Source
}

// Metric is a figure that is reported, and cannot fail.
type Metric struct {
	Name  string
	Path  []*Spec // as of [Assert]
	Kind  MetricKind
	Scope Scope
	From  spec.Source
}

// MetricKind is what a metric does with the values or the calls of its spec.
type MetricKind uint8

// The kinds.
const (
	Sum       MetricKind = iota // of the values
	Calls                       // how many: count
	Histogram                   // of the values
)

// Scope is whose calls count.
type Scope uint8

// The scopes.
const (
	System Scope = iota
	Task         // the command and its children
	Cgroup       // the cgroup of the command
)

// Evidence is events that are shown with an assertion or a metric.
type Evidence struct {
	Name string  // of the assertion or the metric
	Path []*Spec // as of [Assert]
	Last int     // so many are kept
	From spec.Source
}

// XFail says where an assertion is expected to fail.
type XFail struct {
	Name    string // of the assertion
	On      XFailOn
	Op      spec.Op // of OnKernel
	Version         // of OnKernel
	Reason  string
	From    spec.Source
}

// XFailOn is where a failure is expected.
type XFailOn uint8

// The places.
const (
	Always   XFailOn = iota
	OnQEMU           // an emulated CPU
	OnKernel         // a kernel of certain versions
)
