package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/runtime"
)

// patient is the running kernel, on which things are tried as trace does them.
type patient struct {
	kernel        *runtime.Kernel
	target        *compiler.Target
	function, arg string // seldom called
}

// trialFunctions are functions with an argument, that one first which is called
// least. A compiler may have inlined one or another.
var trialFunctions = []struct{ name, arg string }{
	{"do_getpgid", "pid"}, {"__set_task_comm", "tsk"}, {"vfs_open", "path"}, {"vfs_read", "count"},
}

func newPatient() (*patient, error) {
	k, err := runtime.OpenKernel()
	if err != nil {
		return nil, err
	}
	var traces []*spec.Trace
	for _, f := range trialFunctions {
		traces = append(traces, parsed(f.name))
	}
	for _, t := range selfTests {
		traces = append(traces, parsed(t.spec))
	}
	target, err := k.Target(compiler.Symbols(traces))
	if err != nil {
		return nil, err
	}
	p := &patient{kernel: k, target: target}
	for _, f := range trialFunctions {
		if _, err := compiler.FindFunction(parsed(f.name), target); err == nil {
			p.function, p.arg = f.name, f.arg
			return p, nil
		}
	}
	return nil, errors.New("this kernel has none of the functions that ksnoop tries things on, such as vfs_read: its BTF or its symbols are not complete")
}

// parsed is a spec of our own.
func parsed(text string) *spec.Trace {
	t, err := spec.Parse(text)
	if err != nil {
		panic(err) // no user has a part in it
	}
	return t
}

// try attaches by a kind what a trial says, and takes it away again.
func (p *patient) try(kind compiler.Kind, text string) (notes []string, err error) {
	switch strings.Count(text, "%s") {
	case 1:
		text = fmt.Sprintf(text, p.function)
	case 2:
		text = fmt.Sprintf(text, p.function, p.arg)
	}
	session, _, err := p.trace(kind, []string{text}, 0)
	if err != nil {
		return nil, err
	}
	return session.Notes(), session.Close()
}

// trialRing is room for the few events of a trial.
const trialRing = 16 << 10

// trace attaches specs by a kind, for one thread or for all.
func (p *patient) trace(kind compiler.Kind, specs []string, tid uint32) (*runtime.Session, *compiler.Unit, error) {
	var traces []*spec.Trace
	for _, text := range specs {
		traces = append(traces, parsed(text))
	}
	plan, err := compiler.ResolveAll(traces, p.target, compiler.Wishes{Attach: kind})
	if err != nil {
		return nil, nil, err
	}
	unit, err := compiler.Compile(plan.Probes, compiler.Options{
		TID: tid, RingBytes: trialRing, Features: p.target.Features, Arch: p.target.Arch,
	})
	if err != nil {
		return nil, nil, err
	}
	session, err := load(unit, p.kernel)
	if err != nil {
		return nil, nil, err
	}
	if _, err := session.Attach(); err != nil {
		session.Close()
		return nil, nil, err
	}
	return session, unit, nil
}

// freed is how long to wait for the memory of the trial before, which the kernel
// frees after a grace period, if it counts.
const freed = 2 * time.Second

// load loads a unit as soon as there is memory for it.
func load(unit *compiler.Unit, k *runtime.Kernel) (*runtime.Session, error) {
	for start := time.Now(); ; time.Sleep(freed / 100) {
		session, err := runtime.Load(unit, k)
		var locked *runtime.LockedMemoryError
		if !errors.As(err, &locked) || time.Since(start) > freed {
			return session, err
		}
	}
}
