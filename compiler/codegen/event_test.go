package codegen

import (
	"math"
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/compilertest"
	"github.com/ksnoop/ksnoop/compiler/resolve"
	"github.com/ksnoop/ksnoop/compiler/spec/kprobe"
)

// What kprobe_events lines show of a call, with every attach kind.
func TestEvents(t *testing.T) {
	const neg = math.MaxUint64
	const ubuf = 0x7fff_0000_0000
	for _, tc := range []struct {
		line string
		args func(buf uint64) []uint64
		ret  []uint64
		want []string
	}{
		{"p read", args1(5), nil, []string{"entry"}},
		{"r read", args1(5), []uint64{3}, []string{"return"}},
		// Registers and the stack.
		{"p read %dx", args1(5), nil, []string{"entry arg1=5"}},
		{"p read a=%dx:u8 b=%dx:s8 c=%dx:s16 %ip", args1(0xfffe), nil, []string{"entry a=254 b=-2 c=-2 arg4=0"}},
		{"p read a=%dx:b4@4/8 b=%dx:b12@4/32 c=%dx:b64@0/64 d=%dx:b3@61/64", args1(0xa000_0000_0001_2345), nil,
			[]string{"entry a=4 b=564 c=11529215046068544325 d=5"}},
		{"p read %dx:symbol %dx:char", args1(0x141), nil, []string{"entry arg1=321 arg2=65"}},
		{"p many $stack1:s32 $stack2", args(1, 2, 3, 4, 5, 6, neg, 77), nil, []string{"entry arg1=-1 arg2=77"}},
		{"p many +8($stack):s32", args(1, 2, 3, 4, 5, 6, neg, 77), nil, []string{"entry arg1=-1"}},
		{"r read %ax $retval", args1(5), []uint64{neg}, []string{"return arg1=18446744073709551615 arg2=-1"}},
		// Memory.
		{"p read +0(%di):u32 +4(%di):s32 +0(%di):u8[4]", args1(5), nil, []string{"entry arg1=105 arg2=-1 arg3=69000000"}},
		{"p read +16(+8(%di)):s32 +0(+24(+8(%di))):string +0(+8(buf)):string", args1(5), nil,
			[]string{`entry arg1=42 arg2="uplink" arg3="eth0"`}},
		{"p read -4(%di):u32", args(0, 0, 0, 0), nil, []string{"entry arg1=fault(0x0)"}},
		{"p read +0(%di) +0(%di):string +0(+8(%di)):u8[2]", args(0, 0, 0, 0), nil,
			[]string{"entry arg1=fault(0x0) arg2=*fault(0x0) arg3=fault(0x0)"}},
		{"p read +16(%di):b3@0/8 +16(%di):b7@3/16 +0x12(%di):b1@0/8", args1(5), nil, []string{"entry arg1=5 arg2=126 arg3=1"}},
		{"p read +u0(%si):string +0(%si):ustring +u0(%si):u16 +u1(%si):char[3]", args(0, ubuf, 0, 0), nil,
			[]string{`entry arg1="user" arg2="user" arg3=29557 arg4=736572`}},
		{"p read +0(%si):u16 +u0(%dx):u16", args(0, ubuf, neg-15, 0), nil, []string{"entry arg1=29557 arg2=fault(0xfffffffffffffff0)"}},
		// Without u, an address of the process is read, too, as the kernel does.
		{"p read +0(%si):string ubuf:string +0(%si):char[3] +0(%si):b4@0/8[2] +1(%si):u8", args(0, ubuf, 0, 0), nil,
			[]string{`entry arg1="user" ubuf="user" arg3=757365 arg4=7573 arg5=115`}},
		{"p read +0(%si):string ubuf:string +0(%si):u8 +0(%si):u8[2]", args(0, 0x7ffe_0000_0000, 0, 0), nil,
			[]string{"entry arg1=*fault(0x7ffe00000000) ubuf=*fault(0x7ffe00000000) arg3=fault(0x7ffe00000000) arg4=fault(0x7ffe00000000)"}},
		{`p read n=+0(%si):string u=ubuf:string if n == "user" && u ~ "us?r"`, args(0, ubuf, 0, 0), nil, []string{`entry n="user" u="user"`}},
		{`p read n=+0(%si):string if n == "users" || n ~ "*x"`, args(0, ubuf, 0, 0), nil, nil},
		{"p read n=+0(%si):u16 if n == 29557", args(0, ubuf, 0, 0), nil, []string{"entry n=29557"}},
		{"p read +0(+u0(%si))", args(0, ubuf, 0, 0), nil, []string{"entry arg1=fault(0x72657375)"}},
		{`p read a=\5 b=\-1:s32 c=\0x1ff:u8`, args1(5), nil, []string{"entry a=5 b=-1 c=255"}},
		{`p read a=\"" b=\"a text of several words" count c=\"eightbyt":string`, args1(5), nil,
			[]string{`entry a="" b="a text of several words" count=5 c="eightbyt"`}},
		{`r read b=\"text" count`, args(0, 0, 5, 0), []uint64{3}, []string{`call count=5 b="text"`}},
		{`p read b=\"a text of several words" if b == "a text of several words" && b ~ "*several*" && b != "x"`, args1(5), nil,
			[]string{`entry b="a text of several words"`}},
		{`p read b=\"text" if b == "texts" || b == "tex" || b ~ "ext*"`, args1(5), nil, nil},
		{"p read @jiffies:u32 @jiffies+4:u32", args1(5), nil, []string{"entry arg1=1234 arg2=99"}},
		{"p read @0xffffffff81001100:u16", args1(5), nil, []string{"entry arg1=1234"}},
		// Arrays.
		{"p read +0(%di):b4@4/8[2] +0(%di):x16[2] +u0(%si):char[2] +0(%di):symbol[1]", args(0, ubuf, 0, 0), nil,
			[]string{"entry arg1=fault(0x0) arg2=fault(0x0) arg3=7573 arg4=fault(0x0)"}},
		{"p read names=+0(%dx):string[3] +u0(%si):string[1]", args(0, ubuf, 0xffff_ffff_8100_1108, 0), nil,
			[]string{`entry names[0]="eth0" names[1]=*fault(0x0) names[2]="uplink" arg2[0]=*fault(0x72657375)`}},
		{"p read names=+0(%dx):ustring[2]", args(0, ubuf, 8, 0), nil, []string{"entry names[0]=fault(0x8) names[1]=fault(0x8)"}},
		{"r read names=+0(count):string[1] $retval", args(0, 0, 0xffff_ffff_8100_1108, 0), []uint64{3}, []string{`call names[0]="eth0" arg2=3`}},
		// An argument is read from its register.
		{"p open n=$arg1:u64 dfd:s64 $arg1:x32 m=$arg1 c=$arg1:b8@32/64", args(0xabcd_0000_ffff_ff9c, 0), nil,
			[]string{"entry n=12379550955006328732 dfd=-6067193118703222884 arg3=4294967196 m=-100 c=0"}},
		{"r send a=$retval:s64 b=$retval", args(0, 0), []uint64{0xabcd_0000_ffff_fffe}, []string{"return a=-6067193118703222786 b=-2"}},
		// Arguments and members.
		{"p read count n=$arg3:u8 buf->err buf->dev->index buf->type buf->delta", args1(0x105), nil,
			[]string{"entry count=261 n=5 arg3=-1 arg4=42 arg5=5 arg6=-2"}},
		{"p read $arg*", args(1, 2, 3, 4), nil, []string{"entry buf=1 ubuf=2 count=3 pos=4"}},
		{"p read $arg* %dx x=%si:u8", args(1, 2, 3, 4), nil, []string{"entry buf=1 ubuf=2 count=3 pos=4 arg5=3 x=2"}},
		{"p read buf->dev->alias:string buf->dev->name:string ubuf:ustring $comm", args(0, ubuf, 0, 0), nil,
			[]string{`entry arg1=fault(0x0) arg2=fault(0x0) ubuf="user" arg4="worker"`}},
		{"p read buf->cookie:x16 buf->stamp.tv_sec:s32", args1(5), nil, []string{"entry arg1=4660 arg2=0"}},
		{"p read +0(buf->dev):string", args1(5), nil, []string{`entry arg1="eth0"`}},
		// Values as they were at entry.
		{"r read $retval count", args(0, 0, 5, 0), []uint64{3}, []string{"call count=5 arg1=3"}},
		{"r read count", args(0, 0, 5, 0), []uint64{3}, []string{"call count=5"}},
		{"r read buf->len $retval:s32 $comm", args1(5), []uint64{neg}, []string{`call arg1=105 arg2=-1 arg3="worker"`}},
		{"r open $retval->len", func(uint64) []uint64 { return []uint64{0, 0} }, []uint64{0}, []string{"return arg1=fault(0x0)"}},
		{"f read%return count $retval", args(0, 0, 5, 0), []uint64{3}, []string{"call count=5 arg2=3"}},
		{"f read count", args(0, 0, 5, 0), nil, []string{"entry count=5"}},
		// The syntax of 2009.
		{"p:x read a2 +0(a0) s0", args1(5), nil, []string{"entry a2=5 arg2=18446744069414584425 s0=0"}},
		{"r:x read rv a2", args(0, 0, 5, 0), []uint64{3}, []string{"call a2=5 rv=3"}},
		// Filters.
		{"p read n=%dx:u8 if n == 5", args1(0x105), nil, []string{"entry n=5"}},
		{"p read n=%dx:u8 if n == 6 || n & 2", args1(0x105), nil, nil},
		{"p read n=%dx:s8 if n & 0x80", args1(0x80), nil, []string{"entry n=-128"}},
		{"p read n=%dx:s8 if n & 0x80", args1(0x17f), nil, nil},
		{"p read n=%dx:u8 if !n == 6 && n & 4 && n <= 5", args1(0x105), nil, []string{"entry n=5"}},
		{"p read n=%dx:s8 if n < 0", args1(0xff), nil, []string{"entry n=-1"}},
		{"p read m=+0(%di):u32 if m != 5", args(0, 0, 0, 0), nil, nil},
		{"p read m=+0(%di):u32 if !m != 5", args(0, 0, 0, 0), nil, nil},
		{"p read if common_pid == 8 && cpu == 3 && comm == worker", args1(0), nil, []string{"entry"}},
		{"p read if cpu & CPUS{0-1,3}", args1(0), nil, []string{"entry"}},
		{"p read if cpu & CPUS{0-1,4}", args1(0), nil, nil},
		{"p read if !cpu & CPUS{0-1,4-5}", args1(0), nil, []string{"entry"}},
		{"p read if !cpu & CPUS{2-4}", args1(0), nil, nil},
		{"p read if cpu == CPUS{3} && cpu != CPUS{4}", args1(0), nil, []string{"entry"}},
		{"p read if cpu != CPUS{3}", args1(0), nil, nil},
		{`p read p=%si if p.ustring == "user"`, args(0, ubuf, 0, 0), nil, []string{"entry p=140733193388032"}},
		{`p read ubuf if ubuf.ustring ~ "x*"`, args(0, ubuf, 0, 0), nil, nil},
		{"p read if common_pid == 7", args1(0), nil, nil},
		{"r read ret=$retval if ret < 0", args1(0), []uint64{neg}, []string{"return ret=-1"}},
		{"r read ret=$retval count if ret == -11 && count == 5", args(0, 0, 5, 0), []uint64{neg - 10}, []string{"call count=5 ret=-11"}},
		{"r read ret=$retval count if ret == -11 || count == 6", args(0, 0, 5, 0), []uint64{neg - 9}, nil},
		{`p read d=+0(+8(%di)):string if d == "eth0"`, args1(5), nil, []string{`entry d="eth0"`}},
		{`p read d=+0(+8(%di)):string if d ~ "*1"`, args1(5), nil, nil},
		{`p read d=+0(+8(%di)):string if d ~ "et*"`, args1(5), nil, []string{`entry d="eth0"`}},
		{`p read d=+0(+24(+8(%di))):string if d ~ "up*"`, args1(5), nil, []string{`entry d="uplink"`}},
		{`p read d=ubuf:ustring if d ~ "us*"`, args(0, ubuf, 0, 0), nil, []string{`entry d="user"`}},
		{`p read d=+u0(%si):string if d ~ "us*"`, args(0, ubuf, 0, 0), nil, []string{`entry d="user"`}},
		// Predicates on the symbol at an address.
		{"p read n=%dx if n.function == open && n.function != send", args1(0xffff_ffff_8100_0200), nil, []string{"entry n=18446744071578845696"}},
		{"p read n=%dx if n.function == open", args1(0xffff_ffff_8100_02ff), nil, []string{"entry n=18446744071578845951"}},
		{"p read n=%dx if n.function == open", args1(0xffff_ffff_8100_0300), nil, nil},
		{"p read n=%dx if n.function == open", args1(0xffff_ffff_8100_01ff), nil, nil},
		{"p read n=%dx if n.function != open || !n.function == open", args1(0xffff_ffff_8100_0210), nil, nil},
		{"p read n=%dx if !n.function != open", args1(0xffff_ffff_8100_0210), nil, []string{"entry n=18446744071578845712"}},
		{"p read n=%dx if n.function == twin", args1(0xffff_ffff_8100_0e01), nil, []string{"entry n=18446744071578848769"}},
		{"p read n=%dx if n.function == 0xffffffff81000210", args1(0xffff_ffff_8100_0201), nil, []string{"entry n=18446744071578845697"}},
		{"p read count if count.function == open", args1(0xffff_ffff_8100_0201), nil, []string{"entry count=18446744071578845697"}},
		{`p read n=%dx:symstr if n ~ "t*" && n ~ "tw[a-k]n*" || n ~ "read+*"`, args1(0xffff_ffff_8100_0d10), nil, []string{"entry n=18446744071578848528"}},
		{`p read n=%dx:symstr if n ~ "t*" && n ~ "t[!w]*"`, args1(0xffff_ffff_8100_0d10), nil, nil},
		{`p read n=%dx:symstr if n ~ "open+*"`, args1(0xffff_ffff_8100_0110), nil, nil},
		{`p read n=%dx:symstr if !n ~ "open*"`, args1(0xffff_ffff_8100_0110), nil, []string{"entry n=18446744071578845456"}},
		{`p read n=+0(%dx):symstr if n ~ "*"`, args1(0), nil, nil},
		{"p read $arg* if count == 3 && cpu == 3", args(1, 2, 3, 4), nil, []string{"entry buf=1 ubuf=2 count=3 pos=4"}},
	} {
		t.Run(tc.line, func(t *testing.T) {
			backEnds(t, func(t *testing.T, f compiler.Features) {
				r := newRig(t, f, compiler.Options{}, tc.line)
				r.put(0xffff_ffff_8100_1100, le(uint32(1234), uint32(99)))
				r.put(ubuf, []byte("user\x00\x00\x00\x00"))
				r.put(0xffff_ffff_8100_1108, le(r.alloc([]byte("eth0\x00")), uint64(0), r.alloc([]byte("uplink\x00"))))
				buf, _ := bufAndDev(r.machine)
				r.do(call{args: tc.args(buf), result: tc.ret})
				if tc.want == nil {
					require.Empty(t, r.shown())
					return
				}
				require.Equal(t, tc.want, r.shown())
			})
		})
	}
}

// Arguments of tracepoints can be referred to by name and by number.
func TestTracepointEvent(t *testing.T) {
	r := newRig(t, compilertest.WithTrampoline, compiler.Options{}, "t tick cpu len=+0($arg2):u32 if cpu == 3")
	buf, _ := bufAndDev(r.machine)
	r.do(call{args: []uint64{3, buf}})
	r.do(call{args: []uint64{2, buf}})
	require.Equal(t, []string{"entry cpu=3 len=105"}, r.shown())
}

// Registers, the stack and places inside of functions need kprobes, whatever
// the kernel supports.
func TestEventAttach(t *testing.T) {
	for _, tc := range []struct {
		line string
		want compiler.Attach
	}{
		{"p read count", compiler.Attach{Entry: compiler.Fentry, Return: compiler.Fexit}},
		{"p read %di", compiler.Attach{Entry: compiler.Kprobe, Return: compiler.Kretprobe}},
		{"p read $stack0", compiler.Attach{Entry: compiler.Kprobe, Return: compiler.Kretprobe}},
		{"p read if cpu == 3", compiler.Attach{Entry: compiler.Fentry, Return: compiler.Fexit}},
		{"p read+4", compiler.Attach{Entry: compiler.Kprobe, Return: compiler.Kretprobe}},
		{"r read %ax count", compiler.Attach{Entry: compiler.Kprobe, Return: compiler.Kretprobe}},
		{"r read $retval count", compiler.Attach{Entry: compiler.Fentry, Return: compiler.Fexit}},
	} {
		for _, f := range []compiler.Features{compilertest.WithTrampoline, compilertest.WithProbes} {
			plan, err := resolve.All(compilertest.ParseAll(t, tc.line), compilertest.NewTarget(t, f), resolve.Wishes{})
			require.NoError(t, err, tc.line)
			want := tc.want
			if !f.Trampoline {
				want = compiler.Attach{Entry: compiler.Kprobe, Return: compiler.Kretprobe}
			}
			require.Equal(t, want.Entry, plan.Probes[0].Attach.Entry, tc.line)
			require.Equal(t, want.Return, plan.Probes[0].Attach.Return, tc.line)
		}
	}
	_, err := resolve.All(compilertest.ParseAll(t, "p read %di"), compilertest.NewTarget(t, compilertest.WithKprobeSession), resolve.Wishes{Attach: compiler.KprobeMulti})
	require.EqualError(t, err, "attach kprobe.multi to read: registers, the stack and places inside of functions are for kprobes")
	_, err = resolve.All(compilertest.ParseAll(t, "p read %di"), compilertest.NewTarget(t, compiler.Features{NoKprobe: "perf_event_paranoid is 3", KprobeMulti: true}), resolve.Wishes{})
	require.ErrorContains(t, err, "perf_event_paranoid is 3, and registers, the stack")
}

// On some kernels, a kretprobe provides the return address. On others, the address is
// read at entry from the top of the stack, or on arm64 from the link register.
func TestReturnAddress(t *testing.T) {
	lines := []string{
		"r read rv ra", "r read ra:symbol if __probe_ret_ip.function == open", "r read if __probe_ret_ip.function != open",
		"r read count if __probe_ret_ip == 0xffffffff81000210 && count == 5",
	}
	for _, tc := range []struct {
		types []btf.Type
		want  []string
	}{
		{nil, []string{"call ra=18446744071578845712 rv=3", "call ra=18446744071578845712", "call count=5"}},
		{[]btf.Type{compilertest.Function("rethook_find_ret_addr", compilertest.Long)},
			[]string{"return rv=3 ra=18446744071578845712", "return ra=18446744071578845712", "call count=5 __probe_ret_ip=18446744071578845712"}},
	} {
		for _, end := range semanticBackEnds {
			target := compilertest.NewTarget(t, end.features, tc.types...)
			target.Arch = end.arch
			r := newRigOn(t, target, compiler.Options{}, resolve.Wishes{}, lines...)
			r.do(call{args: []uint64{0, 0, 5, 0}, result: []uint64{3}, caller: 0xffff_ffff_8100_0210})
			require.Equal(t, tc.want, r.shown())
		}
	}
}

// Lines that ask for a kretprobe show the return address by default, if a
// kretprobe provides it and can be created.
func TestCallerShown(t *testing.T) {
	knows := compilertest.Function("rethook_find_ret_addr", compilertest.Long)
	for _, tc := range []struct {
		line   string
		want   string
		wishes resolve.Wishes
		types  []btf.Type
	}{
		{"r read rv", "return rv=3 __probe_ret_ip=18446744071578845712", resolve.Wishes{}, []btf.Type{knows}},
		{"p read%return rv", "return rv=3 __probe_ret_ip=18446744071578845712", resolve.Wishes{Attach: compiler.Kprobe}, []btf.Type{knows}},
		{"r read rv", "return rv=3", resolve.Wishes{Attach: compiler.Fentry}, []btf.Type{knows}},
		{"f read%return $retval", "return arg1=3", resolve.Wishes{}, []btf.Type{knows}},
		{"r read rv", "return rv=3", resolve.Wishes{}, nil},
		{"p read a0", "entry a0=0", resolve.Wishes{}, []btf.Type{knows}},
	} {
		target := compilertest.NewTarget(t, compilertest.WithTrampoline, tc.types...)
		plan, err := resolve.All(compilertest.ParseAll(t, tc.line), target, tc.wishes)
		require.NoError(t, err)
		unit, err := generate(plan.Probes, compiler.Options{RingBytes: 1 << 20})
		require.NoError(t, err)
		r := withMachine(t, unit, compiler.AMD64)
		r.do(call{args: []uint64{0, 0, 5, 0}, result: []uint64{3}, caller: 0xffff_ffff_8100_0210})
		require.Equal(t, []string{tc.want}, r.shown(), tc)
	}
	f := compilertest.WithTrampoline
	f.NoKprobe = "perf_event_paranoid is 3"
	target := compilertest.NewTarget(t, f, knows)
	plan, err := resolve.All(compilertest.ParseAll(t, "r read rv"), target, resolve.Wishes{})
	require.NoError(t, err)
	require.Equal(t, compiler.Fexit, plan.Probes[0].Attach.Return)
}

// If the return address of a function is shown, the function has no probe that
// hides it.
func TestReturnAddressAlone(t *testing.T) {
	for _, other := range []string{"read(count, return == 3)", "f read%return count"} {
		plan, err := resolve.All(compilertest.ParseAll(t, "r read ra", other, "f open%return $retval"), compilertest.NewTarget(t, compilertest.WithKprobeSession), resolve.Wishes{})
		require.NoError(t, err)
		require.Equal(t, compiler.Kretprobe, plan.Probes[1].Attach.Return, other)
		require.Equal(t, compiler.KretprobeMulti, plan.Probes[2].Attach.Return)
	}
}

// A line that names nothing of BTF may use functions that BTF does not
// describe.
func TestUntypedEvent(t *testing.T) {
	for _, tc := range []struct{ line, want string }{
		{"p assembly %di $arg2 $arg3:u8 $arg7 $stack1:s32 +0($stack) if arg2 == 2", "entry arg1=1 arg2=2 arg3=3 arg4=7 arg5=7 arg6=0"},
		{"r assembly $retval rv:s8 a1", "call a1=2 arg1=255 rv=-1"},
		{"p vmlinux:assembly+4 %di", "entry arg1=1"},
		{"p 0xffffffff81001004 %si", "entry arg1=2"},
	} {
		r := newRig(t, compilertest.WithKprobeSession, compiler.Options{}, tc.line)
		r.do(call{args: []uint64{1, 2, 3, 4, 5, 6, 7}, result: []uint64{255}})
		require.Equal(t, []string{tc.want}, r.shown(), tc.line)
		require.Equal(t, "BTF does not describe the function", r.unit.Probes()[0].Attach.Reason)
	}
	// Several functions share a name, and BTF does not tell which of them it
	// describes.
	require.Len(t, newRig(t, compilertest.WithKprobeSession, compiler.Options{}, "p twin $arg1").unit.Attachments, 2)
}

// A line may set the number of concurrent calls that a kretprobe follows.
func TestMaxActive(t *testing.T) {
	f := compilertest.WithProbes
	f.ReturnInstances = 4096
	for line, want := range map[string]int{"r8 read %ax": 8, "r8 read $retval": 8, "r read": 4096, "r4096:a read": 4096} {
		r := newRig(t, f, compiler.Options{}, line)
		require.Equal(t, want, r.unit.Attachments[0].ReturnInstances, line)
	}
}

// Errors for lines that do not fit the kernel have their position in the file.
func TestErrorsOfFiles(t *testing.T) {
	traces, err := kprobe.ParseFile("probes.txt", "p read\n\np:x read cuont\nraed\n")
	require.NoError(t, err)
	_, err = resolve.All(traces, compilertest.NewTarget(t, compilertest.WithProbes), resolve.Wishes{})
	require.ErrorContains(t, err, "probes.txt:3:10: read has no argument 'cuont'\n")
	require.ErrorContains(t, err, "probes.txt:4:1: there is no function raed in this kernel\n")
}

// An offset is relative to the beginning of the function.
func TestEventOffset(t *testing.T) {
	r := newRig(t, compilertest.WithKprobeSession, compiler.Options{}, "p read+16 %dx")
	require.Len(t, r.unit.Attachments, 1)
	require.Equal(t, uint64(16), r.unit.Attachments[0].Places[0].Offset)
	r.do(call{args: []uint64{0, 0, 5, 0}})
	require.Equal(t, []string{"entry arg1=5"}, r.shown())
}

// An address is resolved to the function that contains it.
func TestEventAddress(t *testing.T) {
	r := newRig(t, compilertest.WithKprobeSession, compiler.Options{}, "p 0xffffffff81000110 %dx", "p 0xffffffff81000100 count", "r 0xffffffff81000100 count")
	var offsets []uint64
	for _, a := range r.unit.Attachments {
		require.Equal(t, uint64(0xffffffff81000100), a.Places[0].Addr)
		offsets = append(offsets, a.Places[0].Offset)
	}
	require.Equal(t, []uint64{16, 0, 0}, offsets)
	r.do(call{args: []uint64{0, 0, 5, 0}})
	require.Equal(t, []string{"entry arg1=5", "entry count=5", "call count=5"}, r.shown())
	require.Equal(t, "p 0xffffffff81000110 %dx", r.unit.Probes()[0].Trace.String())
	require.Equal(t, "p_0xffffffff81000110", r.unit.Probes()[0].Trace.EventName())
	require.Nil(t, resolve.Symbols(compilertest.ParseAll(t, "p 0xff")).Keep)
}

func TestEventErrors(t *testing.T) {
	for _, tc := range []struct{ line, want string }{
		{"p 0xff", `
the function at 0xff is not known: it is in none
  p 0xff
    ^^^^`},
		{"p 0xffffffff81001104", `
the function at 0xffffffff81001104 is not known: it is in none
  p 0xffffffff81001104
    ^^^^^^^^^^^^^^^^^^`},
		{"r 0xffffffff81000110", `
the return of a function has no offset, and this is read+16
  r 0xffffffff81000110
    ^^^^^^^^^^^^^^^^^^
  write 0xffffffff81000100`},
		{"p read+256", `
read has 256 bytes, and the offset 256 is behind them
  p read+256
    ^^^^`},
		{"p assembly foo", `
assembly has no type in BTF, so its arguments are not known (it is not written in C, or BTF left it out)
  p assembly foo
    ^^^^^^^^`},
		{"p assembly $arg*", `
assembly has no type in BTF, so its arguments are not known (it is not written in C, or BTF left it out)
  p assembly $arg*
    ^^^^^^^^`},
		{"f assembly", `
assembly has no type in BTF, so its arguments are not known (it is not written in C, or BTF left it out)
  f assembly
    ^^^^^^^^`},
		{"p jiffies", `
jiffies is data, not a function
  p jiffies
    ^^^^^^^
  write ksnoop print '@jiffies'`},
		{"p cloned %di", `
this kernel has cloned only as cloned.isra.0, with arguments that may differ from its type
  p cloned %di
    ^^^^^^
  to trace it anyway, use this name: cloned.isra.0`},
		{"p visit page.dev:string[2]", `
'page.dev' is passed by value, and no array in memory
  p visit page.dev:string[2]
          ^^^^^^^^`},
		{"p visit page.dev:u8[2]", `
'page.dev' is passed by value, and no array in memory
  p visit page.dev:u8[2]
          ^^^^^^^^`},
		{"p read n=%dx if n.function == raed", `
there is no function 'raed' in this kernel
  p read n=%dx if n.function == raed
                                ^^^^
  did you mean 'read'?`},
		{"p read n=%dx if n.function == jiffies", `
there is no function 'jiffies' in this kernel
  p read n=%dx if n.function == jiffies
                                ^^^^^^^`},
		{"p read n=%dx if n.function == 0xff", `
there is no function at 0xff
  p read n=%dx if n.function == 0xff
                                ^^^^`},
		{"p open dfd if dfd.function == read", `
'dfd' is int, not an address of 64 bits
  p open dfd if dfd.function == read
                ^^^^^^^^^^^^`},
		{"p read n=%dx:symstr if n == read", `
'n' is a name with an offset and a size after it, so it is compared with a pattern that ends in '*'
  p read n=%dx:symstr if n == read
                              ^^^^
  write 'n ~ "read+*"'`},
		{"p read n=%dx:symstr if n ~ \"read+0x10/*\"", `
'n' is a name with an offset and a size after it, so it is compared with a pattern that ends in '*'
  p read n=%dx:symstr if n ~ "read+0x10/*"
                             ^^^^^^^^^^^^^
  write 'n ~ "read+*"'`},
		{"p read n=%dx:symstr if n ~ \"raed*\"", `
no symbol of this kernel has a name like 'raed*'
  p read n=%dx:symstr if n ~ "raed*"
                             ^^^^^^^`},
		{"p read %rdi", `
there is no register '%rdi' on amd64
  p read %rdi
         ^^^^
  did you mean '%di'?`},
		{"p read cuont", `
read has no argument 'cuont'
  p read cuont
         ^^^^^
  did you mean 'count'?`},
		{"p read $arg5", `
read has no $arg5: it takes 4
  p read $arg5
         ^^^^^
  arguments count from $arg1`},
		{"p raed %di", `
there is no function raed in this kernel
  p raed %di
    ^^^^
  did you mean 'read'?`},
		{"r free $retval", `
free returns void
  r free $retval
         ^^^^^^^`},
		{"p read buf->dev->indx", `
struct dev has no member 'indx'
  p read buf->dev->indx
                   ^^^^
  did you mean 'index'?`},
		{"p read buf->stamp", `
'buf->stamp' is struct timespec64, no number
  p read buf->stamp
         ^^^^^^^^^^
  name a member of it, or give it a type`},
		{"p read buf->len:string", `
'buf->len' is unsigned int: ':string' shows strings, behind a pointer or in an array of bytes
  p read buf->len:string
                  ^^^^^^`},
		{"p read +8(buf->len)", `
'buf->len' is unsigned int, not an address of 64 bits
  p read +8(buf->len)
            ^^^^^^^^`},
		{"p read +2000000000(%di)", `
the offset 2000000000 is more than a gigabyte
  p read +2000000000(%di)
         ^^^^^^^^^^^^^^^^`},
		{"p read @jifies", `
there is no variable 'jifies' in this kernel
  p read @jifies
          ^^^^^^
  did you mean '@jiffies'?`},
		{"p read $arg* if cuont == 5", `
the event has no field 'cuont'
  p read $arg* if cuont == 5
                  ^^^^^
  did you mean 'count'?`},
		{"p read count if count < 0", `
'count < 0' can never hold: 'count' is size_t (long unsigned int) and holds 0 to 18446744073709551615
  p read count if count < 0
                          ^`},
		{"r open ret=$retval if ret == -1", `
-1 does not fit 'ret', which is a pointer to struct buf and holds 0 to 18446744073709551615
  r open ret=$retval if ret == -1
                               ^^`},
		{"p read count if count == \"x\"", `
'count' is size_t (long unsigned int), which is not compared with a string
  p read count if count == "x"
                           ^^^`},
		{"p read if cpu == CPUS{1-2}", `
'cpu' is one processor, and CPUS{1-2} several
  p read if cpu == CPUS{1-2}
                   ^^^^^^^^^
  use '&' to ask whether it is one of them: cpu & CPUS{1-2}`},
		{"p read a=%di:u8 if a & CPUS{300}", `
300 does not fit 'a', which is u8 and holds 0 to 255
  p read a=%di:u8 if a & CPUS{300}
                         ^^^^^^^^^`},
	} {
		_, err := resolve.All(compilertest.ParseAll(t, tc.line), compilertest.NewTarget(t, compilertest.WithProbes), resolve.Wishes{})
		require.EqualError(t, err, tc.want[1:], tc.line)
	}
	_, err := resolve.All(compilertest.ParseAll(t, "p read", "p send"), compilertest.NewTarget(t, compilertest.WithProbes), resolve.Wishes{Chain: true})
	require.ErrorContains(t, err, "a chain is made of specs, and this is a kprobe_events line\n")
}
