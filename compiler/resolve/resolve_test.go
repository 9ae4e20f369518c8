package resolve

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/compilertest"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/kallsyms"
)

// TestMixedSigns verifies which comparisons have a note that a negative number counts
// as a large one.
func TestMixedSigns(t *testing.T) {
	const note = "in '%s' a negative '%s' counts as a large number, as in C: (s64)%s compares it as what it is"
	for text, want := range map[string]string{
		"read(return > count)":             fmt.Sprintf(note, "return > count", "return", "count"),
		"read(count >= return)":            fmt.Sprintf(note, "count >= return", "return", "count"),
		"read(return < count + 1)":         fmt.Sprintf(note, "return < count + 1", "return", "(count + 1)"),
		"read if !(return + 1 <= count)":   fmt.Sprintf(note, "!(return + 1 <= count)", "return + 1", "count"),
		"re*(return > count)":              fmt.Sprintf(note, "return > count", "return", "count"),
		"read(return != count)":            "",
		"read(return < (s64)count)":        "",
		"read(return < 5, count > 5)":      "",
		"read((return & 15) > count)":      "",
		"read(buf->len > count)":           "",
		"read(buf->len > return)":          "",
		"open(dfd > dfd * 2)":              "",
		"read(buf < buf->dev, count == 1)": "",
	} {
		trace, err := spec.Parse(text)
		require.NoError(t, err)
		plan, err := All([]*spec.Trace{trace}, compilertest.NewTarget(t, compilertest.WithKprobeSession), Wishes{})
		require.NoError(t, err, text)
		require.Equal(t, want, strings.Join(plan.Notes, "\n"), text)
	}
}

// TestChainOfNoReturn verifies that a function that never returns can only be the last
// one of a chain.
func TestChainOfNoReturn(t *testing.T) {
	for specs, want := range map[[2]string]string{
		{"do_exit", "read"}: "do_exit does not return, so that it can only be the last one of a chain\n",
		{"tp:tick", "read"}: "tick does not return, so that it can only be the last one of a chain\n",
		{"read", "do_exit"}: "",
		{"read", "tp:tick"}: "",
	} {
		_, err := All(compilertest.ParseAll(t, specs[0], specs[1]), compilertest.NewTarget(t, compilertest.WithKprobeSession), Wishes{Chain: true})
		if want == "" {
			require.NoError(t, err, specs)
		} else {
			require.ErrorContains(t, err, want, specs)
		}
	}
}

// TestRefusals verifies the errors for specs that do not fit the kernel.
func TestRefusals(t *testing.T) {
	for _, tc := range []struct{ spec, at, want, hint string }{
		{"read(after(count))", "after(count)", "'count' is passed by value, and no call can change it", "leave out the 'after'"},
		{"read(after(count + 1))", "after(count + 1)", "'count + 1' is passed by value, and no call can change it", "leave out the 'after'"},
		{"read(after(return))", "after(return)", "'return' is known at return only", "leave out the 'after'"},
		{"read(after($duration))", "after($duration)", "'$duration' is known at return only", "leave out the 'after'"},
		{"read(after($pid))", "after($pid)", "'$pid' is the thread that makes the call, and no call can change it", "leave out the 'after'"},
		{"read(after($kstack))", "after($kstack)", "'$kstack' is where the function was called from, and no call can change it", "leave out the 'after'"},
		{"read(after(buf) != NULL)", "after(buf) != NULL", "'after(buf) != NULL' compares the pointer, which no call can change", "name a member, or what it points to: after(*buf)"},
		{"do_exit(after($cpu))", "after($cpu)", "do_exit never returns, and 'after' reads values at return", ""},
		{"read(diff(count))", "diff(count)", "'count' is passed by value, and no call can change it", ""},
		{"read(diff(return))", "diff(return)", "'return' is known at return only", ""},
		{"read(diff($cpu))", "diff($cpu)", "'$cpu' is not memory that a call can change", ""},
		{"read(diff(buf->lne))", "lne", "struct buf has no member 'lne'", "did you mean 'len'?"},
		{"read(after(buf->len) > -1)", "-1", "-1 does not fit 'after(buf->len)', which is unsigned int and holds 0 to 4294967295", ""},
		{"read($comm[0])", "$comm[0]", "'$comm' can only be read as a whole", "its characters are those of $task->comm, as in $task->comm[0]"},
		{"read(*$comm)", "$comm", "'$comm' can only be read as a whole", "its characters are those of $task->comm, as in $task->comm[0]"},
		{"read(count) if $comm[1] == 3", "$comm[1]", "'$comm' can only be read as a whole", "its characters are those of $task->comm, as in $task->comm[0]"},
		{"read($comm[0..3])", "$comm[0..3]", "'$comm' can only be read as a whole", "its characters are those of $task->comm, as in $task->comm[0]"},
		{"read($kstack[2])", "$kstack[2]", "'$kstack' can only be read as a whole", ""},
		{"read(count(), max($ustack[0]))", "$ustack[0]", "'$ustack' can only be read as a whole", ""},
		{"reed", "reed", "there is no function reed in this kernel", "did you mean 'read'?"},
		{"assembly", "assembly", "assembly has no type in BTF, so its arguments are not known (it is not written in C, or BTF left it out)", ""},
		{"jiffies", "jiffies", "jiffies is data, not a function", "its content is '@jiffies' in the list of a function"},
		{"read.buf", "read.buf", "there is no function read.buf in this kernel", "did you mean 'read'?"},
		{"gone", "gone", "gone has a type but no code in this kernel: it was inlined everywhere, or is start-up code that was freed", ""},
		{"cloned", "cloned", "this kernel has cloned only as cloned.isra.0, with arguments that may differ from its type", "to trace it anyway, use this name: cloned.isra.0"},
		{"twin(a)", "twin", "there are 2 functions called twin in this kernel (0xffffffff81000d00, 0xffffffff81000e00), and BTF describes only one of them, not saying which", ""},
		{"dummy_xmit", "dummy_xmit", "dummy_xmit is in module dummy, which has no BTF, so its arguments are not known",
			"the kernel must be built with CONFIG_DEBUG_INFO_BTF_MODULES (5.11 and later)"},
		{"read(cuont)", "cuont", "read has no argument 'cuont'", "did you mean 'count'?"},
		{"read(xyzzy)", "xyzzy", "read has no argument 'xyzzy'", "it has buf, ubuf, count, pos"},
		{"open(made->len)", "made", "open has no argument 'made'", "did you mean 'return'?"},
		{"open(made->nothing)", "made", "open has no argument 'made'", "it has dfd, path"},
		{"nothing(x)", "x", "nothing has no argument 'x'", "it takes no arguments"},
		{"read(buf->lne)", "lne", "struct buf has no member 'lne'", "did you mean 'len'?"},
		{"read(buf->dev->indx)", "indx", "struct dev has no member 'indx'", "did you mean 'index'?"},
		{"read(count->x)", "x", "'count' is not a pointer to a struct or union, so '->x' has no meaning", ""},
		{"free(data->x)", "x", "'data' does not point to a struct or union with known members", ""},
		{"callback(fwd->x)", "x", "'fwd' does not point to a struct or union with known members", ""},
		{"times(lhs->tv_sec)", "tv_sec", "'lhs' is not a pointer to a struct or union, so '->tv_sec' has no meaning", "it is the struct itself: write 'lhs.tv_sec'"},
		{"free(return)", "return", "free returns void", ""},
		{"free(return == 0)", "return", "free returns void", ""},
		{"do_exit(return)", "return", "do_exit returns void", ""},
		{"times(lhs == 0)", "lhs", "'lhs' is struct timespec64, which has no order and cannot be compared", ""},
		{"read(buf->dev->name == 0)", "0", "'buf->dev->name' is a string, and 0 is none", `put strings in quotes: buf->dev->name == "0"`},
		{"read(buf->dev->name < \"x\")", "<", "strings have no order: 'buf->dev->name' is compared by ==, != or ~", ""},
		{"read(buf->dev->name == \"12345678901234567\")", "\"12345678901234567\"", "\"12345678901234567\" does not fit 'buf->dev->name', which holds 16 characters", ""},
		{`read(buf->dev->name ~ "*123456[78]9012345???")`, `"*123456[78]9012345???"`, `"*123456[78]9012345???" does not fit 'buf->dev->name', which holds 16 characters`, ""},
		{`read($comm == "1234567890123456")`, `"1234567890123456"`, `"1234567890123456" does not fit '$comm', which holds 15 characters`, ""},
		{`read($comm ~ "*1234567890123456")`, `"*1234567890123456"`, `"*1234567890123456" does not fit '$comm', which holds 15 characters`, ""},
		{"read(count ~ \"x*\")", "~", "'count' is size_t (long unsigned int), not a string, so '~' has no meaning", ""},
		{"read(buf.len)", "len", "'buf' is not a struct or union, so '.len' has no meaning", "it is a pointer: write 'buf->len'"},
		{"read(((struct buf *)ubuf).len)", "len", "'(struct buf *)ubuf' is not a struct or union, so '.len' has no meaning", "it is a pointer: write '((struct buf *)ubuf)->len'"},
		{"read((*buf)->len)", "len", "'*buf' is not a pointer to a struct or union, so '->len' has no meaning", "it is the struct itself: write '(*buf).len'"},
		{"read(((struct buf *)ubuf)->tv_sec)", "tv_sec", "struct buf has no member 'tv_sec'", "did you mean '((struct buf *)ubuf)->stamp.tv_sec'?"},
		{"read((buf + 1)-len)", "len", "read has no argument 'len'", "did you mean '(buf + 1)->len'?"},
		{"read(count * (buf + 1))", "*", "'buf + 1' is a pointer, and '*' joins numbers", "a cast makes a number of it: (u64)(buf + 1)"},
		{"read((buf + 1) - pos)", "-", "'buf + 1' and 'pos' point to things of different sizes", "casts make numbers of them: (u64)(buf + 1) - (u64)pos"},
		{"free(*(data + 1))", "*", "'data + 1' points to something of unknown size", "say what it is with a cast: *(u64 *)(data + 1)"},
		{"read(sum(diff(*pos - buf->len)))", "diff(*pos - buf->len)", "what differs is shown of each call, and cannot be counted",
			"write the difference: sum(after(*pos - buf->len) - (*pos - buf->len))"},
		{"read => read on count", "read", "the span begins and ends at the same moment of read, with the same key", "its end can be the return: read => read(return) on $tid"},
		{"read => read on buf->len == $arg1->len", "read", "the span begins and ends at the same moment of read, with the same key", "its end can be the return: read => read(return) on $tid"},
		{"read => send on $duration", "$duration", "$duration is known when the span has ended, so that it cannot be the key", ""},
		{"read => send on count == (u64)($duration + 1)", "$duration", "$duration is known when the span has ended, so that it cannot be the key", ""},
		{"read(buf->dev->name[16])", "[16]", "'buf->dev->name' has 16 elements, from [0] to [15]", ""},
		{"read(count[1])", "[1]", "'count' is size_t (long unsigned int), neither an array nor a pointer, so '[1]' has no meaning", ""},
		{"read(*count)", "*", "'count' is size_t (long unsigned int), not a pointer, so '*' has no meaning", ""},
		{"free(*data)", "*", "'data' points to something of unknown size", "say what it is with a cast: *(u64 *)data"},
		{"read((struct bufs *)count)", "struct bufs *", "there is no type 'struct bufs' in this kernel", "did you mean 'struct buf'?"},
		{"read((buf *)count)", "buf *", "there is no type 'buf' in this kernel", "did you mean 'struct buf'?"},
		{"open((struct buf *)dfd)", "(struct buf *)", "'dfd' is int, which does not have the size of a pointer", ""},
		{"times((int)lhs)", "(int)", "'lhs' is struct timespec64, which is not a number", ""},
		{"read(@jifies)", "@jifies", "there is no variable 'jifies' in this kernel", "did you mean '@jiffies'?"},
		{"read($arg5)", "$arg5", "read has no $arg5: it takes 4", "arguments count from $arg1"},
		{"free($retval)", "$retval", "free returns void", ""},
		{"read(count:ip4)", "ip4", "'count' is size_t (long unsigned int): ':ip4' shows addresses of 4 bytes, or what a pointer points to", ""},
		{"open(dfd:string)", "string", "'dfd' is int: ':string' shows strings, behind a pointer or in an array of bytes", ""},
		{"read(buf->stamp:x)", "x", "'buf->stamp' is struct timespec64: ':x' shows numbers", ""},
		{"open(dfd:symbol)", "symbol", "'dfd' is int: ':symbol' shows addresses, of 8 bytes", ""},
		{"work(why:c, now:be)", "be", "'now' is _Bool: ':be' shows numbers of 2, 4 or 8 bytes", ""},
		{"read(count == NULL)", "NULL", "'count' is size_t (long unsigned int), and NULL is for pointers", "write 0"},
		{"read(buf == -NULL)", "-NULL", "NULL has no sign", "leave out the '-'"},
		{"read(return == -true)", "-true", "true has no sign", "leave out the '-'"},
		{"work(now == -false)", "-false", "false has no sign", "leave out the '-'"},
		{"read((enum RESUMED)count)", "enum RESUMED", "there is no type 'enum RESUMED' in this kernel", ""},
		{"work(mode == RESUM)", "RESUM", "there is no constant 'RESUM': no enumerator and no error has this name", "did you mean 'RESUME'?"},
		{"read(return == -EAGIN)", "-EAGIN", "there is no constant 'EAGIN': no enumerator and no error has this name", "did you mean '-EAGAIN'?"},
		{"read(count == PAGE_SIZE)", "PAGE_SIZE", "there is no constant 'PAGE_SIZE': no enumerator and no error has this name", "macros of C are not in BTF: write the number"},
		{"read(count == __NR_openat)", "__NR_openat", "there is no constant '__NR_openat': no enumerator and no error has this name", "macros of C are not in BTF: write 257, the number of openat on amd64"},
		{"read(count == SYS_bpf)", "SYS_bpf", "there is no constant 'SYS_bpf': no enumerator and no error has this name", "macros of C are not in BTF: write 321, the number of bpf on amd64"},
		{"read(count == __NR_)", "__NR_", "there is no constant '__NR_': no enumerator and no error has this name", "macros of C are not in BTF: write the number"},
		{"read(count & O_DIRCT)", "O_DIRCT", "there is no constant 'O_DIRCT': no enumerator and no error has this name", "did you mean 'O_DIRECT'?"},
		{"read(count & O_RDONLY)", "O_RDONLY", "'count & O_RDONLY' can never hold: no bit is set in 0", ""},
		{"read(return == -O_DIRECT)", "-O_DIRECT", "of all names, only those of errors have a sign", "write 0 - O_DIRECT"},
		{"work(mode == -RESUME)", "-RESUME", "of all names, only those of errors have a sign", "write 0 - RESUME"},
		{"read(return is-err)", "is-err", "'return' is long int, and 'is-err' is about pointers", "write return < 0"},
		{"open(dfd is-err)", "is-err", "'dfd' is int, and 'is-err' is about pointers", "write dfd < 0"},
		{"read(buf->stamp is-err)", "is-err", "'buf->stamp' is struct timespec64, and 'is-err' is about pointers", ""},
		{"read(buf->len is-err)", "is-err", "'buf->len' is unsigned int, and 'is-err' is about pointers", ""},
		{"read(count == -EAGAIN)", "-EAGAIN", "-EAGAIN does not fit 'count', which is size_t (long unsigned int) and holds 0 to 18446744073709551615", ""},
		{"read(count == 5ms)", "5ms", "'count' is size_t (long unsigned int), not a duration", "durations are compared with $duration"},
		{"read(count & 0)", "0", "'count & 0' can never hold: no bit is set in 0", ""},
		{"read(buf->type & 8)", "8", "8 does not fit 'buf->type', which is unsigned char and has 3 bits", ""},
		{"read if buf->stamp", "buf->stamp", "'buf->stamp' is struct timespec64, which is neither true nor false", ""},
		{"read if $kstack", "$kstack", "'$kstack' is an array of 512 bytes, which is neither true nor false", ""},
		{"read if $comm", "$comm", "'$comm' is an array of 16 bytes, which is neither true nor false", "compare it with a constant"},
		{"read($uid == root)", "root", "there is no constant 'root': no enumerator and no error has this name", ""},
		{"send(dev->alias == eth)", "eth", "there is no constant 'eth': no enumerator and no error has this name", `strings are in quotes: "eth"`},
		{"read if !(count >= 0)", "0", "'count >= 0' always holds: 'count' is size_t (long unsigned int) and holds 0 to 18446744073709551615", ""},
		{"tp:tik", "tik", "there is no tracepoint tik in this kernel", "did you mean 'tp:tick'?"},
		{"iter:bof", "bof", "there is no iterator bof in this kernel", "did you mean 'iter:buf'?"},
		{"iter:get_info", "get_info", "there is no iterator get_info in this kernel", "it has buf, ksym, map_elem"},
		{"iter:map_elem", "map_elem", "map_elem goes over the elements of one map, and a spec cannot name a map", "iter:bpf_map lists the maps themselves"},
		{"iter:x*", "x*", "no iterator of this kernel matches 'x*'", ""},
		{"iter:buf(return)", "return", "buf is an iterator, which returns nothing", ""},
		{"iter:buf(after(buf->len))", "after(buf->len)", "buf is an iterator, which has no return, and 'after' reads values at return", ""},
		{"iter:buf(bof->len)", "bof", "buf has no argument 'bof'", "did you mean 'buf'?"},
		{"iter:buf($pid)", "$pid", "buf is an iterator, which ksnoop runs itself: $pid would be that of ksnoop", "it has meta, buf, fd"},
		{"iter:buf($container)", "$container", "buf is an iterator, which ksnoop runs itself: $container would be that of ksnoop", "it has meta, buf, fd"},
		{"iter:buf(buf) if $duration > 1ms", "$duration", "buf is an iterator, whose rows take no time", "it has meta, buf, fd"},
		{"iter:buf() => send() on $pid", "buf", "a span is between two calls, and buf is an iterator", "an iterator reads what is there now, in a spec of its own"},
		{"send() => iter:buf() on $pid", "buf", "a span is between two calls, and buf is an iterator", "an iterator reads what is there now, in a spec of its own"},
		{"tp:tick(return)", "return", "tick is a tracepoint, which returns nothing", ""},
		{"tp:tick($duration)", "$duration", "tick is a tracepoint, which takes no time", ""},
		{"xyz_*", "xyz_*", "no function of this kernel matches 'xyz_*'", "functions of a module need its name: MODULE:xyz_*; tracepoints are tp:xyz_*"},
		{"re*(xyzzy)", "re*", "read is the only function that matches 're*', and it cannot be traced", "it has no argument 'xyzzy'"},
		{"r[e]ad(xread)", "r[e]ad", "read is the only function that matches 'r[e]ad', and it cannot be traced", "it has no argument 'xread'"},
		{"read(count == -1)", "-1", "-1 does not fit 'count', which is size_t (long unsigned int) and holds 0 to 18446744073709551615", ""},
		{"open(dfd == 0xffffff9c)", "0xffffff9c", "0xffffff9c does not fit 'dfd', which is int and holds -2147483648 to 2147483647", "did you mean -100?"},
		{"open(dfd == 0x100000000)", "0x100000000", "0x100000000 does not fit 'dfd', which is int and holds -2147483648 to 2147483647", ""},
		{"read(buf->type == 8)", "8", "8 does not fit 'buf->type', which is a bitfield of 3 bits (unsigned char) and holds 0 to 7", ""},
		{"read(buf->delta == 64)", "64", "64 does not fit 'buf->delta', which is a bitfield of 7 bits (int) and holds -64 to 63", "did you mean -64?"},
		{"read(buf->ready == 2)", "2", "2 does not fit 'buf->ready', which is _Bool and holds 0 to 1", ""},
		{"read(count < 0)", "0", "'count < 0' can never hold: 'count' is size_t (long unsigned int) and holds 0 to 18446744073709551615", ""},
		{"read(count >= 0)", "0", "'count >= 0' always holds: 'count' is size_t (long unsigned int) and holds 0 to 18446744073709551615", ""},
		{"read(return == EINTR)", "EINTR", "read returns errors as negative numbers, and EINTR is 4", "did you mean '-EINTR'?"},
		{"read(count) if return != ENOENT", "ENOENT", "read returns errors as negative numbers, and ENOENT is 2", "did you mean '-ENOENT'?"},
		{"open($retval == ENOENT)", "ENOENT", "open returns errors as negative numbers, and ENOENT is 2", "did you mean '-ENOENT'?"},
		{"read(ret)", "ret", "read has no argument 'ret'", "the return value is 'return'"},
		{"read(retval < 0)", "retval", "read has no argument 'retval'", "the return value is 'return'"},
		{"tp:tick(buf_len)", "buf_len", "tick has no argument 'buf_len'", "did you mean 'buf->len'?"},
		{"tp:tick(buf_)", "buf_", "tick has no argument 'buf_'", "did you mean 'buf'?"},
		{"tp:tick(common_type)", "common_type", "tick has no argument 'common_type'", "it is a part of tracefs' own records, not of a call"},
		{"tp:done(ret == EINTR)", "EINTR", "'ret' has errors as negative numbers, and EINTR is 4", "did you mean '-EINTR'?"},
		{"read(return - 0 == EINTR)", "EINTR", "read returns errors as negative numbers, and EINTR is 4", "did you mean '-EINTR'?"},
		{"read(return & EINTR)", "EINTR", "read returns errors as negative numbers, and EINTR is 4", "an error is a whole number, not a bit: return == -EINTR"},
		{"tp:tick(ret)", "ret", "tick has no argument 'ret'", "it has cpu, buf"},
		{"read(pid)", "pid", "read has no argument 'pid'", "it is written '$pid'"},
		{"read(count == pid)", "pid", "there is no constant 'pid': no enumerator and no error has this name", "it is written '$pid'"},
		{"read if comm == \"cat\"", "comm", "read has no argument 'comm'", "it is written '$comm'"},
		{"nothing(comm)", "comm", "nothing has no argument 'comm'", "it is written '$comm'"},
		{"read(arg0)", "arg0", "read has no argument 'arg0'", "arguments are counted from 1: '$arg1', or 'buf'"},
		{"read(args->count)", "args", "read has no argument 'args'", "arguments are named by themselves: buf, ubuf, count, pos"},
		{"socket(sk->sk_state)", "sk_state", "struct sock has no member 'sk_state'", "did you mean 'sk->__sk_common.skc_state'?"},
		{"socket(sk->skc_daddr)", "skc_daddr", "struct sock has no member 'skc_daddr'", "did you mean 'sk->__sk_common.skc_daddr'?"},
		{"socket(sk->inet_daddr)", "inet_daddr", "struct sock has no member 'inet_daddr'", "did you mean 'sk->__sk_common.skc_daddr'?"},
		{"socket(sk->state)", "state", "struct sock has no member 'state'", "did you mean 'sk->__sk_common.skc_state'?"},
		{"socket(sk->sk_stamq)", "sk_stamq", "struct sock has no member 'sk_stamq'", "did you mean 'sk_stamp'?"},
		{"socket(sk->__sk_common->skc_state)", "skc_state", "'sk->__sk_common' is not a pointer to a struct or union, so '->skc_state' has no meaning",
			"it is the struct itself: write 'sk->__sk_common.skc_state'"},
		{`socket(sk->__sk_common.skc_daddr == "127.0.0.1")`, `"127.0.0.1"`, "'sk->__sk_common.skc_daddr' is __be32 (unsigned int), which is not compared with a string",
			"an IPv4 address is compared with the format ip4: sk->__sk_common.skc_daddr:ip4"},
		{`socket(sk->__sk_common.skc_daddr != "127.0.0.1")`, `"127.0.0.1"`, "'sk->__sk_common.skc_daddr' is __be32 (unsigned int), which is not compared with a string",
			"an IPv4 address is compared with the format ip4: sk->__sk_common.skc_daddr:ip4"},
		{`times(lhs == "::1")`, `"::1"`, "'lhs' is struct timespec64, which is not compared with a string", "an IPv6 address is compared with the format ip6: lhs:ip6"},
		{`read(count == "127.0.0.1")`, `"127.0.0.1"`, "'count' is size_t (long unsigned int), which is not compared with a string", ""},
		{`do_sys_open(filename == "/etc/passwd")`, "filename", "'filename' points to user memory, and strings are read from kernel memory",
			`write filename:ustring == "/etc/passwd" (filename:string reads kernel memory anyway)`},
		{`do_sys_open(mode) if filename ~ "/etc/*"`, "filename", "'filename' points to user memory, and strings are read from kernel memory",
			`write filename:ustring ~ "/etc/*" (filename:string reads kernel memory anyway)`},
		{`marked(where == "x")`, "where", "'where' points to user memory, and strings are read from kernel memory",
			`write where:ustring == "x" (where:string reads kernel memory anyway)`},
		{`marked(buf->where == "x")`, "buf->where", "'buf->where' points to user memory, and strings are read from kernel memory",
			`write buf->where:ustring == "x" (buf->where:string reads kernel memory anyway)`},
		{"sys_enter_openat", "sys_enter_openat", "there is no function sys_enter_openat in this kernel",
			"all system calls are one tracepoint, and openat is number 257: tp:sys_enter(id == 257)"},
		{"tp:sys_enter_openat", "sys_enter_openat", "there is no tracepoint sys_enter_openat in this kernel",
			"all system calls are one tracepoint, and openat is number 257: tp:sys_enter(id == 257)"},
		{"sys_exit_openat", "sys_exit_openat", "there is no function sys_exit_openat in this kernel",
			"all system calls are one tracepoint, and openat is number 257: tp:sys_exit($arg2) if $arg1->orig_ax == 257"},
		{"sys_enter_nosuch", "sys_enter_nosuch", "there is no function sys_enter_nosuch in this kernel",
			"all system calls are two tracepoints: tp:sys_enter(id) and tp:sys_exit($arg2)"},
		{"tick", "tick", "there is no function tick in this kernel", "it is a tracepoint: tp:tick"},
		{"timer:tick", "timer", "module timer is not loaded, or has no function tick", "a tracepoint is named without its group: tp:tick"},
		{"sys_open", "sys_open", "there is no function sys_open in this kernel", "did you mean '__x64_sys_open'?"},
		{"read(@jiffies.x)", "x", "'@jiffies' is not a struct or union, so '.x' has no meaning",
			"BTF has no type of it; a cast says what it is: ((struct NAME)@jiffies).x"},
		{"read(@jiffies->x)", "x", "'@jiffies' is not a pointer to a struct or union, so '->x' has no meaning",
			"BTF has no type of it; a cast says what it is: ((struct NAME *)@jiffies)->x"},
		{"ext4:read", "ext4", "module ext4 is not loaded, or has no function read", "read is a function of the kernel itself: leave out the module"},
		{"ext4:*", "ext4", "module ext4 is not loaded, or has no BTF", "functions of the kernel itself have no module before them: ext4_*"},
		{"ext4:ext4_s*", "ext4", "module ext4 is not loaded, or has no BTF", "functions of the kernel itself have no module before them: ext4_s*"},
		{"ext4:ext4_sync", "ext4", "module ext4 is not loaded, or has no function ext4_sync",
			"functions of the kernel itself have no module before them: ext4_sync"},
		{"xfs:*", "xfs", "module xfs is not loaded, or has no BTF", ""},
		{"read((count & 3) == 4)", "4", "'(count & 3) == 4' can never hold: 'count & 3' has no other bits than 0x3", ""},
		{"read((count & 3) != 8)", "8", "'(count & 3) != 8' always holds: 'count & 3' has no other bits than 0x3", ""},
		{"read((count & 3) <= 3)", "3", "'(count & 3) <= 3' always holds: 'count & 3' has no other bits than 0x3", ""},
		{"read((buf->len & 6) & 9)", "9", "'(buf->len & 6) & 9' can never hold: 'buf->len & 6' has no other bits than 0x6", ""},
		{"read((count & 0xf0 >> 4 << 1) == 1)", "1", "'(count & 0xf0 >> 4 << 1) == 1' can never hold: 'count & 0xf0 >> 4 << 1' has no other bits than 0x1e", ""},
		{"read(count - 1 < 0)", "0", "'count - 1 < 0' can never hold: 'count - 1' is long unsigned int and holds 0 to 18446744073709551615", ""},
		{"read(count == count)", "== count", "'count == count' compares 'count' with itself", ""},
		{"read(4 * 2)", "4 * 2", "'4 * 2' is a constant", ""},
		{"read(count == 1 << 63 << 2)", "1 << 63 << 2", "1 << 63 << 2 is out of range", "constants go from -9223372036854775808 (-2^63) to 18446744073709551615 (2^64-1)"},
		{"open(dfd == 1 << 31)", "1 << 31", "1 << 31 does not fit 'dfd', which is int and holds -2147483648 to 2147483647", "did you mean -2147483648?"},
		{"read(buf->len << 32)", "32", "'buf->len' has 32 bits, and is shifted by 32", ""},
		{"read(buf | 1)", "|", "'buf' is a pointer, and '|' joins numbers", "a cast makes a number of it: (u64)buf"},
		{"read(buf - pos)", "-", "'buf' and 'pos' point to things of different sizes", "casts make numbers of them: (u64)buf - (u64)pos"},
		{"callback(fwd + 1)", "fwd", "'fwd' points to something of unknown size", "say what it is with a cast: (u8 *)fwd"},
		{"read(buf-len)", "len", "read has no argument 'len'", "did you mean 'buf->len'?"},
		{"read(buf->stamp + 1)", "buf->stamp", "'buf->stamp' is struct timespec64, which is not a number", ""},
		{"read(buf->stamp == count)", "buf->stamp", "'buf->stamp' is struct timespec64, which has no order and cannot be compared with a value", ""},
		{"open(dfd == path)", "==", "'dfd' is int, and 'path' is a pointer", "a cast makes a number of a pointer: (u64)dfd"},
		{"read($comm == count)", "$comm", "'$comm' is an array of 16 bytes, which has no order and cannot be compared with a value", ""},
		{"read(ubuf:string == count)", "count", "'ubuf' is a string, which is compared with a constant", ""},
		{`read(buf->stamp:ip6 < "::1")`, "<", "'buf->stamp' is an address, which is compared with == and !=", ""},
		{`open(dfd:ip4 > "1.2.3.4")`, ">", "'dfd' is an address, which is compared with == and !=", ""},
		{`open() if !(dfd:ip <= "1.2.3.4")`, "<=", "'dfd' is an address, which is compared with == and !=", ""},
		{`read(buf->stamp:ip == "1.2.3.4")`, `"1.2.3.4"`, `"1.2.3.4" is not an IPv6 address`, `one of IPv4 is written "::ffff:1.2.3.4"`},
		{`open(dfd:ip == "::1")`, `"::1"`, `"::1" is not an IPv4 address`, `write it as "192.0.2.1"`},
		{"read(buf:ip)", "ip", "'buf' is a pointer to struct buf: ':ip' shows an address by its length, and what a pointer points to may be of any: say ip4 or ip6", ""},
		{`read($comm:ip6 == "::1")`, "ip6", "'$comm' is an array of 16 bytes: ':ip6' shows addresses, and not the name of a thread", ""},
		{"read($comm:ip)", "ip", "'$comm' is an array of 16 bytes: ':ip6' shows addresses, and not the name of a thread", ""},
		{"read(count:ip)", "ip", "'count' is size_t (long unsigned int): ':ip' shows addresses of 4 or 16 bytes", ""},
		{"read(ppid)", "ppid", "read has no argument 'ppid'", "it is written '$ppid'"},
		{"read(buf->delta:be)", "be", "'buf->delta' is a bitfield of 7 bits (int): ':be' shows numbers of 2, 4 or 8 bytes", ""},
		{"read(pos:be)", "be", "'pos' is a pointer: ':be' shows numbers of 2, 4 or 8 bytes", ""},
		{"read(buf->delta is-err)", "is-err", "'buf->delta' is a bitfield of 7 bits (int), and 'is-err' is about pointers", "write buf->delta < 0"},
		{"open(dfd:be == -1)", "-1", "-1 does not fit 'dfd', which is u32 in network byte order and holds 0 to 4294967295", ""},
		{"open(dfd <= 2147483647)", "2147483647", "'dfd <= 2147483647' always holds: 'dfd' is int and holds -2147483648 to 2147483647", ""},
	} {
		t.Run(tc.spec, func(t *testing.T) {
			trace, err := spec.Parse(tc.spec)
			require.NoError(t, err)
			_, err = One(trace, compilertest.NewTarget(t, compilertest.WithTrampoline, habitTypes...))
			var e *spec.Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, tc.want, e.Msg)
			require.Equal(t, tc.hint, e.Hint)
			if name, _, _ := strings.Cut(e.Msg, " "); name == trace.Func.Name {
				require.Equal(t, "it"+strings.TrimPrefix(e.Msg, name), e.Reason(), "functions that are left out for this reason are counted together")
			}
			require.Equal(t, tc.at, tc.spec[e.At.Start:e.At.End])
		})
	}
}

// TestErrnos verifies which comparisons with error numbers are accepted: without a sign,
// the value must be something other than the result itself.
func TestErrnos(t *testing.T) {
	target := compilertest.NewTarget(t, compilertest.WithTrampoline, habitTypes...)
	for _, text := range []string{
		"read(return == -EINTR)", "read(0 - return == EINTR)", "read(count - return == EINTR)", "read(count == EINTR)", "tp:done(ret == -EINTR)",
	} {
		mustResolve(t, target, text)
	}
}

// TestStringConds verifies which strings of conditions are read from kernel memory but
// may be in memory of the process.
func TestStringConds(t *testing.T) {
	for text, want := range map[string][]string{
		"read(count == 5)":                                        nil,
		`read(buf->dev->alias == "x", count)`:                     {"buf->dev->alias"},
		`read(ubuf) if ubuf ~ "x*" || ubuf == "y" || return == 3`: {"ubuf"},
		`read(buf->dev->name == "x", ubuf:ustring == "y")`:        nil,
		`read(ubuf:string == "y", $comm == "z")`:                  nil,
	} {
		require.Equal(t, want, mustResolve(t, compilertest.NewTarget(t, compilertest.WithTrampoline), text).StringConds(), text)
	}
}

// habitTypes are the types that the hints for words of C and of other tracers need.
var habitTypes = func() []btf.Type {
	user := compilertest.Ptr(&btf.TypeTag{Value: "user", Type: compilertest.Char})
	common := &btf.Struct{Name: "sock_common", Size: 16, Members: []btf.Member{
		{Type: &btf.Union{Size: 8, Members: []btf.Member{
			{Type: &btf.Struct{Size: 8, Members: []btf.Member{{Name: "skc_daddr", Type: &btf.Typedef{Name: "__be32", Type: compilertest.Uint}}}}},
		}}},
		{Name: "skc_state", Type: compilertest.U8, Offset: 64},
	}}
	sock := &btf.Struct{Name: "sock", Size: 32, Members: []btf.Member{
		{Name: "__sk_common", Type: common}, {Name: "sk_stamp", Type: compilertest.Long, Offset: 128}, {Name: "sk_mark", Type: compilertest.Uint, Offset: 192},
	}}
	address := compilertest.Ptr(compilertest.Void)
	call := compilertest.Ptr(&btf.FuncProto{Return: compilertest.Void, Params: []btf.FuncParam{
		compilertest.Param("", address), compilertest.Param("", address), compilertest.Param("", compilertest.Long),
	}})
	return []btf.Type{
		compilertest.Function("socket", compilertest.Int, compilertest.Param("sk", compilertest.Ptr(sock))),
		compilertest.Function("do_sys_open", compilertest.Int, compilertest.Param("filename", compilertest.Ptr(&btf.Const{Type: compilertest.Char})), compilertest.Param("mode", compilertest.Int)),
		compilertest.Function("marked", compilertest.Int, compilertest.Param("where", user), compilertest.Param("buf", compilertest.Ptr(&btf.Struct{Name: "marked", Size: 8, Members: []btf.Member{{Name: "where", Type: user}}}))),
		&btf.Typedef{Name: "btf_trace_sys_enter", Type: call},
		compilertest.Function("__bpf_trace_sys_enter", compilertest.Void, compilertest.Param("__data", address), compilertest.Param("regs", address), compilertest.Param("id", compilertest.Long)),
		&btf.Typedef{Name: "btf_trace_sys_exit", Type: call}, // without names, as in 5.10
		&btf.Typedef{Name: "btf_trace_done", Type: call},
		compilertest.Function("__bpf_trace_done", compilertest.Void, compilertest.Param("__data", address), compilertest.Param("regs", address), compilertest.Param("ret", compilertest.Long)),
		compilertest.Function("__x64_sys_open", compilertest.Long, compilertest.Param("regs", compilertest.Ptr(compilertest.Void))),
		compilertest.Function("ext4_sync", compilertest.Int, compilertest.Param("a", compilertest.Int)),
	}
}()

// TestNoModules verifies that users who may not have trampolines in modules get
// another kind there, or an error with the reason.
func TestNoModules(t *testing.T) {
	f := compilertest.WithTrampoline
	f.NoModules = "fentry in a module takes more"
	probe := func() *compiler.Probe {
		p := mustResolve(t, compilertest.NewTarget(t, compilertest.WithTrampoline), "read(count)")
		require.Equal(t, compiler.Fentry, p.Attach.Entry)
		return p
	}
	a, err := chooseAttach(probe(), f, "", programCounts{functions: 1})
	require.NoError(t, err)
	require.Equal(t, compiler.Fentry, a.Entry) // a function of vmlinux
	p := probe()
	p.Func.Module = "dummy"
	a, err = chooseAttach(p, f, "", programCounts{functions: 1})
	require.NoError(t, err)
	require.Equal(t, compiler.Kprobe, a.Entry)
	require.Equal(t, f.NoModules, a.Reason)
	_, err = chooseAttach(p, f, compiler.Fentry, programCounts{functions: 1})
	require.EqualError(t, err, "attach fentry to read: fentry in a module takes more")
	p.Func.Tracepoint = true
	_, err = chooseAttach(p, f, "", programCounts{functions: 1})
	require.EqualError(t, err, "attach tp_btf to read: fentry in a module takes more")
}

// TestManyReturns verifies what is chosen where there are more links than the kernel
// follows the returns of a function for.
func TestManyReturns(t *testing.T) {
	trace, err := spec.Parse("read(count, return)")
	require.NoError(t, err)
	for n, want := range map[int]compiler.Kind{followedReturns: compiler.KprobeSession, followedReturns + 1: compiler.Kprobe} {
		plan, err := All(slices.Repeat([]*spec.Trace{trace}, n), compilertest.NewTarget(t, compilertest.WithKprobeSession), Wishes{})
		require.NoError(t, err)
		require.Equal(t, want, plan.Probes[0].Attach.Entry)
	}
	_, err = All(slices.Repeat([]*spec.Trace{trace}, followedReturns+1), compilertest.NewTarget(t, compilertest.WithKprobeSession), Wishes{Attach: compiler.KprobeSession})
	require.ErrorContains(t, err, "attach kprobe.session to read: the kernel follows the returns of a function for 8 links, and there are 9")
	poor := compilertest.WithKprobeSession
	poor.NoKprobe = "kernel.perf_event_paranoid is 3"
	_, err = All(slices.Repeat([]*spec.Trace{trace}, followedReturns+1), compilertest.NewTarget(t, poor), Wishes{})
	require.ErrorContains(t, err, "attach kprobe to read: kernel.perf_event_paranoid is 3, and this kernel has no BPF trampolines, "+
		"and the kernel follows the returns of a function for 8 links, and there are 9")
}

// TestCrowd verifies that another kind is chosen if there are more programs than a
// trampoline has room for.
func TestCrowd(t *testing.T) {
	var traces []*spec.Trace
	for range trampolinePrograms + 1 {
		trace, err := spec.Parse("read(count)")
		require.NoError(t, err)
		traces = append(traces, trace)
	}
	plan, err := All(traces, compilertest.NewTarget(t, compilertest.WithTrampoline), Wishes{})
	require.NoError(t, err)
	require.Equal(t, compiler.Kprobe, plan.Probes[0].Attach.Entry)
	require.Equal(t, "a trampoline takes 38 programs, and there are 39 for this function", plan.Probes[0].Attach.Reason)
}

// TestDifferentPrototypes verifies that if prototypes differ, the one that has the
// named arguments is used.
func TestDifferentPrototypes(t *testing.T) {
	target := compilertest.NewTarget(t, compilertest.WithTrampoline, compilertest.Function("twice", compilertest.Void, compilertest.Param("b", compilertest.Int)))
	p := mustResolve(t, target, "twice(b)")
	require.Equal(t, "b", p.Func.Params[0].Name)
	require.Equal(t, compiler.Kprobe, p.Attach.Entry)
	trace, err := spec.Parse("twice")
	require.NoError(t, err)
	_, err = One(trace, target)
	require.EqualError(t, err, "twice is in BTF with different prototypes, and a name cannot tell them apart: (a: int) and (b: int)\n"+
		"  twice\n  ^^^^^\n  name arguments that only one of them has")
}

// TestImplicitArguments verifies that the arguments that the verifier adds to a call,
// which BTF has under another name, are found unless a function has that name.
func TestImplicitArguments(t *testing.T) {
	target := compilertest.NewTarget(t, compilertest.WithTrampoline,
		compilertest.Function("nothing_impl", compilertest.Void, compilertest.Param("aux", compilertest.Ptr(compilertest.Dev))),
		compilertest.Function("free_impl", compilertest.Void, compilertest.Param("b", compilertest.Ptr(compilertest.Buf)), compilertest.Param("data", compilertest.Ptr(compilertest.Void)), compilertest.Param("aux", compilertest.Ptr(compilertest.Dev))))
	require.Len(t, mustResolve(t, target, "nothing").Func.Params, 1)
	require.Len(t, mustResolve(t, target, "free").Func.Params, 2, "its arguments are others")
	symbols, err := kallsyms.Read(strings.NewReader(compilertest.Symbols+"ffffffff81002000 T nothing_impl\n"), nil)
	require.NoError(t, err)
	target.Symbols = symbols
	require.Empty(t, mustResolve(t, target, "nothing").Func.Params)
	keep := Symbols([]*spec.Trace{mustResolve(t, target, "nothing").Trace}).Keep
	require.True(t, keep("nothing_impl"))
}

// TestOpenFlags checks that a flag of open(2) has the value of the target's
// architecture, alone and among operators.
func TestOpenFlags(t *testing.T) {
	for arch, direct := range map[*compiler.Arch]uint64{compiler.AMD64: 0x4000, compiler.ARM64: 0x10000} {
		target := compilertest.NewTarget(t, compilertest.WithTrampoline)
		target.Arch = arch
		alone := mustResolve(t, target, "read(count == O_DIRECT)").EntryConds[0].(*compiler.Leaf)
		require.Equal(t, direct, alone.Pred.Const)
		among := mustResolve(t, target, "read(count + O_DIRECT == 7)").EntryConds[0].(*compiler.Leaf)
		require.Equal(t, direct, *among.Value.Base.Of.Y.Base.Number)
	}
}

// TestAmbiguous checks that a name with several meanings is refused, and not taken for the
// first of them: an enumerator that enums give different numbers, and a type of which there
// are several.
func TestAmbiguous(t *testing.T) {
	enum := func(name string, values ...btf.EnumValue) btf.Type {
		return &btf.Enum{Name: name, Size: 4, Values: values}
	}
	two := func(first, second string) *btf.Struct {
		return &btf.Struct{Name: "callback", Size: 8, Members: []btf.Member{
			{Name: first, Type: compilertest.Int}, {Name: second, Type: compilertest.Int, Offset: 32},
		}}
	}
	target := compilertest.NewTarget(t, compilertest.WithTrampoline,
		enum("net", btf.EnumValue{Name: "LIMIT", Value: 2}, btf.EnumValue{Name: "SAME", Value: 5}),
		enum("disk", btf.EnumValue{Name: "LIMIT", Value: 7}, btf.EnumValue{Name: "SAME", Value: 5}),
		compilertest.Function("limited", compilertest.Void, compilertest.Param("net", enum("net", btf.EnumValue{Name: "LIMIT", Value: 2}))),
		two("error", "result"), two("result", "error"),
		enum("energy", btf.EnumValue{Name: "SAVE", Value: 1}), enum("energy", btf.EnumValue{Name: "SPEND", Value: 1}),
		enum("copied", btf.EnumValue{Name: "COPY", Value: 1}), enum("copied", btf.EnumValue{Name: "COPY", Value: 1}))
	symbols, err := kallsyms.Read(strings.NewReader(compilertest.Symbols+"ffffffff8100ff00 T limited\n"), nil)
	require.NoError(t, err)
	target.Symbols = symbols
	const differ = "'LIMIT' is 2 in one enum of this kernel and 7 in another"
	for _, tc := range []struct{ text, at, want, hint string }{
		{"read(count == LIMIT)", "LIMIT", differ, "write the number"},
		{"read(count == -LIMIT)", "-LIMIT", differ, "write the number"},
		{"read(count + LIMIT == 9)", "LIMIT", differ, "write the number"},
		{"read((count & (LIMIT | 1)) == 1)", "LIMIT", differ, "write the number"},
		{"read((enum LIMIT)count)", "enum LIMIT", differ, "write the number"},
		{"read(((struct callback *)buf)->error)", "struct callback *", "there are 2 types 'struct callback' in this kernel, which differ",
			"without a cast, arguments and members have the one that is meant"},
		{"read((enum energy)count)", "enum energy", "there are 2 types 'enum energy' in this kernel, which differ",
			"without a cast, arguments and members have the one that is meant"},
	} {
		trace, err := spec.Parse(tc.text)
		require.NoError(t, err, tc.text)
		_, err = One(trace, target)
		var refused *spec.Error
		require.ErrorAs(t, err, &refused, tc.text)
		require.Equal(t, []string{tc.want, tc.hint, tc.at}, []string{refused.Msg, refused.Hint, tc.text[refused.At.Start:refused.At.End]}, tc.text)
	}
	for text, want := range map[string]uint64{
		"read((enum copied)count == COPY)": 1,
		"read(count == SAME)":              5,
		"read((enum disk)count == LIMIT)":  7,
		"limited(net == LIMIT)":            2,
	} {
		require.Equal(t, want, mustResolve(t, target, text).EntryConds[0].(*compiler.Leaf).Pred.Const, text)
	}
}

// TestHalved checks that an enumerator of which BTF has only the lower half is refused.
func TestHalved(t *testing.T) {
	half := &btf.Enum{Name: "pfn", Size: 8, Values: []btf.EnumValue{{Name: "VALID", Value: 0}, {Name: "SHIFT", Value: 56}}}
	whole := &btf.Enum{Name: "cap", Size: 8, Values: []btf.EnumValue{{Name: "FIRST", Value: 1}, {Name: "LAST", Value: 1 << 60}}}
	target := compilertest.NewTarget(t, compilertest.WithTrampoline, half, whole)
	for _, text := range []string{"read(count == VALID)", "read((enum pfn)count == SHIFT)", "read(count & VALID)", "read((count & SHIFT) == 8)"} {
		trace, err := spec.Parse(text)
		require.NoError(t, err, text)
		_, err = One(trace, target)
		var refused *spec.Error
		require.ErrorAs(t, err, &refused, text)
		require.Regexp(t, "^the BTF of this kernel has only the lower 32 bits of '(VALID|SHIFT)'$", refused.Msg, text)
		require.Equal(t, "write the number", refused.Hint)
	}
	for text, want := range map[string]uint64{"read(count == FIRST)": 1, "read((enum cap)count == LAST)": 1 << 60, "read((enum pfn)count == 56)": 56} {
		require.Equal(t, want, mustResolve(t, target, text).EntryConds[0].(*compiler.Leaf).Pred.Const, text)
	}
}

// TestHighestEnumerator checks that the highest number of 32 bits, which may also be the -1 of
// an enum whose sign BTF lacks, fits what has 32 bits, with or without a sign.
func TestHighestEnumerator(t *testing.T) {
	highest := btf.EnumValue{Name: "HIGHEST", Value: 0xffffffff}
	target := compilertest.NewTarget(t, compilertest.WithTrampoline, &btf.Enum{Name: "tags", Size: 4, Values: []btf.EnumValue{highest}})
	for text, want := range map[string]uint64{
		"read((u32)count == HIGHEST)":        0xffffffff,
		"read((int)count == HIGHEST)":        1<<64 - 1,
		"read((enum tags)count == HIGHEST)":  1<<64 - 1,
		"read((u32)count + 1 >= HIGHEST)":    0xffffffff,
		"read(((u32)count & 255) & HIGHEST)": 0xffffffff,
	} {
		require.Equal(t, want, mustResolve(t, target, text).EntryConds[0].(*compiler.Leaf).Pred.Const, text)
	}
}

// TestEnumWithoutName checks that an enum can be named by one of its enumerators, too.
func TestEnumWithoutName(t *testing.T) {
	target := compilertest.NewTarget(t, compilertest.WithTrampoline)
	for _, text := range []string{"read((enum RESUME)count)", "read((enum mode)count)"} {
		v := mustResolve(t, target, text).Entry[0]
		require.Equal(t, "mode", v.Type.(*btf.Enum).Name, text)
		require.Equal(t, 4, v.Scalar.Size)
	}
}

// TestTargetWithoutArch verifies that a target that a program has put together without an
// architecture is refused.
func TestTargetWithoutArch(t *testing.T) {
	target := compilertest.NewTarget(t, compilertest.WithTrampoline)
	target.Arch = nil
	_, err := All(compilertest.ParseAll(t, "read"), target, Wishes{})
	require.EqualError(t, err, "the target has no architecture: set its Arch, which ArchOf finds by the types")
}
