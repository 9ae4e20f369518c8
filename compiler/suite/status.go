package suite

// Status is the outcome of an assertion.
type Status uint8

// The statuses.
const (
	Pass Status = iota
	Fail
	Skip
	XFailed // failed as expected
	Error   // inconclusive: neither pass nor fail would be honest
	Timeout // the command ran for too long
)

// statusWords has the word for each Status.
var statusWords = [...]string{Pass: "pass", Fail: "fail", Skip: "skip", XFailed: "xfail", Error: "error", Timeout: "timeout"}

// String returns the word for s.
func (s Status) String() string { return statusWords[s] }

// OK reports whether a suite with a result of this status may still pass. With
// failSkip it may not if the status is Skip.
func (s Status) OK(failSkip bool) bool {
	return s == Pass || s == XFailed || s == Skip && !failSkip
}

// RunName is the name of the command's result.
const RunName = "run"

// Result is the verdict on an assertion, or on the command.
type Result struct {
	Name    string
	Status  Status
	Text    string   // one line, such as: matched 2 of 312, expected never
	Notes   []string // diagnostics, if the status is not [Pass]
	Line    int      // in the probe file; 0 if it is not from a file
	Seconds float64  // of the command
	Fields  []Field  // for programs
}

// Field is a named value: a string, a bool or a number.
type Field struct {
	Name  string
	Value any
}

// ExpectFailure returns the result for an assertion that is expected to fail: a
// failure becomes XFailed, and a pass becomes a failure.
func (r Result) ExpectFailure(reason string) Result {
	switch r.Status {
	case Fail:
		r.Status, r.Text = XFailed, reason+": "+r.Text
	case Pass:
		r.Status, r.Text = Fail, "passed, but was expected to fail: "+reason
	}
	return r
}

// The exit statuses of a test. [ExitStatus] returns those that depend on results.
const (
	ExitPassed      = 0
	ExitFailed      = 1
	ExitUsage       = 2   // the command line or the probe file is wrong
	ExitSkipped     = 4   // every assertion was skipped
	ExitUnavailable = 69  // this kernel cannot do what the test needs
	ExitPermission  = 77  // permission denied
	ExitTimeout     = 124 // the command ran for too long
)

// ExitStatus returns the exit status of a test with these results, which include
// that of the command. If failSkip is true, skipped assertions count as failed.
func ExitStatus(results []Result, failSkip bool) int {
	failed, skipped, others := false, 0, 0
	for _, r := range results {
		switch {
		case r.Status == Timeout:
			return ExitTimeout
		case !r.Status.OK(failSkip):
			failed = true
		case r.Name == RunName:
		case r.Status == Skip:
			skipped++
		default:
			others++
		}
	}
	switch {
	case failed:
		return ExitFailed
	case skipped > 0 && others == 0:
		return ExitSkipped
	default:
		return ExitPassed
	}
}
