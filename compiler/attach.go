package compiler

import "fmt"

// Kind is an attach kind.
type Kind string

// The attach kinds.
const (
	Fentry    Kind = "fentry"
	Fexit     Kind = "fexit"
	Kprobe    Kind = "kprobe"
	Kretprobe Kind = "kretprobe"
)

// trampoline says whether programs of this kind run in a trampoline, with the
// arguments as their context.
func (k Kind) trampoline() bool { return k == Fentry || k == Fexit }

// Attach is how a function is traced, and why.
type Attach struct {
	Entry, Return Kind
	Reason        string
	// ReturnInstances is what a kretprobe asks for, see
	// [Features].ReturnInstances.
	ReturnInstances int
}

// neverReturns is the functions that the kernel declares noreturn and that BTF
// has. Trampolines refuse fexit there from 6.16 on; a return probe never fires.
var neverReturns = map[string]bool{
	"do_exit":                       true,
	"do_group_exit":                 true,
	"make_task_dead":                true,
	"__module_put_and_kthread_exit": true,
	"kthread_exit":                  true,
	"kthread_complete_and_exit":     true,
	"rewind_stack_and_make_dead":    true,
	"x86_64_start_kernel":           true,
	"x86_64_start_reservations":     true,
	"panic":                         true,
	"nmi_panic_self_stop":           true,
	"machine_real_restart":          true,
	"cpu_startup_entry":             true,
	"start_kernel":                  true,
	"arch_call_rest_init":           true,
}

// noTrampoline is the functions that the verifier denies to tracing programs
// (btf_id_deny in kernel/bpf/verifier.c).
var noTrampoline = map[string]bool{
	"migrate_disable":        true,
	"migrate_enable":         true,
	"rcu_read_unlock_strict": true,
	"preempt_count_add":      true,
	"preempt_count_sub":      true,
	"__rcu_read_lock":        true,
	"__rcu_read_unlock":      true,
}

// chooseAttach takes the cheapest kind that loses no calls and that the
// function's signature allows.
func chooseAttach(p *Probe, f Features) Attach {
	if why := refusal(p.Func, f); why != "" {
		return Attach{Entry: Kprobe, Return: Kretprobe, Reason: why, ReturnInstances: f.ReturnInstances}
	}
	return Attach{Entry: Fentry, Return: Fexit, Reason: "the cheapest kind, and the signature allows it"}
}

// refusal is the reason not to put a trampoline on fn; "" if there is none.
func refusal(fn *Function, f Features) string {
	switch {
	case !f.Trampoline:
		return "this kernel has no BPF trampolines"
	case noTrampoline[fn.Name]:
		return "the kernel denies this function to fentry"
	case fn.Copies > 1:
		return fmt.Sprintf("its name is in BTF %d times", fn.Copies)
	case fn.Variadic:
		return "fentry refuses a variable number of arguments"
	case fn.Result != nil && isRecord(fn.Result.Type):
		return "fentry refuses functions that return " + recordName(fn.Result.Type)
	}
	for _, p := range fn.Params {
		switch {
		case !isRecord(p.Type):
			if p.Size > 8 {
				return fmt.Sprintf("fentry refuses argument %s of %d bytes", p.Name, p.Size)
			}
		case !f.TrampolineStructs:
			return fmt.Sprintf("this kernel's fentry refuses argument %s, which is %s by value", p.Name, recordName(p.Type))
		case p.Size > 16:
			return fmt.Sprintf("fentry refuses argument %s, which is %s of %d bytes by value", p.Name, recordName(p.Type), p.Size)
		}
	}
	if n := fn.words(); n > f.TrampolineWords {
		return fmt.Sprintf("its arguments take %d registers and stack words, and this kernel's fentry takes %d", n, f.TrampolineWords)
	}
	if f.Preemptible {
		return "this kernel preempts tasks inside fentry programs, and hits would be lost"
	}
	return ""
}
