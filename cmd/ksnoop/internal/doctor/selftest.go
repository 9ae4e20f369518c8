package doctor

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/ksnoop/ksnoop/btfdump"
	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/runtime"
	"github.com/ksnoop/ksnoop/runtime/render"
)

// Specs of the self-test: numbers, memory behind a pointer, a whole structure,
// an array of characters, and strings of the kernel and of the process.
const (
	openEntry  = "do_sys_openat2(dfd, filename:ustring, how->flags, how)"
	openReturn = "do_sys_openat2(return)"
	openCall   = "do_sys_openat2(dfd < 0, filename:ustring, how->flags, return)"
	openShort  = "do_sys_openat2(dfd < 0, return)" // what it needs of the entry is in registers
	nameEntry  = "__set_task_comm(tsk->pid, tsk->comm, buf:string)"
	nameTrace  = "tp:task_rename($arg1->pid, $arg1->comm, $arg2:string)"
)

// selfTests are the specs that are traced by each attach kind, with the calls that
// they must show.
var selfTests = []struct {
	kind, force compiler.Kind
	spec        string
	want        func(*subject) [][]string
}{
	{compiler.Fentry, compiler.Fentry, openEntry, (*subject).opens},
	{compiler.Fentry, compiler.Fentry, nameEntry, (*subject).renames},
	{compiler.Fexit, compiler.Fentry, openReturn, (*subject).results},
	{compiler.Fexit, compiler.Fentry, openShort, (*subject).shortCalls},
	{compiler.Kprobe, compiler.Kprobe, openEntry, (*subject).opens},
	{compiler.Kprobe, compiler.Kprobe, nameEntry, (*subject).renames},
	{compiler.Kretprobe, compiler.Kprobe, openReturn, (*subject).results},
	{compiler.Kretprobe, compiler.Kprobe, openCall, (*subject).wholeCalls},
	{compiler.KprobeMulti, compiler.KprobeMulti, openEntry, (*subject).opens},
	{compiler.KprobeMulti, compiler.KprobeMulti, nameEntry, (*subject).renames},
	{compiler.KretprobeMulti, compiler.KprobeMulti, openReturn, (*subject).results},
	{compiler.KretprobeMulti, compiler.KprobeMulti, openCall, (*subject).wholeCalls},
	{compiler.KprobeSession, compiler.KprobeSession, openCall, (*subject).wholeCalls},
	{compiler.TpBTF, "", nameTrace, (*subject).renames},
}

// addSelfTest traces known calls by each usable attach kind.
func (d *diagnosis) addSelfTest(p *trialKernel) {
	for _, kind := range d.kindStates() {
		if kind.state == usable {
			d.testKind(p, compiler.Kind(kind.name))
		} else {
			d.add("self-test", kind.name, "not tried", "it is not usable")
		}
	}
}

// testKind runs all tests of an attach kind.
func (d *diagnosis) testKind(p *trialKernel, kind compiler.Kind) {
	wrong, notes, err := p.test(kind)
	var missing *spec.Error // for a function that this kernel lacks
	var locked *runtime.LockedMemoryError
	switch {
	case errors.As(err, &missing):
		d.add("self-test", string(kind), "not tried", missing.Msg)
		return
	case errors.As(err, &locked):
		d.add("self-test", string(kind), "not tried", reasonOf(err))
		return
	case err != nil:
		wrong = append(wrong, reasonOf(err))
	}
	if len(wrong) == 0 {
		d.add("self-test", string(kind), "ok", strings.Join(notes, "; "))
		return
	}
	d.add("self-test", string(kind), "failed", strings.Join(append(wrong, notes...), "; "))
	d.failed, d.reason = true, "the self-test failed, which is a bug of ksnoop or of the kernel: please report the table"
}

// test traces all specs of a kind while a subject makes its calls. It returns how
// the events differ from the wanted ones, and the misses that the kernel or the
// programs counted.
func (p *trialKernel) test(kind compiler.Kind) (wrong, notes []string, err error) {
	s, err := newSubject()
	if err != nil {
		return nil, nil, err
	}
	defer s.end()
	var specs []string
	var force compiler.Kind
	for _, t := range selfTests {
		if t.kind == kind {
			specs, force = append(specs, t.spec), t.force
		}
	}
	session, err := p.trace(force, specs, s.tid)
	if err != nil {
		return nil, nil, err
	}
	defer session.Close()
	if err := s.act(); err != nil {
		return nil, nil, err
	}
	got, err := readEvents(session, s.tid)
	if err != nil {
		return nil, nil, err
	}
	for _, t := range selfTests {
		if t.kind == kind {
			wrong = append(wrong, differences(t.spec, t.want(s), got[t.spec])...)
		}
	}
	a, err := session.Counts()
	if err != nil {
		return nil, nil, err
	}
	return wrong, render.Losses(a, false), nil
}

// readEvents returns the values of all events, by spec.
func readEvents(session *runtime.Session, tid uint32) (map[string][][]string, error) {
	all := map[string][][]string{}
	if err := session.Stop(); err != nil {
		return nil, err
	}
	var ev runtime.Event
	for {
		err := session.Read(&ev)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		if ev.TID != tid {
			return nil, fmt.Errorf("an event is of thread %d instead of %d", ev.TID, tid)
		}
		var values []string
		for i := range ev.Values {
			values = append(values, plainValue(&ev.Values[i]))
		}
		text := ev.Probe.Trace.Text
		all[text] = append(all[text], values)
	}
}

// plainValue returns a value in the notation of the self-test's wanted values.
func plainValue(v *runtime.Value) string {
	switch {
	case v.Fault != compiler.NoFault:
		return v.Reason()
	case v.Text != compiler.NoText:
		return string(btfdump.AppendString(nil, v.Data))
	case v.Pointee == nil && v.Scalar != nil:
		return strconv.FormatInt(v.Int64(), 10)
	}
	return fmt.Sprintf("%x", v.Data)
}

// differences compares the wanted values of a spec's events with the recorded ones.
func differences(text string, want, got [][]string) []string {
	if len(want) != len(got) {
		return []string{fmt.Sprintf("%s: there were %d calls, and %d events came", text, len(want), len(got))}
	}
	var all []string
	for i := range want {
		if len(want[i]) != len(got[i]) {
			all = append(all, fmt.Sprintf("%s: event %d has %d values instead of %d", text, i+1, len(got[i]), len(want[i])))
			continue
		}
		for j, w := range want[i] {
			if g := got[i][j]; g != w {
				all = append(all, fmt.Sprintf("%s: value %d of event %d: expected %s, got %s", text, j+1, i+1, w, g))
			}
		}
	}
	return all
}
