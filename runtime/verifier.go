package runtime

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"sort"
	"strings"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/ksnoop/ksnoop/compiler"
)

// VerifierError reports that the kernel's verifier refused a program. ksnoop made
// the program, so it is a bug of ksnoop. %+v prints all that a report of the
// bug needs: see [VerifierError.Report].
type VerifierError struct {
	Program string              // its name in the unit's collection
	Listing string              // the program, with the source of each step
	Err     *ebpf.VerifierError // with the verifier's log
	Probes  []*compiler.Probe   // probes that are not traced without the program
}

// newVerifierError returns the error for a program of a collection; err is package
// ebpf's.
func newVerifierError(c *ebpf.CollectionSpec, name string, err error) *VerifierError {
	e := &VerifierError{Program: name}
	errors.As(err, &e.Err)
	if p := c.Programs[name]; p != nil {
		e.Listing = fmt.Sprint(p.Instructions)
	}
	return e
}

// add adds a probe to those of the error.
func (e *VerifierError) add(p *compiler.Probe) {
	if !slices.Contains(e.Probes, p) {
		e.Probes = append(e.Probes, p)
	}
}

func (e *VerifierError) Error() string {
	return fmt.Sprintf("load %s: the kernel's verifier refused the program, which is a bug of ksnoop: %v", e.Program, e.Err)
}

func (e *VerifierError) Unwrap() error { return e.Err }

// Report returns the error, the program and the verifier's whole log.
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

// LoadError reports that the programs could not be loaded, other than for the
// verifier.
type LoadError struct{ Err error }

func (e *LoadError) Error() string { return "load the programs: " + e.Err.Error() }

func (e *LoadError) Unwrap() error { return e.Err }

// Reason returns why they could not be loaded.
func (e *LoadError) Reason() string {
	if denied := deniedError(""); errors.As(e.Err, &denied) {
		return string(denied)
	}
	return e.Err.Error()
}

// deniedError reports the privileges that the process lacks to load programs.
type deniedError string

func (e deniedError) Error() string { return "the kernel does not permit it: " + string(e) }

// LockedMemoryError is the Err of a [LoadError] if maps take more than the limit of
// locked memory, in bytes. Maps that were detached before may still count: they are
// freed after a grace period.
type LockedMemoryError struct{ Limit uint64 }

func (e *LockedMemoryError) Error() string {
	return fmt.Sprintf("their maps take more than the limit of locked memory, %d KiB, and %s", e.Limit>>10, memlockCure)
}

// loadError returns an error that explains why a collection could not be loaded.
// limit is how many bytes maps may take, and p are the privileges of the process.
func loadError(c *ebpf.CollectionSpec, err error, limit uint64, p Privileges) error {
	var refused *ebpf.VerifierError
	switch {
	case errors.As(err, &refused) && refusedByLockdown(refused.Log):
		return &LoadError{errLockdown}
	case errors.As(err, &refused) && len(refused.Log) > 0:
		return newVerifierError(c, refusedProgram(c, err), err)
	case errors.Is(err, unix.EPERM):
		if why := p.Refusal(); why != "" {
			return &LoadError{deniedError(why)}
		}
		if limit < math.MaxUint64 {
			return &LoadError{&LockedMemoryError{limit}}
		}
		return &LoadError{errors.New("the kernel does not permit it, though ksnoop has CAP_BPF and CAP_PERFMON: its lockdown or a security module must allow it")}
	case errors.Is(err, unix.ENOMEM):
		return noMemory(c, err)
	}
	return &LoadError{err}
}

// refusedProgram returns the name of the program that an error of package ebpf is
// about, which only its text tells.
func refusedProgram(c *ebpf.CollectionSpec, err error) string {
	for name := range c.Programs {
		if strings.HasPrefix(err.Error(), "program "+name+": ") {
			return name
		}
	}
	return "the programs"
}

// Refused returns the verifier's refusals, in the order of the unit's probes. These
// probes are not attached; the others are.
func (s *Session) Refused() []*VerifierError { return s.refused }

// loadAccepted loads what the verifier accepts of a unit that it refused as a whole
// with err. It returns err if nothing would be left to trace: a stack needs all of
// its levels.
func (s *Session) loadAccepted(c *ebpf.CollectionSpec, err error) error {
	if probes := s.unit.Probes(); len(probes) < 2 || probes[0].Chain != nil || !refusedByVerifier(err) {
		return err
	}
	coll, refusals, eachErr := s.kernel.loadEach(c)
	if eachErr != nil {
		return eachErr
	}
	s.refused = s.refusedProbes(refusals)
	needed := len(s.refused) < len(refusals) // the programs that follow processes belong to no probe
	if needed || len(s.accepted()) == 0 {
		coll.Close()
		return err
	}
	s.coll = coll
	return nil
}

// refusedByVerifier reports whether the kernel objects to a program, and not to the
// user.
func refusedByVerifier(err error) bool {
	var refused *ebpf.VerifierError
	return errors.As(err, &refused) && len(refused.Log) > 0 && !refusedByLockdown(refused.Log)
}

// refusedProbes returns an error for each refused program that belongs to a probe.
func (s *Session) refusedProbes(refusals map[string]error) (all []*VerifierError) {
	of := map[string]*VerifierError{}
	for _, at := range s.unit.Attachments {
		for _, place := range at.Places {
			program := at.ProgramAt(place)
			err := refusals[program]
			if err == nil {
				continue
			}
			if of[program] == nil {
				of[program] = newVerifierError(s.unit.Collection, program, err)
				all = append(all, of[program])
			}
			of[program].add(place.Probe)
		}
	}
	index := func(e *VerifierError) int { return slices.Index(s.unit.Probes(), e.Probes[0]) }
	sort.SliceStable(all, func(i, j int) bool { return index(all[i]) < index(all[j]) })
	return all
}

// accepted returns the probes that have no refused program.
func (s *Session) accepted() []*compiler.Probe {
	return slices.DeleteFunc(s.unit.Probes(), func(p *compiler.Probe) bool {
		return slices.ContainsFunc(s.refused, func(e *VerifierError) bool { return slices.Contains(e.Probes, p) })
	})
}
