package spec

// Term is a word or a form of the language, with its meaning.
type Term struct {
	Form  string `json:"form"`
	Means string `json:"means"`
}

// Language describes the language for programs, in the members that docs/help.schema.json
// names. docs/spec.md describes all of it; TestLanguage verifies that nothing is missing
// here.
var Language = struct {
	Grammar    []string `json:"grammar"`
	Points     []Term   `json:"points"`
	Values     []Term   `json:"values"`
	Builtins   []Term   `json:"builtins"`
	Formats    []Term   `json:"formats"`
	Comparison []Term   `json:"comparisons"`
	Operators  []Term   `json:"operators"`
	Constants  []Term   `json:"constants"`
	Aggregates []Term   `json:"aggregates"`
	Examples   []Term   `json:"examples"`
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
	Points: []Term{
		{"vfs_read", "a function of the kernel, or of any module"},
		{"ext4:ext4_sync_file", "a function of a module"},
		{"tcp_*", "all functions that match a glob and have the values of the list"},
		{"tp:sched_switch", "a tracepoint"},
		{"iter:task", "all objects of an iterator, once, as they are now"},
		{"tp:block_rq_issue(rq) => tp:block_rq_complete($duration) on rq", "a span: from one point to another with the same key"},
	},
	Values: []Term{
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
	Builtins: []Term{
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
	Formats: []Term{
		{"x", "hexadecimal"}, {"d", "decimal, signed"}, {"u", "decimal, unsigned"}, {"c", "a character"},
		{"string", "a string of the kernel behind the pointer"}, {"ustring", "a string of the process behind the pointer"},
		{"symbol", "the name of the function or variable at the address"}, {"path", "the path of a struct path, file or dentry"},
		{"ip", "an address of IPv4 or IPv6, by its length"}, {"ip4", "an address of IPv4"}, {"ip6", "an address of IPv6"},
		{"mac", "an address of Ethernet"}, {"errno", "the name of an error number"}, {"be", "a number in the byte order of the network"},
		{"x8", "8 bits, hexadecimal"}, {"x16", "16 bits, hexadecimal"}, {"x32", "32 bits, hexadecimal"}, {"x64", "64 bits, hexadecimal"},
		{"u8", "8 bits, unsigned"}, {"u16", "16 bits, unsigned"}, {"u32", "32 bits, unsigned"}, {"u64", "64 bits, unsigned"},
		{"s8", "8 bits, signed"}, {"s16", "16 bits, signed"}, {"s32", "32 bits, signed"}, {"s64", "64 bits, signed"},
	},
	Comparison: []Term{
		{"==", "equal"}, {"!=", "not equal"}, {"<", "less"}, {"<=", "less or equal"}, {">", "greater"}, {">=", "greater or equal"},
		{"&", "with a constant: has one of its bits"}, {"~", "matches a glob"}, {"is-err", "is an error pointer, as IS_ERR has it"},
	},
	Operators: []Term{
		{"+", "plus"}, {"-", "minus"}, {"*", "times"}, {"&", "bits that both have"}, {"|", "bits that one has"},
		{"<<", "shifted to the left"}, {">>", "shifted to the right"},
	},
	Constants: []Term{
		{"10", "decimal"}, {"0x1f", "hexadecimal"}, {"0o17", "octal"}, {"64K", "65536; k, M and G, too"}, {"'a'", "a character"},
		{"\"eth0\"", "a string; with ~ a glob"}, {"-EINTR", "an error number by its name"}, {"NULL", "a pointer to nothing"},
		{"true", "a bool; false, too"}, {"10ms", "a time, for $duration; ns, us and s, too"}, {"PIDTYPE_PID", "an enumerator of the value's type"},
	},
	Aggregates: []Term{
		{"count()", "the number of calls"}, {"sum(count)", "a sum"}, {"avg(count)", "the mean"}, {"min(count)", "the least value"},
		{"max(count)", "the greatest value"}, {"hist(count)", "a histogram by powers of two"}, {"lhist(count, 0, 4096, 512)", "a histogram: from, to, width of a bucket"},
	},
	Examples: []Term{
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
