package runtime

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// VerifierError says that the kernel's verifier refused a program. ksnoop made
// the program, so it is a bug of ksnoop. %+v prints all that a report of the
// bug needs: see [VerifierError.Report].
type VerifierError struct {
	Program string              // its name in the unit's collection
	Listing string              // the program, with the source of each step
	Err     *ebpf.VerifierError // with the verifier's log
}

func (e *VerifierError) Error() string {
	return fmt.Sprintf("load %s: the kernel's verifier refused the program, which is a bug of ksnoop: %v", e.Program, e.Err)
}

func (e *VerifierError) Unwrap() error { return e.Err }

// Report is the error, the program and the verifier's whole log.
func (e *VerifierError) Report() string {
	return fmt.Sprintf("%v\n\n%s\n%+v\n", e, e.Listing, e.Err)
}

// Format prints the report for %+v.
func (e *VerifierError) Format(f fmt.State, verb rune) {
	if verb == 'v' && f.Flag('+') {
		io.WriteString(f, e.Report())
		return
	}
	io.WriteString(f, e.Error())
}

// loadError explains why a collection could not be loaded, where maps may take
// a limit of memory, to a process with these privileges.
func loadError(c *ebpf.CollectionSpec, err error, limit uint64, p Privileges) error {
	var refused *ebpf.VerifierError
	switch {
	case errors.As(err, &refused) && refusedByLockdown(refused.Log):
		return fmt.Errorf("load the programs: %w", errLockdown)
	case errors.As(err, &refused) && len(refused.Log) > 0:
		name := refusedProgram(c, err)
		e := &VerifierError{Program: name, Err: refused}
		if p := c.Programs[name]; p != nil {
			e.Listing = fmt.Sprint(p.Instructions)
		}
		return e
	case errors.Is(err, unix.EPERM):
		if why := p.Refusal(); why != "" {
			return errors.New("load the programs: the kernel does not permit it: " + why)
		}
		if limit < math.MaxUint64 {
			return &LockedMemoryError{limit}
		}
		return errors.New("load the programs: the kernel does not permit it, though ksnoop has CAP_BPF and CAP_PERFMON: its lockdown or a security module must allow it")
	case errors.Is(err, unix.ENOMEM):
		return noMemory(c, err)
	}
	return fmt.Errorf("load the programs: %w", err)
}

// refusedProgram is the program that an error of cilium's is about, whose text
// alone says which.
func refusedProgram(c *ebpf.CollectionSpec, err error) string {
	for name := range c.Programs {
		if strings.HasPrefix(err.Error(), "program "+name+": ") {
			return name
		}
	}
	return "the programs"
}
