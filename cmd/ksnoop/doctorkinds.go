package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/runtime"
)

// withFprobe is what kernels without kprobe.multi lack.
const withFprobe = "it takes Linux %s or later with CONFIG_FPROBE"

// trials are what takes each attach kind: items of a function, or a tracepoint.
var trials = []struct {
	kind, force compiler.Kind
	spec        string
	without     string // what a kernel without the kind lacks
}{
	{compiler.Fentry, compiler.Fentry, "%s(%s)", "it takes Linux 5.5 or later with CONFIG_DYNAMIC_FTRACE_WITH_DIRECT_CALLS"},
	{compiler.Fexit, compiler.Fentry, "%s(return)", "it takes Linux 5.5 or later with CONFIG_DYNAMIC_FTRACE_WITH_DIRECT_CALLS"},
	{compiler.Kprobe, compiler.Kprobe, "%s(%s)", ""},
	{compiler.Kretprobe, compiler.Kprobe, "%s(return)", ""},
	{compiler.KprobeMulti, compiler.KprobeMulti, "%s(%s)", fmt.Sprintf(withFprobe, "5.18")},
	{compiler.KretprobeMulti, compiler.KprobeMulti, "%s(return)", fmt.Sprintf(withFprobe, "5.18")},
	{compiler.Session, compiler.Session, "%s(%s, return)", fmt.Sprintf(withFprobe, "6.10")},
	{compiler.TpBTF, "", "tp:task_rename($arg1)", ""},
}

// addAttach tries every attach kind.
func (d *diagnosis) addAttach(s *runtime.Survey, p *patient) {
	for _, t := range trials {
		notes, refusal := trial(s, p, t.kind, t.force, t.spec, t.without)
		if refusal == "" {
			d.add("attach", string(t.kind), usable, strings.Join(notes, "; "))
			d.usable = true
			continue
		}
		if d.reason == "" {
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

// trial tries one kind. refusal is why it cannot be used; notes are what to know
// where it can.
func trial(s *runtime.Survey, p *patient, kind, force compiler.Kind, spec, without string) (notes []string, refusal string) {
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
		return nil, withoutObject(split(err)[0].Error())
	}
	f := p.target.Features
	switch {
	case (kind == compiler.Fentry || kind == compiler.Fexit) && f.Preemptible:
		notes = append(notes, "misses calls while another task is preempted inside the program, and counts them")
	case (kind == compiler.KretprobeMulti || kind == compiler.Session) && !f.ReturnsUnlimited:
		notes = append(notes, "misses calls where many are under way at once, and counts them: the kernel follows any number since Linux 6.14")
	}
	return notes, ""
}

// settingOff is the note on a setting that switches something off; "": it does
// not.
func settingOff(s *runtime.Survey, name string) string {
	for _, setting := range s.Settings {
		if setting.Name == name {
			return settingNote(setting, s.Privileges)
		}
	}
	return ""
}

// lacks says whether the kernel has no such links.
func lacks(f compiler.Features, kind compiler.Kind) bool {
	switch kind {
	case compiler.Fentry, compiler.Fexit:
		return !f.Trampoline
	case compiler.KprobeMulti, compiler.KretprobeMulti:
		return !f.KprobeMulti
	case compiler.Session:
		return f.SessionIsReturn == 0
	}
	return false
}

// withoutObject takes from a sentence what was tried, which is not the user's.
func withoutObject(text string) string {
	if rest, ok := strings.CutPrefix(text, "attach "); ok {
		_, rest, ok = strings.Cut(rest, ": ")
		if ok {
			return rest
		}
	}
	for _, prefix := range []string{"load the programs: the kernel does not permit it: ", "load the programs: "} {
		if rest, ok := strings.CutPrefix(text, prefix); ok {
			return rest
		}
	}
	return text
}

// kindStates is the attach kinds of the diagnosis, with their states.
func (d *diagnosis) kindStates() []*check {
	return slices.DeleteFunc(slices.Clone(d.checks), func(c *check) bool { return c.group != "attach" })
}
