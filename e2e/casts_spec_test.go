//go:build linux

package e2e

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/cilium/ebpf/btf"
	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/resolve"
	"github.com/ksnoop/ksnoop/compiler/spec"
)

// A caster writes random specs of real functions and tracepoints. Most of their
// values have casts. Not all specs are valid.
type caster struct {
	rnd         *rand.Rand
	target      *compiler.Target
	functions   []string
	tracepoints []string
}

// numberTypes lists number types that values are cast to.
var numberTypes = []string{
	"s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64", "char", "_Bool", "int", "unsigned int", "long", "unsigned long", "short",
	"signed char", "size_t", "pid_t",
}

var castFormats = []string{"x", "d", "u", "s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64", "x8", "x16", "x32", "x64", "be", "symbol", "string", "ustring", "ip4", "ip6", "ip", "mac", "errno"}

// pointerTypes lists pointer types that values are cast to.
var pointerTypes = []string{"struct task_struct *", "struct inode *", "u32 *", "void *", "char *", "u8 **", "struct list_head *", "struct file *", "struct dentry *", "struct path *"}

// spec writes a spec and returns it with the measure for its calls.
func (c *caster) spec() (string, compiler.Measure) {
	switch c.rnd.IntN(12) {
	case 0:
		return c.line(), compiler.NoMeasure
	case 1, 2:
		return fmt.Sprintf("%s => %s on %s", c.of(c.point()), c.of(c.point()), c.pick(spanKeys)), compiler.NoMeasure
	}
	return c.of(c.point()), compiler.Measure(c.rnd.IntN(2) * c.rnd.IntN(5))
}

// spanKeys are keys that all points have.
var spanKeys = []string{"$tid", "$cpu", "($pid << 8 | $cpu)", "$task"}

// point picks a function or a tracepoint.
func (c *caster) point() string {
	if c.rnd.IntN(10) == 0 {
		return "tp:" + c.pick(c.tracepoints)
	}
	return c.pick(c.functions)
}

func (c *caster) pick(from []string) string { return from[c.rnd.IntN(len(from))] }

// of writes a spec of a function or a tracepoint. It returns only the name if
// the function cannot be traced.
func (c *caster) of(name string) string {
	values := c.values(name)
	if len(values) == 0 {
		return name
	}
	var items []string
	for range 1 + c.rnd.IntN(4) {
		item := c.item(values)
		if c.rnd.IntN(2) == 0 {
			item += c.comparison(values)
		}
		items = append(items, item)
	}
	if c.rnd.IntN(5) == 0 {
		items = append(items[c.rnd.IntN(2):], c.pick(keyParts))
		for range 1 + c.rnd.IntN(3) {
			items = append(items, c.aggregate(values))
		}
	}
	text := fmt.Sprintf("%s(%s)", name, strings.Join(items, ", "))
	if c.rnd.IntN(3) == 0 {
		text += " if " + c.condition(values, 2)
	}
	return text
}

// values lists what a spec can use of a function: its arguments and its result.
func (c *caster) values(name string) (values []compiler.Param) {
	trace, err := spec.Parse(name)
	if err != nil {
		return nil
	}
	fn, err := resolve.FindFunction(trace, c.target)
	if err != nil {
		return nil
	}
	values = slices.Clone(fn.Params)
	if fn.Result != nil && !fn.Tracepoint {
		values = append(values, *fn.Result)
	}
	return values
}

func (c *caster) condition(values []compiler.Param, depth int) string {
	switch n := c.rnd.IntN(6); {
	case depth == 0 || n < 2:
		return c.item(values) + c.comparison(values)
	case n == 2:
		return "!(" + c.condition(values, depth-1) + ")"
	case n < 5:
		return fmt.Sprintf("(%s && %s)", c.condition(values, depth-1), c.condition(values, depth-1))
	}
	return fmt.Sprintf("(%s || %s)", c.condition(values, depth-1), c.condition(values, depth-1))
}

// keyParts are parts of keys that all points have.
var keyParts = []string{"$comm", "$kstack", "$task->real_parent->comm", "$ppid", "$pid"}

// aggregate writes an aggregate of a value, or of calls.
func (c *caster) aggregate(values []compiler.Param) string {
	switch name := c.pick(spec.Aggregates); name {
	case "count":
		return "count()"
	case "lhist":
		return fmt.Sprintf("lhist(%s, 1, %d, 3)", c.value(values), 4+c.rnd.IntN(100))
	default:
		return name + "(" + c.value(values) + ")"
	}
}

// value writes a value with casts.
func (c *caster) value(values []compiler.Param) string {
	v := values[c.rnd.IntN(len(values))]
	return c.cast(c.walk(v.Name, v.Type))
}

// item writes a value with casts and a format.
func (c *caster) item(values []compiler.Param) string {
	if v := values[c.rnd.IntN(len(values))]; c.rnd.IntN(15) == 0 {
		return fmt.Sprintf("((struct %s *)%s):path", c.pick([]string{"file", "dentry", "path"}), v.Name)
	}
	if c.rnd.IntN(25) == 0 {
		return "$ustack"
	}
	text := c.value(values)
	if c.rnd.IntN(4) == 0 {
		text = c.computed(text, values)
	}
	if c.rnd.IntN(6) == 0 {
		text = c.pick([]string{"after(", "diff("}) + text + ")"
	}
	if c.rnd.IntN(5) == 0 {
		text += ":" + c.pick(castFormats)
	}
	return text
}

// computed writes what is computed of a value, and of another one or a number.
func (c *caster) computed(text string, values []compiler.Param) string {
	other := c.pick([]string{"1", "3", "12", "0xff", "4K", "0x123456789a"})
	if c.rnd.IntN(2) == 0 {
		other = c.value(values)
	}
	return fmt.Sprintf("(%s %s %s)", text, c.pick([]string{"+", "-", "*", "&", "|", "<<", ">>"}), other)
}

// walk appends accesses to members and to what pointers point to.
func (c *caster) walk(text string, t btf.Type) (string, btf.Type) {
	for range c.rnd.IntN(5) {
		op := "."
		if ptr, ok := btf.As[*btf.Pointer](t); ok {
			op, t = "->", ptr.Target
		}
		var members []btf.Member
		switch r := btf.UnderlyingType(t).(type) {
		case *btf.Struct:
			members = r.Members
		case *btf.Union:
			members = r.Members
		case *btf.Array:
			if r.Nelems > 0 {
				text, t = fmt.Sprintf("%s[%d]", text, c.rnd.IntN(int(r.Nelems))), r.Type
				continue
			}
		}
		members = slices.DeleteFunc(slices.Clone(members), func(m btf.Member) bool { return m.Name == "" })
		if len(members) == 0 {
			return text, t
		}
		m := members[c.rnd.IntN(len(members))]
		text, t = text+op+m.Name, m.Type
	}
	return text, t
}

// cast writes up to three casts before a value, and an access through the last
// one.
func (c *caster) cast(text string, t btf.Type) string {
	_, pointer := btf.As[*btf.Pointer](t)
	for range c.rnd.IntN(4) {
		if pointer && c.rnd.IntN(3) == 0 {
			text = fmt.Sprintf("((%s)%s)", c.pick(pointerTypes), text)
			if c.rnd.IntN(3) == 0 {
				text += fmt.Sprintf("[%d]", c.rnd.IntN(3))
			}
			continue
		}
		text = fmt.Sprintf("((%s)%s)", c.pick(numberTypes), text)
		pointer = pointer && strings.Contains(text, "64)")
	}
	return text
}

// comparison writes a comparison with one of the values or a constant. Many constants fit
// all types.
func (c *caster) comparison(values []compiler.Param) string {
	if c.rnd.IntN(12) == 0 {
		return c.pick([]string{" == NULL", " != NULL", " is-err", ` == "ext4"`, ` ~ "e*[0-9]"`})
	}
	op := c.pick([]string{"==", "!=", "<", "<=", ">", ">=", "&"})
	if len(values) > 0 && c.rnd.IntN(5) == 0 {
		return fmt.Sprintf(" %s %s", op, c.value(values))
	}
	return fmt.Sprintf(" %s %s", op, c.pick([]string{"1", "2", "100", "-1", "-100", "0x7f", "300", "70000", "0x7fffffff", "0x123456789a", "0"}))
}

// line writes a line for kprobe_events.
func (c *caster) line() string {
	name := c.pick(c.functions)
	n := len(c.values(name))
	if n == 0 {
		return name
	}
	kind, fetch := "p", func() string { return fmt.Sprintf("$arg%d", 1+c.rnd.IntN(n)) }
	if c.rnd.IntN(4) == 0 {
		kind, fetch = "r", func() string { return "$retval" }
	}
	types := []string{"s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64", "x8", "x16", "x32", "x64", "char", "symbol", "b5@3/64", "b8@8/16"}
	var text strings.Builder
	fmt.Fprintf(&text, "%s %s", kind, name)
	fields := 1 + c.rnd.IntN(4)
	for i := range fields {
		value := fetch()
		if c.rnd.IntN(4) == 0 {
			value = fmt.Sprintf("+%d(%s)", 8*c.rnd.IntN(20), value)
		}
		fmt.Fprintf(&text, " v%d=%s:%s", i, value, c.pick(types))
	}
	if c.rnd.IntN(2) == 0 {
		fmt.Fprintf(&text, " if v%d%s", c.rnd.IntN(fields), c.comparison(nil))
	}
	return text.String()
}
