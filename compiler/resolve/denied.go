package resolve

import (
	"fmt"

	"github.com/cilium/ebpf/btf"

	"github.com/ksnoop/ksnoop/compiler"
)

// neverReturns has the functions that the kernel declares noreturn and that are
// in BTF. From 6.16 on, trampolines refuse fexit there; a return probe never
// fires.
var neverReturns = map[string]bool{
	"do_exit":                       true,
	"do_group_exit":                 true,
	"__x64_sys_exit":                true,
	"__x64_sys_exit_group":          true,
	"__arm64_sys_exit":              true,
	"__arm64_sys_exit_group":        true,
	"__ia32_sys_exit":               true,
	"__ia32_sys_exit_group":         true,
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

// noTrampoline has the functions that the verifier denies to tracing programs
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

// endless has the functions and tracepoints that the kernel may come to at the end of a
// program, in rcu_read_unlock. A trampoline or a tracepoint would run the program again
// there, and so on until the kernel's stack is full: seen as a panic of Linux 7.2. Kprobes are
// not run within themselves.
var endless = map[string]bool{
	"rcu_read_unlock_special":   true,
	"raise_softirq_irqoff":      true,
	"__raise_softirq_irqoff":    true,
	"__trace_set_need_resched":  true,
	"sched_set_need_resched_tp": true, // since 6.17
}

const endlessReason = "the kernel may come to it at the end of a program, and would run the program again, without end"

// contextWords is the number of context words that the verifier lets a
// trampoline program read: the argument words, then the result
// (MAX_BPF_FUNC_ARGS in include/linux/bpf.h).
const contextWords = 12

// refusal returns the reason why fn cannot have a trampoline, or "".
func refusal(fn *compiler.Function, f compiler.Features) string {
	switch {
	case !f.Trampoline:
		return "this kernel has no BPF trampolines"
	case fn.Module != "" && f.NoModules != "":
		return f.NoModules
	case noTrampoline[fn.Name]:
		return "the kernel denies this function to fentry"
	case endless[fn.Name]:
		return endlessReason
	case fn.Type.Name != fn.Symbol:
		return "BTF has no function of this name"
	case indexedWrong(fn.Name):
		return "its name cannot be looked up for fentry"
	case fn.Copies > 1:
		return fmt.Sprintf("its name is in BTF %d times", fn.Copies)
	case len(fn.Addrs) > 0:
		return "fentry takes a name, and several functions have this one"
	case fn.Variadic:
		return "fentry refuses a variable number of arguments"
	case fn.Result != nil && isStructure(fn.Result.Type):
		return "fentry refuses functions that return " + structureName(fn.Result.Type)
	case fn.Result != nil && fn.Result.Size > 8: // the caller would get something else for the upper half
		return fmt.Sprintf("fentry passes on only 8 bytes of the result, which has %d", fn.Result.Size)
	}
	for _, p := range fn.Params {
		switch {
		case p.Copy != nil:
			size, _ := btf.Sizeof(p.Copy) // Place has checked the size
			return fmt.Sprintf("fentry refuses argument %s, which is %s of %d bytes by value", p.Name, structureName(p.Copy), size)
		case p.Size == 0:
			return fmt.Sprintf("fentry refuses argument %s, which has no size", p.Name)
		case !isStructure(p.Type):
			if p.Size > 8 {
				return fmt.Sprintf("fentry refuses argument %s of %d bytes", p.Name, p.Size)
			}
		case compiler.IsUnion(p.Type): // btf_distill_func_proto in kernel/bpf/btf.c
			return fmt.Sprintf("fentry refuses argument %s, which is %s by value", p.Name, structureName(p.Type))
		case !f.TrampolineStructs:
			return fmt.Sprintf("this kernel's fentry refuses argument %s, which is %s by value", p.Name, structureName(p.Type))
		case p.Size > 16:
			return fmt.Sprintf("fentry refuses argument %s, which is %s of %d bytes by value", p.Name, structureName(p.Type), p.Size)
		}
	}
	n := fn.Words()
	if n > f.TrampolineWords {
		return fmt.Sprintf("its arguments take %d registers and stack words, and this kernel's fentry takes %d", n, f.TrampolineWords)
	}
	if n == contextWords && fn.Result != nil {
		return fmt.Sprintf("behind arguments of %d registers and stack words fexit does not reach the result", n)
	}
	return ""
}
