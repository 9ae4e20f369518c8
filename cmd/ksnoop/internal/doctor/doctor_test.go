package doctor

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	goruntime "runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/fixture"
	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/resolve"
	"github.com/ksnoop/ksnoop/kallsyms"
	"github.com/ksnoop/ksnoop/runtime"
)

// rootSurvey returns the survey of a system without restrictions.
func rootSurvey() *runtime.Survey {
	return &runtime.Survey{
		Release: "6.12.107-amd64", Build: "#1 SMP PREEMPT_DYNAMIC",
		Preemption:   runtime.Preemption{Model: "voluntary"},
		Privileges:   runtime.Privileges{BPF: true, Perfmon: true, SysAdmin: true, SysResource: true, Syslog: true, DACReadSearch: true},
		ModuleTypes:  7,
		Settings:     []runtime.Setting{{Name: "kernel.kptr_restrict", Value: "0"}, {Name: "kernel.perf_event_paranoid", Value: "3"}},
		Lockdown:     "none",
		LockedMemory: math.MaxUint64,
	}
}

var newFeatures = compiler.Features{Trampoline: true, TrampolineWords: 12, TrampolineStructs: true, RuntimeAlloc: true, KprobeMulti: true, SessionIsReturn: 1, ReturnsUnlimited: true}

// system returns the rows of a survey other than those of attach kinds.
func system(s *runtime.Survey, f compiler.Features) *diagnosis {
	d := new(diagnosis)
	d.addKernel(s, &trialKernel{target: &compiler.Target{Features: f}})
	d.addUser(s)
	d.addSystem(s)
	return d
}

// TestDoctorWidth verifies that the table fits a terminal.
func TestDoctorWidth(t *testing.T) {
	s := rootSurvey()
	s.Lockdown = ""
	for width := 40; width < 120; width++ {
		for line := range strings.Lines(system(s, newFeatures).text(width)) {
			require.LessOrEqual(t, len(line), width+1, "%d: %s", width, line)
		}
	}
}

func TestDoctorTable(t *testing.T) {
	require.Equal(t, `  kernel                      6.12.107-amd64   #1 SMP PREEMPT_DYNAMIC
  BTF                         /sys/kernel/btf  of vmlinux and 7 modules
  fentry arguments            12 words         structures of up to 16 bytes by value
  kept values                 any number       memory is allocated on use
  preemption                  voluntary        fentry misses no calls of tasks and is preferred
  lockdown                    none

  user                        uid 0
  CAP_BPF                     yes
  CAP_PERFMON                 yes
  CAP_SYS_ADMIN               yes
  CAP_SYSLOG                  yes
  CAP_DAC_READ_SEARCH         yes
  user namespace              initial
  pid namespace               initial
  seccomp                     none
  bpf(2)                      allowed

  kernel.kptr_restrict        0
  kernel.perf_event_paranoid  3
  tracefs                     readable
  debugfs                     readable
  symbol addresses            shown
  fentry in modules           allowed
  ring buffer                 allowed
  locked memory               not counted
`, system(rootSurvey(), newFeatures).text(0))
}

// TestDoctorNotes verifies that each problem has a note on what to do about it.
func TestDoctorNotes(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*runtime.Survey)
		want   string // a row, its columns separated by |
	}{
		{"no types", func(s *runtime.Survey) { s.Types = errors.New("none") }, "BTF|missing|none"},
		{"lazy", func(s *runtime.Survey) { s.Preemption = runtime.Preemption{Model: "lazy", Possible: true} },
			"preemption|lazy|fentry misses calls while another task is preempted inside the program (they are counted): kprobes are preferred"},
		{"not told", func(s *runtime.Survey) { s.Preemption = runtime.Preemption{} },
			"preemption|not known|taken to be voluntary, as only debugfs tells (mounted, as root): fentry is preferred"},
		{"not told, may be lazy", func(s *runtime.Survey) { s.Preemption = runtime.Preemption{Possible: true} },
			"preemption|not known|taken to be lazy, as only debugfs tells (mounted, as root): kprobes are preferred to fentry"},
		{"lockdown", func(s *runtime.Survey) { s.Lockdown = "confidentiality" },
			"lockdown|confidentiality|the kernel's memory may not be read: boot without lockdown=confidentiality"},
		{"no securityfs", func(s *runtime.Survey) { s.Lockdown = "" },
			"lockdown|not known|/sys/kernel/security/lockdown cannot be read: mount -t securityfs securityfs /sys/kernel/security"},
		{"no CAP_PERFMON", func(s *runtime.Survey) { s.Privileges.Perfmon = false }, "CAP_PERFMON|no|needed to read the kernel's memory and to attach"},
		{"user namespace", func(s *runtime.Survey) { s.Privileges.UserNamespace = true },
			"user namespace|own|capabilities in it do not count for BPF: run ksnoop in the initial one"},
		{"pid namespace", func(s *runtime.Survey) { s.Privileges.PIDNamespace = true },
			"pid namespace|own|-p and -t take its ids, and $pid shows those of the initial one: 'grep NSpid /proc/PID/status' there tells both"},
		{"seccomp", func(s *runtime.Survey) { s.Privileges.Seccomp, s.Privileges.Refused = true, true },
			"bpf(2)|refused|it has the capabilities, but a seccomp filter refuses bpf(2): let the container's profile allow bpf and perf_event_open"},
		{"paranoid", func(s *runtime.Survey) { s.Privileges.SysAdmin = false },
			"kernel.perf_event_paranoid|3|kprobes and kretprobes take CAP_SYS_ADMIN: sysctl kernel.perf_event_paranoid=2"},
		{"addresses", func(s *runtime.Survey) { s.Settings[0].Value = "2" },
			"kernel.kptr_restrict|2|symbols have no addresses, for root neither: sysctl kernel.kptr_restrict=1"},
		{"addresses for others", func(s *runtime.Survey) { s.Settings[0].Value, s.Privileges.Syslog = "1", false },
			"kernel.kptr_restrict|1|symbols have addresses with CAP_SYSLOG only"},
		{"unreadable setting", func(s *runtime.Survey) {
			s.Settings[0] = runtime.Setting{Name: "kernel.kptr_restrict", Err: os.ErrNotExist}
		},
			"kernel.kptr_restrict|not known|it is not there"},
		{"no procfs", func(s *runtime.Survey) { s.Ring = fmt.Errorf("make a ring buffer: %w", os.ErrNotExist) },
			"ring buffer|not known|mount -t proc proc /proc"},
		{"no ring buffer", func(s *runtime.Survey) { s.Ring = errors.New("the kernel does not permit it") },
			"ring buffer|not allowed|the kernel does not permit it"},
		{"ftrace", func(s *runtime.Survey) { s.Settings[0] = runtime.Setting{Name: "kernel.ftrace_enabled", Value: "0"} },
			"kernel.ftrace_enabled|0|no function can be attached to: sysctl kernel.ftrace_enabled=1"},
		{"no tracefs", func(s *runtime.Survey) { s.Tracefs = os.ErrNotExist },
			"tracefs|not readable|mount -t tracefs tracefs /sys/kernel/tracing: kretprobes follow as few calls at once as the kernel's default, and globs are slow"},
		{"root's debugfs", func(s *runtime.Survey) { s.Debugfs = os.ErrPermission },
			"debugfs|not readable|root may, and CAP_DAC_READ_SEARCH: the preemption model is not known"},
		{"hidden", func(s *runtime.Survey) { s.Addresses = kallsyms.ErrHidden },
			"symbol addresses|not shown|add CAP_SYSLOG and set kernel.kptr_restrict to 1 or 0"},
		{"modules", func(s *runtime.Survey) { s.Modules = "why" }, "fentry in modules|not usable|why"},
		{"locked memory", func(s *runtime.Survey) { s.CountsLocked, s.LockedMemory = true, 64<<10 },
			"locked memory|64 KiB|maps count against it before Linux 5.11: raise it (ulimit -l unlimited), or give ksnoop CAP_SYS_RESOURCE"},
		{"unlimited", func(s *runtime.Survey) { s.CountsLocked = true }, "locked memory|unlimited|"},
	} {
		s := rootSurvey()
		tc.change(s)
		var rows []string
		for _, c := range system(s, newFeatures).checks {
			rows = append(rows, c.name+"|"+c.state+"|"+c.note)
		}
		require.Contains(t, rows, tc.want, tc.name)
	}
}

// TestTrialRefusals verifies that kinds that a kernel or a user lacks are not tried.
func TestTrialRefusals(t *testing.T) {
	able := func() *trialKernel { return &trialKernel{target: &compiler.Target{Features: newFeatures}} }
	for _, tc := range []struct {
		name   string
		kind   compiler.Kind
		change func(*runtime.Survey, *trialKernel)
		want   string
	}{
		{"no types", compiler.Fentry, func(s *runtime.Survey, _ *trialKernel) { s.Types = errors.New("this kernel has no types") }, "this kernel has no types"},
		{"no trampolines", compiler.Fexit, func(_ *runtime.Survey, p *trialKernel) { p.target.Features.Trampoline = false }, "this kernel has no fexit: cure"},
		{"no links", compiler.KprobeMulti, func(_ *runtime.Survey, p *trialKernel) { p.target.Features.KprobeMulti = false }, "this kernel has no kprobe.multi: cure"},
		{"no sessions", compiler.KprobeSession, func(_ *runtime.Survey, p *trialKernel) { p.target.Features.SessionIsReturn = 0 }, "this kernel has no kprobe.session: cure"},
		{"off", compiler.Kretprobe, func(s *runtime.Survey, _ *trialKernel) {
			s.Settings = []runtime.Setting{{Name: "kprobes/enabled", Value: "0"}}
		}, "kprobes see no calls: echo 1 > /sys/kernel/debug/kprobes/enabled"},
	} {
		s, p := rootSurvey(), able()
		tc.change(s, p)
		_, refusal := trial(s, p, tc.kind, "", "", "cure")
		require.Equal(t, tc.want, refusal, tc.name)
	}
}

// TestDoctorUnusable verifies that without types nothing can be traced, and that the
// last line tells why.
func TestDoctorUnusable(t *testing.T) {
	s := rootSurvey()
	s.Types = errors.New("this kernel has no types: get one that has")
	d := new(diagnosis)
	d.addAttach(s, nil)
	require.False(t, d.usable)
	require.Equal(t, "nothing can be traced: this kernel has no types: get one that has", d.reason)
	require.Equal(t, len(trials), strings.Count(d.text(0), notUsable))
	d.addSelfTest(nil)
	require.Equal(t, len(trials), strings.Count(d.text(0), "not tried"))
	require.False(t, d.failed)
}

// TestDoctorCan verifies that the last line tells what the usable kinds can trace.
func TestDoctorCan(t *testing.T) {
	for _, tc := range []struct {
		kinds []compiler.Kind
		want  string
	}{
		{nil, ""},
		{[]compiler.Kind{compiler.TpBTF}, "what can be traced here: tracepoints only"},
		{[]compiler.Kind{compiler.Fentry, compiler.Fexit, compiler.TpBTF}, "what can be traced here: functions, with what they return, and tracepoints"},
		{[]compiler.Kind{compiler.Kprobe, compiler.Kretprobe}, "what can be traced here: functions, with what they return, but no tracepoints"},
		{[]compiler.Kind{compiler.Kprobe, compiler.TpBTF}, "what can be traced here: functions, without what they return, and tracepoints"},
		{[]compiler.Kind{compiler.KprobeMulti}, "what can be traced here: functions only, without what they return"},
		{[]compiler.Kind{compiler.KprobeSession}, "what can be traced here: what functions return only"},
	} {
		d := new(diagnosis)
		for _, trial := range trials {
			state := notUsable
			if slices.Contains(tc.kinds, trial.kind) {
				state = usable
			}
			d.add("attach", string(trial.kind), state, "")
		}
		require.Equal(t, tc.want, d.can())
		if tc.want != "" {
			require.True(t, strings.HasSuffix(d.text(0), "\n\n"+tc.want+"\n"), d.text(0))
		}
	}
}

func TestDoctorJSON(t *testing.T) {
	d := system(rootSurvey(), newFeatures)
	d.add("attach", "fentry", notUsable, "a \"reason\"\x1b")
	var got struct {
		Type    string
		Version int
		Usable  bool
		Checks  []struct{ Group, Name, State, Note string }
	}
	text := d.json("v1")
	require.NoError(t, json.Unmarshal(text, &got))
	require.NoError(t, fixture.Schema(t, "doctor").Lines(string(text)))
	require.Equal(t, 1, bytes.Count(text, []byte("\n")))
	require.Equal(t, "doctor", got.Type)
	require.Equal(t, 1, got.Version)
	require.Len(t, got.Checks, len(d.checks))
	last := got.Checks[len(got.Checks)-1]
	require.Equal(t, "a \"reason\"\x1b", last.Note)
	require.NotContains(t, string(text), "\x1b")
}

func TestReasonOf(t *testing.T) {
	f := &compiler.Function{Name: "f"}
	for want, err := range map[string]error{
		"kernel.x is 3: change it": &resolve.KindError{Kind: compiler.Kprobe, Func: f, Why: "kernel.x is 3: change it"},
		"there is no hook":         errors.Join(&runtime.AttachError{Probe: &compiler.Probe{Func: f}, Err: errors.New("there is no hook")}, errors.New("more")),
		"no memory":                fmt.Errorf("load: %w", &runtime.LoadError{Err: errors.New("no memory")}),
		"this kernel has none":     errors.New("this kernel has none"),
	} {
		require.Equal(t, want, reasonOf(err))
	}
}

// TestDifferences verifies that every difference is reported, and nothing else.
func TestDifferences(t *testing.T) {
	want := [][]string{{"1", `"a"`}, {"-2", `"b"`}}
	require.Empty(t, differences("f(x)", want, [][]string{{"1", `"a"`}, {"-2", `"b"`}}))
	require.Equal(t, []string{"f(x): there were 2 calls, and 1 events came"}, differences("f(x)", want, want[:1]))
	require.Equal(t, []string{"f(x): event 2 has 1 values instead of 2"}, differences("f(x)", want, [][]string{{"1", `"a"`}, {"-2"}}))
	require.Equal(t, []string{
		`f(x): value 2 of event 1: expected "a", got NULL pointer`,
		`f(x): value 1 of event 2: expected -2, got 4294967294`,
	}, differences("f(x)", want, [][]string{{"1", "NULL pointer"}, {"4294967294", `"b"`}}))
}

// TestSubject verifies that the thread's calls return what it reports, and that the
// thread ends.
func TestSubject(t *testing.T) {
	s := &subject{calls: make(chan func() error), errs: make(chan error)}
	require.Equal(t, -2, open("/nowhere/at all"))
	require.Positive(t, open("/proc/version"))
	s.tid, s.outcome = 77, []int{5, -2}
	require.Equal(t, [][]string{{"5"}, {"-2"}}, s.results())
	require.Equal(t, [][]string{{"-100", "5"}, {"-100", "-2"}}, s.shortCalls())
	how, flags := "0080"+"0a00"+strings.Repeat("0", 40), "688128"
	if goruntime.GOARCH == "arm64" {
		how, flags = "0080"+"0c00"+strings.Repeat("0", 40), "819200"
	}
	require.Equal(t, [][]string{
		{"-100", `"/proc/version"`, flags, how}, {"-100", `"/proc/ksnoop/self-test"`, flags, how},
	}, s.opens())
	require.Equal(t, [][]string{
		{"-100", `"/proc/version"`, flags, "5"}, {"-100", `"/proc/ksnoop/self-test"`, flags, "-2"},
	}, s.wholeCalls())
	require.Equal(t, [][]string{{"77", "6b736e6f6f70206265666f7265000000", `"ksnoop after"`}}, s.renames())
}
