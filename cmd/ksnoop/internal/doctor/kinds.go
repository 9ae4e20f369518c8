package doctor

import (
	"errors"
	"fmt"
	goruntime "runtime"
	"slices"
	"strings"

	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/exit"
	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/runtime"
)

// withDirectCalls and withFprobe are the notes for kernels without fentry, and
// without kprobe.multi, which came to arm64 later than to amd64.
const (
	withDirectCalls = "it takes Linux %s or later with CONFIG_DYNAMIC_FTRACE_WITH_DIRECT_CALLS"
	withFprobe      = "it takes Linux %s or later with CONFIG_FPROBE"
)

// trials are the specs that try each attach kind. The first %s stands for a function,
// the second for its argument.
var trials = []struct {
	kind, force compiler.Kind
	spec        string
	without     string // note for a kernel without the kind, with room for a version
	since       string // the versions of amd64 and arm64
}{
	{compiler.Fentry, compiler.Fentry, "%s(%s)", withDirectCalls, "5.5 6.4"},
	{compiler.Fexit, compiler.Fentry, "%s(return)", withDirectCalls, "5.5 6.4"},
	{compiler.Kprobe, compiler.Kprobe, "%s(%s)", "", ""},
	{compiler.Kretprobe, compiler.Kprobe, "%s(return)", "", ""},
	{compiler.KprobeMulti, compiler.KprobeMulti, "%s(%s)", withFprobe, "5.18 6.14"},
	{compiler.KretprobeMulti, compiler.KprobeMulti, "%s(return)", withFprobe, "5.18 6.14"},
	{compiler.KprobeSession, compiler.KprobeSession, "%s(%s, return)", withFprobe, "6.10 6.14"},
	{compiler.TpBTF, "", "tp:task_rename($arg1)", "", ""},
}

// addAttach tries every attach kind.
func (d *diagnosis) addAttach(s *runtime.Survey, p *trialKernel) {
	for _, t := range trials {
		without := t.without
		if without != "" {
			without = fmt.Sprintf(without, sinceHere(t.since))
		}
		notes, refusal := trial(s, p, t.kind, t.force, t.spec, without)
		if refusal == "" {
			d.add("attach", string(t.kind), usable, strings.Join(notes, "; "))
			d.usable = true
			continue
		}
		if d.reason == "" || refusal == s.Privileges.Refusal() { // the user can change that
			d.reason = "nothing can be traced: " + refusal
		}
		if refusal == s.Privileges.Refusal() {
			refusal = "not permitted to this user: see there"
		}
		d.add("attach", string(t.kind), notUsable, refusal)
	}
	if d.usable {
		d.reason = ""
	}
}

// sinceHere returns the version of this architecture.
func sinceHere(versions string) string {
	amd64, arm64, _ := strings.Cut(versions, " ")
	if goruntime.GOARCH == "arm64" {
		return arm64
	}
	return amd64
}

// trial tries one kind. refusal is why it cannot be used; notes are remarks if it
// can.
func trial(s *runtime.Survey, p *trialKernel, kind, force compiler.Kind, spec, without string) (notes []string, refusal string) {
	perf := kind == compiler.Kprobe || kind == compiler.Kretprobe
	switch off := settingOff(s, "kprobes/enabled"); {
	case s.Types != nil:
		return nil, s.Types.Error()
	case lacks(p.target.Features, kind):
		return nil, fmt.Sprintf("this kernel has no %s: %s", kind, without)
	case perf && off != "":
		return nil, off
	}
	notes, err := p.try(force, spec)
	if err != nil {
		return nil, reasonOf(err)
	}
	f := p.target.Features
	switch {
	case (kind == compiler.Fentry || kind == compiler.Fexit) && f.Preemptible:
		notes = append(notes, "misses calls while another task is preempted inside the program, and counts them")
	case (kind == compiler.KretprobeMulti || kind == compiler.KprobeSession) && !f.ReturnsUnlimited:
		notes = append(notes, "misses calls where many are active at once, and counts them: the kernel follows any number since Linux 6.14")
	}
	return notes, ""
}

// settingOff returns the note on a setting that disables something, or "" if it does
// not.
func settingOff(s *runtime.Survey, name string) string {
	for _, setting := range s.Settings {
		if setting.Name == name {
			return settingNote(setting, s.Privileges)
		}
	}
	return ""
}

// lacks reports whether the kernel has no links of this kind.
func lacks(f compiler.Features, kind compiler.Kind) bool {
	switch kind {
	case compiler.Fentry, compiler.Fexit:
		return !f.Trampoline
	case compiler.KprobeMulti, compiler.KretprobeMulti:
		return !f.KprobeMulti
	case compiler.KprobeSession:
		return f.SessionIsReturn == 0
	}
	return false
}

// reasonOf returns why something failed, without the name of what was tried, as the
// user did not ask for it.
func reasonOf(err error) string {
	err = exit.Split(err)[0]
	var explained interface{ Reason() string }
	if errors.As(err, &explained) {
		return explained.Reason()
	}
	return err.Error()
}

// can returns what can be traced with the usable attach kinds, or "" for nothing.
func (d *diagnosis) can() string {
	var entries, returns, tracepoints bool
	for _, c := range d.kindStates() {
		if c.state != usable {
			continue
		}
		switch compiler.Kind(c.name) {
		case compiler.Fentry, compiler.Kprobe, compiler.KprobeMulti:
			entries = true
		case compiler.Fexit, compiler.Kretprobe, compiler.KretprobeMulti, compiler.KprobeSession:
			returns = true
		case compiler.TpBTF:
			tracepoints = true
		}
	}
	const here = "what can be traced here: "
	switch {
	case entries && returns && tracepoints:
		return here + "functions, with what they return, and tracepoints"
	case entries && returns:
		return here + "functions, with what they return, but no tracepoints"
	case entries && tracepoints:
		return here + "functions, without what they return, and tracepoints"
	case entries:
		return here + "functions only, without what they return"
	case tracepoints:
		return here + "tracepoints only"
	case returns:
		return here + "what functions return only"
	}
	return ""
}

// kindStates returns the findings of the attach kinds.
func (d *diagnosis) kindStates() []*finding {
	return slices.DeleteFunc(slices.Clone(d.checks), func(c *finding) bool { return c.group != "attach" })
}
