package main

import (
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/ksnoop/ksnoop/btfdump"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/exit"
)

// helpVersion changes if a member of the description changes its meaning.
const helpVersion = 1

// helpObject describes ksnoop for programs, by docs/help.schema.json.
type helpObject struct {
	Type     string             `json:"type"`
	Version  int                `json:"version"`
	Ksnoop   btfdump.JSONString `json:"ksnoop"`
	Commands []commandObject    `json:"commands"`
	Options  []optionObject     `json:"options"` // of all commands
	Statuses []statusObject     `json:"statuses"`
	Language any                `json:"language,omitempty"`
}

type commandObject struct {
	Name        string         `json:"name"`
	Usage       string         `json:"usage"`
	Operands    string         `json:"operands"`
	Description string         `json:"description"`
	Options     []optionObject `json:"options"`
}

type optionObject struct {
	Name     string `json:"name"`
	Short    string `json:"short,omitempty"`
	Value    string `json:"value,omitempty"` // its name; "" if the option takes none
	Usage    string `json:"usage"`
	Default  string `json:"default,omitempty"`
	Category string `json:"category,omitempty"`
	Repeats  bool   `json:"repeats,omitempty"` // it may be given several times
}

type statusObject struct {
	Status int    `json:"status"`
	Means  string `json:"means"`
}

// newHelpObject describes a command, the language if the topic is spec, or everything.
func newHelpObject(app *cli.App, topic string) *helpObject {
	o := &helpObject{
		Type: "help", Version: helpVersion, Ksnoop: btfdump.JSONString(app.Version),
		Commands: []commandObject{}, Options: optionObjects(app.Flags), Statuses: statuses,
	}
	for _, c := range app.VisibleCommands() {
		if topic == "" || topic == c.Name {
			o.Commands = append(o.Commands, commandObject{c.Name, c.Usage, c.ArgsUsage, c.Description, optionObjects(c.VisibleFlags())})
		}
	}
	if topic == "" || topic == "spec" {
		o.Language = language
	}
	return o
}

func optionObjects(flags []cli.Flag) []optionObject {
	all := []optionObject{}
	for _, f := range flags {
		names := f.Names()
		documented := f.(cli.DocGenerationFlag)
		o := optionObject{Name: names[0], Default: documented.GetValue(), Category: f.(cli.CategorizableFlag).GetCategory()}
		if len(names) > 1 {
			o.Short = names[1]
		}
		o.Value, o.Usage = valueParts(documented.GetUsage())
		if o.Value == "" && takesValue(f) {
			o.Value = "VALUE"
		}
		if f, ok := f.(valued); ok {
			o.Repeats = f.value.repeats
		}
		all = append(all, o)
	}
	return all
}

// statuses are the exit statuses.
var statuses = []statusObject{
	{0, "success, also after SIGINT, SIGTERM or SIGHUP; with a command after --, its own status takes the place of 0: 128+N if signal N killed it"},
	{exit.Failure, "tracing or printing failed, an assertion of test is not ok, or a spec of check does not fit"},
	{exit.Usage, "the command line or a spec is wrong"},
	{4, "test has skipped every assertion"},
	{69, "this kernel lacks something that test needs"},
	{77, "test is not permitted"},
	{124, "the command of test took too long"},
	{exit.NotExecutable, "the command after -- cannot be executed"},
	{exit.NotFound, "the command after -- is not there"},
	{exit.Signal + int(syscall.SIGINT), "SIGINT arrived before everything was attached: nothing was traced"},
	{exit.Pipe, "the reader of standard output went away"},
	{exit.Signal + int(syscall.SIGTERM), "SIGTERM arrived before everything was attached: nothing was traced"},
}

// languageTerm is a word or a form of the language, with its meaning.
type languageTerm struct {
	Form  string             `json:"form"`
	Means btfdump.JSONString `json:"means"`
}

// language describes the language for programs. docs/spec.md describes all of it;
// TestLanguage verifies that nothing is missing here.
var language = struct {
	Grammar    []string       `json:"grammar"`
	Points     []languageTerm `json:"points"`
	Values     []languageTerm `json:"values"`
	Builtins   []languageTerm `json:"builtins"`
	Formats    []languageTerm `json:"formats"`
	Comparison []languageTerm `json:"comparisons"`
	Operators  []languageTerm `json:"operators"`
	Constants  []languageTerm `json:"constants"`
	Aggregates []languageTerm `json:"aggregates"`
	Examples   []languageTerm `json:"examples"`
}{
	Grammar: []string{
		"SPEC      = POINT [ '(' [ ITEM { ',' ITEM } ] ')' ] [ 'if' COND ] [ '=>' SPEC 'on' VALUE [ '==' VALUE ] ]",
		"POINT     = [ MODULE ':' ] FUNCTION | 'tp:' TRACEPOINT | 'iter:' ITERATOR",
		"ITEM      = ( VALUE | 'after(' VALUE ')' | 'diff(' VALUE ')' | AGGREGATE ) [ ':' FORMAT ] [ COMPARISON OPERAND ]",
		"COND      = ITEM | COND '&&' COND | COND '||' COND | '!' COND | '(' COND ')'",
		"OPERAND   = CONSTANT | VALUE",
		"VALUE     = [ '*' ] PRIMARY { '->' MEMBER | '.' MEMBER | '[' INDEX [ '..' INDEX ] ']' } | VALUE OPERATOR VALUE",
		"PRIMARY   = ARGUMENT | 'return' | '$' BUILTIN | '@' VARIABLE | '(' TYPE ')' VALUE | '(' VALUE ')'",
		"AGGREGATE = 'count()' | NAME '(' VALUE [ ',' CONSTANT ',' CONSTANT ',' CONSTANT ] ')'",
	},
	Points: []languageTerm{
		{"vfs_read", "a function of the kernel, or of any module"},
		{"ext4:ext4_sync_file", "a function of a module"},
		{"tcp_*", "all functions that match a glob and have the values of the list"},
		{"tp:sched_switch", "a tracepoint"},
		{"iter:task", "all objects of an iterator, once, as they are now"},
		{"tp:block_rq_issue(rq) => tp:block_rq_complete($duration) on rq", "a span: from one point to another with the same key"},
	},
	Values: []languageTerm{
		{"count", "an argument, by its name in the prototype, as it is at entry"},
		{"return", "what the function returns"},
		{"file->f_path.dentry->d_name.name", "a member, through pointers"},
		{"stack[2]", "an element of an array, or behind a pointer"},
		{"stack[0..3]", "some elements, the last one included"},
		{"*pos", "what a pointer points to"},
		{"(struct sock *)sk", "a value with another type"},
		{"@jiffies", "a variable of the kernel"},
		{"after(buf)", "a value read when the function returns"},
		{"diff(sk)", "the members that differ between entry and return; calls that change nothing are not shown"},
	},
	Builtins: []languageTerm{
		{"$comm", "the name of the thread"},
		{"$pid", "the id of the process"},
		{"$tid", "the id of the thread"},
		{"$ppid", "the id of the parent process"},
		{"$uid", "the user of the thread"},
		{"$cpu", "the CPU"},
		{"$cgroup", "the id of the thread's cgroup (v2)"},
		{"$container", "the container that the cgroup belongs to: its name, or its id"},
		{"$task", "the struct task_struct of the thread"},
		{"$arg1", "the first argument, for functions whose arguments have no names; $arg2 and so on"},
		{"$retval", "the same as return"},
		{"$duration", "ns from entry to return, or from the beginning of a span to its end"},
		{"$kstack", "the callers in the kernel"},
		{"$ustack", "the callers in the program"},
	},
	Formats: []languageTerm{
		{"x", "hexadecimal"}, {"d", "decimal, signed"}, {"u", "decimal, unsigned"}, {"c", "a character"},
		{"string", "a string of the kernel behind the pointer"}, {"ustring", "a string of the process behind the pointer"},
		{"symbol", "the name of the function or variable at the address"}, {"path", "the path of a struct path, file or dentry"},
		{"ip", "an address of IPv4 or IPv6, by its length"}, {"ip4", "an address of IPv4"}, {"ip6", "an address of IPv6"},
		{"mac", "an address of Ethernet"}, {"errno", "the name of an error number"}, {"be", "a number in the byte order of the network"},
		{"x8", "8 bits, hexadecimal"}, {"x16", "16 bits, hexadecimal"}, {"x32", "32 bits, hexadecimal"}, {"x64", "64 bits, hexadecimal"},
		{"u8", "8 bits, unsigned"}, {"u16", "16 bits, unsigned"}, {"u32", "32 bits, unsigned"}, {"u64", "64 bits, unsigned"},
		{"s8", "8 bits, signed"}, {"s16", "16 bits, signed"}, {"s32", "32 bits, signed"}, {"s64", "64 bits, signed"},
	},
	Comparison: []languageTerm{
		{"==", "equal"}, {"!=", "not equal"}, {"<", "less"}, {"<=", "less or equal"}, {">", "greater"}, {">=", "greater or equal"},
		{"&", "with a constant: has one of its bits"}, {"~", "matches a glob"}, {"is-err", "is an error pointer, as IS_ERR has it"},
	},
	Operators: []languageTerm{
		{"+", "plus"}, {"-", "minus"}, {"*", "times"}, {"&", "bits that both have"}, {"|", "bits that one has"},
		{"<<", "shifted to the left"}, {">>", "shifted to the right"},
	},
	Constants: []languageTerm{
		{"10", "decimal"}, {"0x1f", "hexadecimal"}, {"0o17", "octal"}, {"64K", "65536; k, M and G, too"}, {"'a'", "a character"},
		{"\"eth0\"", "a string; with ~ a glob"}, {"-EINTR", "an error number by its name"}, {"NULL", "a pointer to nothing"},
		{"true", "a bool; false, too"}, {"10ms", "a time, for $duration; ns, us and s, too"}, {"PIDTYPE_PID", "an enumerator of the value's type"},
	},
	Aggregates: []languageTerm{
		{"count()", "the number of calls"}, {"sum(count)", "a sum"}, {"avg(count)", "the mean"}, {"min(count)", "the least value"},
		{"max(count)", "the greatest value"}, {"hist(count)", "a histogram by powers of two"}, {"lhist(count, 0, 4096, 512)", "a histogram: from, to, width of a bucket"},
	},
	Examples: []languageTerm{
		{"vfs_read", "all arguments and the return value: an event at entry, one at return"},
		{"vfs_read(file->f_flags:x, return < 0)", "only calls that fail, one event each"},
		{"vfs_read(return == -EINTR, $duration)", "an error by its name, and how long the call took"},
		{"vfs_open(path->dentry->d_name.name:string ~ \"*.conf\")", "a pattern for strings"},
		{"vfs_read(count) if count > 4096 || $comm == \"cat\"", "a condition on values that are not shown"},
		{"vfs_read(count) if return != count", "a value compared with another"},
		{"tcp_connect(sk->__sk_common.skc_daddr:ip == \"127.0.0.1\")", "an address"},
		{"kfree($kstack) if $comm ~ \"b*\"", "where it was called from"},
		{"vfs_read($comm, count(), hist($duration)) if return >= 0", "a table: calls and times of each name, at the end of the run"},
		{"tp:block_rq_issue(rq->q->disk->disk_name) => tp:block_rq_complete($duration) on rq", "how long requests take"},
		{"iter:task(task->pid, task->comm) if task->mm", "the threads of processes that there are now"},
	},
}
