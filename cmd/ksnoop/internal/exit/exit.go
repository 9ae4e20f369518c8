// Package exit has the exit statuses of ksnoop, and the errors that stand for them.
package exit

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"

	"github.com/ksnoop/ksnoop/compiler/spec"
)

// Exit statuses. Those above 100 are the same as a shell's.
const (
	Failure       = 1                             // at run time
	Usage         = 2                             // a wrong command line or spec
	NotExecutable = 126                           // a command exists, but cannot run
	NotFound      = 127                           // a command does not exist
	Signal        = 128                           // plus the number of the signal that ended a command
	Pipe          = Signal + int(syscall.SIGPIPE) // the reader of stdout is gone
)

// StatusError ends ksnoop with its own status.
type StatusError struct {
	Status int
	Reason error // nil to print nothing
}

func (e StatusError) Error() string {
	if e.Reason == nil {
		return fmt.Sprintf("the command has ended with status %d", e.Status)
	}
	return e.Reason.Error()
}

// usageError is a mistake on the command line.
type usageError struct {
	error
	hint string // the end of its text
}

// Usagef returns an error for a mistake on the command line. The text after the last
// colon of the format is the hint.
func Usagef(format string, args ...any) error {
	e := usageError{error: fmt.Errorf(format, args...)}
	if at := strings.LastIndex(format, ": "); at >= 0 && !strings.HasSuffix(format, ": %w") {
		e.hint = fmt.Sprintf(format[at+2:], args[strings.Count(format[:at], "%"):]...)
	}
	return e
}

// Misuse marks an error as a mistake on the command line.
func Misuse(err error) error { return usageError{error: err} }

// Hint returns the end of the text of an error that says how to correct the command
// line, or "" if it has none.
func Hint(err error) string {
	var usage usageError
	errors.As(err, &usage)
	return usage.hint
}

// IsUsage reports whether an error is a mistake on the command line or in a spec.
func IsUsage(err error) bool {
	var usage usageError
	var inSpec *spec.Error
	return errors.As(err, &usage) || errors.As(err, &inSpec)
}

// UnknownName returns the error for a value that is not one of the names that an
// option takes.
func UnknownName(option, name string, names []string) error {
	version := strings.ContainsAny(name, "0123456789") // one that is spelled nearly the same need not be near
	if near, ok := spec.Nearest(name, slices.Values(names)); ok && !version {
		return Usagef("%s is %q: did you mean %q? it must be %s", option, name, near, OrList(names))
	}
	return Usagef("%s is %q: it must be %s", option, name, OrList(names))
}

// OrList joins two or more names with commas and "or".
func OrList(names []string) string {
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// Split returns the errors that err joins.
func Split(err error) []error {
	marked := err
	if usage, ok := err.(usageError); ok {
		marked = usage.error
	}
	joined, ok := marked.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var errs []error
	for _, e := range joined.Unwrap() {
		errs = append(errs, Split(e)...)
	}
	return errs
}
