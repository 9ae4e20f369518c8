package resolve

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/cilium/ebpf/btf"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
)

// valueHabits maps the words for values in bpftrace, SystemTap and
// kprobe_events to those of specs, which lines of kprobe_events lack.
var valueHabits = map[string]string{
	"return": "return", "ret": "return", "retval": "return", "retvalue": "return", "rv": "return",
	"comm": "$comm", "execname": "$comm", "pid": "$pid", "tgid": "$pid", "tid": "$tid", "cpu": "$cpu", "uid": "$uid",
	"common_pid": "$tid", "common_comm": "$comm", "common_cpu": "$cpu", "COMM": "$comm", "PID": "$pid", "TID": "$tid", "CPU": "$cpu",
	"ppid": "$ppid", "task": "$task", "current": "$task", "curtask": "$task",
	"cgroup": "$cgroup", "kstack": "$kstack", "ustack": "$ustack", "stack": "$kstack", "backtrace": "$kstack", "bt": "$kstack", "duration": "$duration", "latency": "$duration",
}

// valueHabit returns a hint if a name is not an argument but another tracer's word for
// something that has a word here, too, or "".
func (b *binder) valueHabit(name string) string {
	if digits, ok := strings.CutPrefix(name, "arg"); ok {
		if n, err := strconv.Atoi(digits); err == nil && n >= 0 && n < len(b.fn.Params) {
			hint := "arguments are counted from 1: '$arg" + strconv.Itoa(n+1) + "'"
			if unnamed(b.fn) {
				return hint
			}
			return hint + ", or '" + b.fn.Params[n].Name + "'"
		}
	}
	word := valueHabits[name]
	switch {
	case word != "" && !b.knows(word):
		return ""
	case word != "" && b.trace.Line != nil:
		return b.lineWord(word)
	case word == "return":
		return "the return value is 'return'"
	case word != "":
		return "it is written '" + word + "'"
	case name == "args" && len(b.fn.Params) > 0:
		return "arguments are named by themselves: " + strings.Join(paramNames(b.fn), ", ")
	case b.fn.Iterator:
		return "" // what follows is about calls
	case slices.Contains([]string{"nsecs", "elapsed", "timestamp"}, name):
		if b.trace.Line == nil && b.knows("$duration") {
			return "each event has its time; $duration is how long a call took"
		}
		return "each event has its time"
	case slices.Contains([]string{"func", "probe"}, name):
		return "each event has the name of its function"
	case strings.HasPrefix(name, "common_"):
		return "it is a part of tracefs' own records, not of a call"
	}
	return ""
}

// knows reports whether 'return' or a builtin, as written in a spec, is a value at this
// place.
func (b *binder) knows(word string) bool {
	o, err := b.meaning(word)
	return err == nil && !(b.onEntry && o.Side == compiler.AtReturn)
}

func (b *binder) meaning(word string) (operand, error) {
	if name, builtin := strings.CutPrefix(word, "$"); builtin {
		return b.builtin(&spec.Builtin{Name: spec.Ident{Name: name}})
	}
	return b.result(spec.Span{})
}

// lineWord returns a hint for 'return' or a builtin in a kprobe_events line, which has few
// of them.
func (b *binder) lineWord(word string) string {
	line := b.trace.Line
	switch {
	case word == "return" && (line.Return || line.Kind == spec.Fprobe):
		return "the return value is '$retval'"
	case word == "return":
		return "a return probe has it: r " + b.trace.Symbol() + " $retval"
	case word == "$comm":
		return "it is written '$comm'"
	}
	return "a line has no word for it, and a spec has: " + b.trace.Target() + "(" + word + ")"
}

// habit sets the hint of an error about a name that is not an argument but another
// tracer's word for something. It reports whether the name is one.
func (b *binder) habit(err *spec.Error, name string) bool {
	if err.Hint = b.valueHabit(name); err.Hint != "" {
		return true
	}
	meant := b.tracefsField(name)
	if meant != "" {
		_ = err.WithMeant("%s", meant)
	}
	return meant != ""
}

// tracefsField returns the value that is meant by a name such as prev_comm, as tracefs
// calls what the argument prev has in its member comm, or "" if no argument has such a
// member. In an iterator it may be the member alone, as rows are about objects.
func (b *binder) tracefsField(name string) string {
	for i := range b.fn.Params {
		p := &b.fn.Params[i]
		member, ok := strings.CutPrefix(name, p.Name+"_")
		if b.fn.Iterator && !ok {
			member, ok = name, true
		}
		target, points := pointee(p.Type)
		if !ok || !points || p.Name == "" || member == "" {
			continue
		}
		if _, has := compiler.FindMember(target, member); has {
			return p.Name + "->" + member
		}
	}
	return ""
}

// positiveErrno returns an error if the result of a call is compared with an error number
// without a minus sign: functions of the kernel return negative error numbers.
func (b *binder) positiveErrno(item *spec.Item, v *compiler.Value) error {
	c := item.Pred.Const
	n, ok := compiler.Errnos[c.Str]
	if !ok || c.Kind != spec.Name || c.Neg || !b.isResult(v) {
		return nil
	}
	if _, isPointer := btf.As[*btf.Pointer](v.Type); !isPointer && (v.Scalar == nil || !v.Scalar.Signed) {
		return nil
	}
	err := b.errorf(c.At, "%s returns errors as negative numbers, and %s is %d", b.subject(), c.Str, n)
	if b.fn.Tracepoint {
		err = b.errorf(c.At, "'%s' has errors as negative numbers, and %s is %d", v.Name, c.Str, n)
	}
	if item.Pred.Op == spec.Mask {
		return err.WithHint("an error is a whole number, not a bit: %s == -%s", v.Name, c.Str)
	}
	return err.WithMeant("-%s", c.Str)
}

// isResult reports whether a value is the function's result, or the argument ret of
// a tracepoint, perhaps with something added or subtracted.
func (b *binder) isResult(v *compiler.Value) bool {
	if of := v.Base.Of; of != nil {
		return of.Op == spec.Add && b.isResult(of.Y) || (of.Op == spec.Add || of.Op == spec.Sub) && b.isResult(of.X)
	}
	if v.Base.Param == nil || len(v.Path) > 0 {
		return false
	}
	return v.Base.Param == b.fn.Result || b.fn.Tracepoint && v.Base.Param.Name == "ret"
}

// noString returns the error for comparing a string with a value that is not
// one.
func (b *binder) noString(v *compiler.Value, c spec.Constant) error {
	err := b.errorf(c.At, "'%s' is %s, which is not compared with a string", v.Name, kindOf(v))
	size, _ := btf.Sizeof(v.Type)
	a, bad := netip.ParseAddr(c.Str)
	switch {
	case bad != nil || v.Format != "":
	case a.Is4() && size == 4:
		return err.WithHint("an IPv4 address is compared with the format ip4: %s:ip4", v.Name)
	case a.Is6() && size == 16:
		return err.WithHint("an IPv6 address is compared with the format ip6: %s:ip6", v.Name)
	}
	return err
}

// kindOf returns the type of a value for an error message.
func kindOf(v *compiler.Value) string {
	switch {
	case v.Swap:
		return describe(v.Type) + " in network byte order"
	case v.Load != nil && v.Load.IsField() && len(v.Casts) == 0:
		return "a bitfield of " + strconv.Itoa(v.Load.Width()) + " bits (" + describe(v.Type) + ")"
	}
	return describe(v.Type)
}

// userParams has functions and their parameters that point to memory of the process.
// The BTF of most kernels does not tell which they are. All strings that system calls
// get are in that memory: see isUserText.
var userParams = []string{
	"getname filename", "getname_flags filename", "getname_uflags filename", "__getname filename",
	"vfs_read buf", "vfs_write buf", "__vfs_read buf", "new_sync_read buf", "new_sync_write buf",
	"strncpy_from_user src", "strnlen_user str", "strndup_user s", "memdup_user src", "memdup_user_nul src",
	"copy_mount_string data", "kstrtol_from_user s", "kstrtoul_from_user s", "kstrtoint_from_user s",
	"user_path_at name", "user_path_at_empty name", "user_path_create pathname", "user_path_parent path",
	"user_statfs pathname", "user_lpath name", "vfs_statx filename", "vfs_fstatat filename",
	"do_faccessat filename", "do_fchmodat filename", "do_fchownat filename", "do_utimes filename",
	"do_readlinkat pathname", "do_readlinkat buf", "do_mkdirat pathname", "do_mknodat filename", "do_rmdir pathname",
	"do_linkat oldname", "do_linkat newname", "do_symlinkat oldname", "do_symlinkat newname", "do_unlinkat pathname",
	"do_mount dir_name", "vfs_readlink buffer", "page_readlink buffer", "readlink_copy buffer",
	"path_setxattr pathname", "path_setxattr name", "path_getxattr pathname", "path_getxattr name", "path_removexattr pathname", "path_removexattr name",
	"setxattr name", "getxattr name", "removexattr name",
}

// syscallPrefixes are the prefixes of functions that get the arguments of a
// system call unchanged.
var syscallPrefixes = []string{"ksys_", "do_sys_", "__do_sys_", "__do_compat_sys_", "compat_ksys_"}

// isUserText reports whether a value is a pointer to a string in memory of the
// process, as far as types and names tell.
func (b *binder) isUserText(v *compiler.Value) bool {
	ptr, ok := btf.As[*btf.Pointer](v.Type)
	if !ok || !isBytes(ptr.Target) || len(v.Casts) > 0 {
		return false
	}
	if hasTag(v.Type, "user") {
		return true
	}
	p := v.Base.Param
	if p == nil || p == b.fn.Result || len(v.Path) > 0 {
		return false
	}
	isCall := func(prefix string) bool { return strings.HasPrefix(b.fn.Name, prefix) }
	return slices.Contains(userParams, b.fn.Name+" "+p.Name) || slices.ContainsFunc(syscallPrefixes, isCall)
}

// userText returns the error for a string of the process that would be read
// from kernel memory.
func (b *binder) userText(item *spec.Item, v *compiler.Value) error {
	p := item.Pred
	return b.errorf(item.Value.Span(), "'%s' points to user memory, and strings are read from kernel memory", v.Name).
		WithHint("write %s:ustring %s %s (%s:string reads kernel memory anyway)", v.Name, p.Op, p.Const.Text, v.Name)
}

// isBytes reports whether t is a character or another byte.
func isBytes(t btf.Type) bool {
	i, ok := btf.As[*btf.Int](t)
	return ok && i.Size == 1
}
