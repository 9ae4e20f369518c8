package suite

// Status is what became of an assertion.
type Status uint8

// The statuses.
const (
	Pass Status = iota
	Fail
	Skip
	XFailed // it failed, as was expected
	Error   // inconclusive: neither pass nor fail would be honest
	Timeout // the command ran for too long
)

// statusWords are the statuses by their numbers.
var statusWords = [...]string{Pass: "pass", Fail: "fail", Skip: "skip", XFailed: "xfail", Error: "error", Timeout: "timeout"}

// String returns the word for s.
func (s Status) String() string { return statusWords[s] }

// OK says whether a suite with this status may still pass. A skip does so if
// skips are allowed.
func (s Status) OK(failSkip bool) bool {
	return s == Pass || s == XFailed || s == Skip && !failSkip
}

// RunName is the name of the result of the command.
const RunName = "run"

// Result is the verdict on an assertion, or on the command.
type Result struct {
	Name    string
	Status  Status
	Text    string   // one line: matched 2 of 312, expected never
	Notes   []string // what else was seen, if the status is not [Pass]
	Line    int      // in the probe file; 0: it is not from there
	Seconds float64  // of the command
	Fields  []Field  // for programs
}

// Field is a named value: a string, a bool or a number.
type Field struct {
	Name  string
	Value any
}

// ExpectFailure is the result of an assertion that is expected to fail. If it
// has passed, that is a failure.
func (r Result) ExpectFailure(reason string) Result {
	switch r.Status {
	case Fail:
		r.Status, r.Text = XFailed, reason+": "+r.Text
	case Pass:
		r.Status, r.Text = Fail, "passed, but was expected to fail: "+reason
	}
	return r
}

// The exit statuses of a test. [ExitStatus] chooses among those that results
// can lead to.
const (
	ExitPassed      = 0
	ExitFailed      = 1
	ExitUsage       = 2   // of the command line, or the probe file is wrong
	ExitSkipped     = 4   // every assertion was
	ExitUnavailable = 69  // this kernel cannot do it
	ExitPermission  = 77  // not allowed to
	ExitTimeout     = 124 // the command ran for too long
)

// ExitStatus is the exit status of a test with these results, that of the
// command among them. With failSkip what is skipped counts as failed.
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
