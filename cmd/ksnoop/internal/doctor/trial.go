package doctor

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/codegen"
	"github.com/ksnoop/ksnoop/compiler/resolve"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/runtime"
)

// trialKernel attaches throw-away probes to the running kernel, to learn which attach
// kinds work.
type trialKernel struct {
	kernel        *runtime.Kernel
	target        *compiler.Target
	function, arg string // a function that is seldom called, and its argument
}

// trialFunctions are functions with an argument and a result, the one that is
// called least first. A compiler may have inlined some of them.
var trialFunctions = []struct{ name, arg string }{
	{"do_getpgid", "pid"}, {"vfs_fsync_range", "file"}, {"vfs_open", "path"}, {"vfs_read", "count"},
}

func newTrialKernel() (*trialKernel, error) {
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
	target, err := k.Target(resolve.Symbols(traces))
	if err != nil {
		return nil, err
	}
	p := &trialKernel{kernel: k, target: target}
	for _, f := range trialFunctions {
		if _, err := resolve.FindFunction(parsed(f.name), target); err == nil {
			p.function, p.arg = f.name, f.arg
			return p, nil
		}
	}
	return nil, errors.New("this kernel has none of the functions that ksnoop tries things on, such as vfs_read: its BTF or its symbols are not complete")
}

// parsed parses a spec of this package.
func parsed(text string) *spec.Trace {
	t, err := spec.Parse(text)
	if err != nil {
		panic(err) // no user input is involved
	}
	return t
}

// try attaches the spec text by a kind, and detaches it again.
func (p *trialKernel) try(kind compiler.Kind, text string) (notes []string, err error) {
	switch strings.Count(text, "%s") {
	case 1:
		text = fmt.Sprintf(text, p.function)
	case 2:
		text = fmt.Sprintf(text, p.function, p.arg)
	}
	session, err := p.trace(kind, []string{text}, 0)
	if err != nil {
		return nil, err
	}
	return session.Notes(), session.Close()
}

// trialRing is the size in bytes of the ring buffer for the few events of a trial.
const trialRing = 16 << 10

// trace attaches specs by a kind, for one thread or for all.
func (p *trialKernel) trace(kind compiler.Kind, specs []string, tid uint32) (*runtime.Session, error) {
	var traces []*spec.Trace
	for _, text := range specs {
		traces = append(traces, parsed(text))
	}
	plan, err := resolve.All(traces, p.target, resolve.Wishes{Attach: kind})
	if err != nil {
		return nil, err
	}
	unit, err := codegen.Compile(plan.Probes, compiler.Options{TID: tid, RingBytes: trialRing})
	if err != nil {
		return nil, err
	}
	session, err := load(unit, p.kernel)
	if err != nil {
		return nil, err
	}
	if _, err := session.Attach(); err != nil {
		session.Close()
		return nil, err
	}
	return session, nil
}

// freed is how long to wait for the memory of the previous trial. Where memory
// counts against a limit, the kernel frees it after a grace period.
const freed = 2 * time.Second

// load loads a unit as soon as there is enough memory for it.
func load(unit *compiler.Unit, k *runtime.Kernel) (*runtime.Session, error) {
	for start := time.Now(); ; time.Sleep(freed / 100) {
		session, err := runtime.Load(unit, k)
		var locked *runtime.LockedMemoryError
		if !errors.As(err, &locked) || time.Since(start) > freed {
			return session, err
		}
	}
}
