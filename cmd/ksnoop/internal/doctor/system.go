package doctor

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"os"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/kallsyms"
	"github.com/ksnoop/ksnoop/runtime"
	"github.com/ksnoop/ksnoop/runtime/render"
)

// addKernel adds the kernel's version and types.
func (d *diagnosis) addKernel(s *runtime.Survey, p *trialKernel) {
	d.add("kernel", "kernel", s.Release, s.Build)
	if s.Types != nil {
		d.add("kernel", "BTF", "missing", s.Types.Error())
	} else {
		d.add("kernel", "BTF", "/sys/kernel/btf", fmt.Sprintf("of vmlinux and %d modules", s.ModuleTypes))
		d.addFeatures(p.target.Features)
		if p.kernel != nil && !p.kernel.CountsMissed() {
			d.add("kernel", "missed calls", "not counted", "those of kprobes, before Linux 6.7: by them no assertion can say never")
		}
	}
	d.add("kernel", "preemption", cmp.Or(s.Preemption.Model, "not known"), preemptionNote(s.Preemption))
	if s.Lockdown == "" {
		d.add("kernel", "lockdown", "not known", "/sys/kernel/security/lockdown cannot be read: mount -t securityfs securityfs /sys/kernel/security")
	} else {
		d.add("kernel", "lockdown", s.Lockdown, lockdownNotes[s.Lockdown])
	}
}

// addFeatures adds the features that differ between kernels.
func (d *diagnosis) addFeatures(f compiler.Features) {
	structures := "structures of up to 16 bytes by value"
	if !f.TrampolineStructs {
		structures = "no structures by value"
	}
	if f.Trampoline {
		d.add("kernel", "fentry arguments", fmt.Sprintf("%d words", f.TrampolineWords), structures)
	}
	if f.RuntimeAlloc {
		d.add("kernel", "kept values", "any number", "memory is allocated on use")
	} else {
		d.add("kernel", "kept values", "bounded", "memory is allocated at the start")
	}
}

func preemptionNote(p runtime.Preemption) string {
	switch {
	case p.Model == "" && p.Possible:
		return "taken to be lazy, as only debugfs tells (mounted, as root): kprobes are preferred to fentry"
	case p.Model == "":
		return "taken to be voluntary, as only debugfs tells (mounted, as root): fentry is preferred"
	case p.Possible:
		return "fentry misses calls while another task is preempted inside the program (they are counted): kprobes are preferred"
	}
	return "fentry misses no calls of tasks and is preferred"
}

var lockdownNotes = map[string]string{
	"confidentiality": "the kernel's memory may not be read: boot without lockdown=confidentiality",
}

// addUser adds what the user may do.
func (d *diagnosis) addUser(s *runtime.Survey) {
	p := s.Privileges
	d.add("user", "user", fmt.Sprintf("uid %d", p.UID), p.Refusal())
	for _, c := range []struct {
		name string
		has  bool
		need string
	}{
		{"CAP_BPF", p.BPF, "needed to load programs"},
		{"CAP_PERFMON", p.Perfmon, "needed to read the kernel's memory and to attach"},
		{"CAP_SYS_ADMIN", p.SysAdmin, "for fentry in modules, and for kprobes where kernel.perf_event_paranoid is over 2"},
		{"CAP_SYSLOG", p.Syslog, "for variables and names that several functions have"},
		{"CAP_DAC_READ_SEARCH", p.DACReadSearch, "to read tracefs and debugfs as another user than root"},
	} {
		d.addEither("user", c.name, c.has, "yes", "no", c.need)
	}
	d.addEither("user", "user namespace", !p.UserNamespace, "initial", "own", "capabilities in it do not count for BPF: run ksnoop in the initial one")
	d.addEither("user", "pid namespace", !p.PIDNamespace, "initial", "own",
		"-p and -t take its ids, and $pid shows those of the initial one: 'grep NSpid /proc/PID/status' there tells both")
	d.addEither("user", "seccomp", !p.Seccomp, "none", "filter", "")
	d.addEither("user", "bpf(2)", !p.Refused, "allowed", "refused", p.Refusal())
}

// addEither adds what is good, or else what is bad, with a note on that.
func (d *diagnosis) addEither(group, name string, ok bool, good, bad, note string) {
	if ok {
		d.add(group, name, good, "")
	} else {
		d.add(group, name, bad, note)
	}
}

// addSystem adds what can be changed without another kernel.
func (d *diagnosis) addSystem(s *runtime.Survey) {
	for _, setting := range s.Settings {
		if setting.Err != nil {
			d.add("system", setting.Name, "not known", reason(setting.Name, setting.Err))
			continue
		}
		d.add("system", setting.Name, render.PlainName(setting.Value), settingNote(setting, s.Privileges))
	}
	d.addState("tracefs", "readable", s.Tracefs, "kretprobes follow as few calls at once as the kernel's default, and globs are slow")
	d.addState("debugfs", "readable", s.Debugfs, "the preemption model is not known")
	d.addState("symbol addresses", "shown", s.Addresses, "")
	d.addEither("system", "fentry in modules", s.Modules == "", "allowed", notUsable, s.Modules)
	if errors.Is(s.Ring, os.ErrNotExist) { // package ebpf reads procfs before it makes a map
		d.add("system", "ring buffer", "not known", "mount -t proc proc /proc")
	} else {
		d.addState("ring buffer", "allowed", s.Ring, "")
	}
	switch {
	case !s.CountsLocked:
		d.add("system", "locked memory", "not counted", "")
	case s.LockedMemory == math.MaxUint64:
		d.add("system", "locked memory", "unlimited", "")
	default:
		d.add("system", "locked memory", fmt.Sprintf("%d KiB", s.LockedMemory>>10),
			"maps count against it before Linux 5.11: raise it (ulimit -l unlimited), or give ksnoop CAP_SYS_RESOURCE")
	}
}

// addState adds whether something is available. If not, the note has the reason, and
// without says what that leads to.
func (d *diagnosis) addState(name, good string, err error, without string) {
	if err == nil {
		d.add("system", name, good, "")
		return
	}
	note := reason(name, err)
	if without != "" {
		note += ": " + without
	}
	d.add("system", name, "not "+good, note)
}

// reason returns in a few words why a file cannot be read.
func reason(name string, err error) string {
	mount := map[string]string{"tracefs": "/sys/kernel/tracing", "debugfs": "/sys/kernel/debug"}[name]
	switch {
	case errors.Is(err, os.ErrPermission):
		return "root may, and CAP_DAC_READ_SEARCH"
	case errors.Is(err, os.ErrNotExist) && mount != "":
		return fmt.Sprintf("mount -t %[1]s %[1]s %[2]s", name, mount)
	case errors.Is(err, os.ErrNotExist):
		return "it is not there"
	case errors.Is(err, kallsyms.ErrHidden):
		return "add CAP_SYSLOG and set kernel.kptr_restrict to 1 or 0"
	}
	return err.Error()
}

// settingNote returns what a setting forbids, and what to do about it.
func settingNote(s runtime.Setting, p runtime.Privileges) string {
	switch s.Name + "=" + s.Value {
	case "kernel.ftrace_enabled=0":
		return "no function can be attached to: sysctl kernel.ftrace_enabled=1"
	case "kprobes/enabled=0":
		return "kprobes see no calls: echo 1 > /sys/kernel/debug/kprobes/enabled"
	case "net.core.bpf_jit_enable=0":
		return "programs are interpreted, and fentry cannot be had: sysctl net.core.bpf_jit_enable=1"
	case "kernel.kptr_restrict=2":
		return "symbols have no addresses, for root neither: sysctl kernel.kptr_restrict=1"
	case "kernel.kptr_restrict=1":
		if !p.Syslog {
			return "symbols have addresses with CAP_SYSLOG only"
		}
	}
	if s.Name == "kernel.perf_event_paranoid" && len(s.Value) == 1 && s.Value > "2" && !p.SysAdmin {
		return "kprobes and kretprobes take CAP_SYS_ADMIN: sysctl kernel.perf_event_paranoid=2"
	}
	return ""
}
