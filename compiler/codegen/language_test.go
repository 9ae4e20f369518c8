package codegen

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/compilertest"
	"github.com/ksnoop/ksnoop/compiler/resolve"
	"github.com/ksnoop/ksnoop/compiler/spec"
)

// What each spec shows of a call: all forms of values, formats, constants and
// conditions.
func TestLanguage(t *testing.T) {
	const neg = math.MaxUint64
	for _, tc := range []struct {
		spec string
		args func(buf uint64) []uint64
		ret  []uint64
		want []string
	}{
		// Values.
		{"read((*buf).len)", args1(0), nil, []string{"entry (*buf).len=105"}},
		{"read(buf[0].len == 105)", args1(0), nil, []string{"entry buf[0].len=105"}},
		{"read(buf->stamp.tv_nsec)", args1(0), nil, []string{"entry buf->stamp.tv_nsec=0"}},
		{"read(buf->dev->name[1] == 't')", args1(0), nil, []string{"entry buf->dev->name[1]=116"}},
		{"read(*buf->dev->alias == 'u')", args1(0), nil, []string{"entry *buf->dev->alias=117"}},
		{"read((*buf->dev).index)", args1(0), nil, []string{"entry (*buf->dev).index=42"}},
		{"read((u8)count)", args(0, 0, 0x1234, 0), nil, []string{"entry (u8)count=52"}},
		{"read((char)count)", args(0, 0, 0x12ff, 0), nil, []string{"entry (char)count=-1"}},
		{"read((int)(short)count == -1)", args(0, 0, 0x1ffff, 0), nil, []string{"entry (int)(short)count=-1"}},
		{"read((_Bool)count)", args(0, 0, 0x100, 0), nil, []string{"entry (_Bool)count=1"}},
		{"read((u16)buf->len)", args1(0), nil, []string{"entry (u16)buf->len=105"}},
		{"read(((struct dev *)buf->dev)->index)", args1(0), nil, []string{"entry ((struct dev *)buf->dev)->index=42"}},
		{"visit(((struct buf *)word)->len == 105)", func(buf uint64) []uint64 { return []uint64{0, 0, 0, 0, buf} }, nil,
			[]string{"entry ((struct buf *)word)->len=105"}},
		{"read(((struct timespec64 *)buf->dev->name)->tv_sec)", args1(0), nil,
			[]string{"entry ((struct timespec64 *)buf->dev->name)->tv_sec=812151909"}},
		{"read(*(u32 *)buf == 105)", args1(0), nil, []string{"entry *(u32 *)buf=105"}},
		{"read((void *)(u64)(u8)count)", args(0, 0, 0x1234, 0), nil, []string{"entry (void *)(u64)(u8)count=52"}},
		{"open((void *)(long)dfd)", args(0x12345678_fffffffe, 0), nil, []string{"entry (void *)(long)dfd=18446744073709551614"}},
		{"read((void *)(long)buf->err)", args1(0), nil, []string{"entry (void *)(long)buf->err=18446744073709551615"}},
		{"read((void *)return > NULL)", args1(0), []uint64{neg}, []string{"return (void *)return=18446744073709551615"}},
		// Parts of structures that are passed by value.
		{"times(lhs.tv_nsec == 2, rhs.tv_sec)", args(1, 2, 3, 4), nil, []string{"entry lhs.tv_nsec=2 rhs.tv_sec=3"}},
		{"times(return.tv_nsec == 6)", args(1, 2, 3, 4), []uint64{4, 6}, []string{"return return.tv_nsec=6"}},
		{"visit(page.flags == 7, page.delta == -2, page.mark)", args(0, 0, 0x0000_097e_0000_0007, 0, 0), nil,
			[]string{"entry page.flags=7 page.delta=-2 page.mark=9"}},
		{"visit(page.flags:be == 7)", args(0, 0, 0x0700_0000, 0, 0), nil, []string{"entry page.flags=7"}},
		{`visit(page.flags:ip4 == "7.0.0.255")`, args(0, 0, 0xff00_0007, 0, 0), nil, []string{"entry page.flags=4278190087"}},
		{"spill(t.tv_nsec)", args(1, 2, 3, 4, 5, 6, 7, 8), nil, []string{"entry t.tv_nsec=7"}},
		// Builtins.
		{"read($pid, $tid, $cpu, $uid, $cgroup, $comm)", args1(0), nil, []string{`entry $pid=7 $tid=8 $cpu=3 $uid=1000 $cgroup=4242 $comm="worker"`}},
		{"read($container) if $cgroup == 4242", args1(0), nil, []string{"entry $container=4242"}},
		{"read($arg3 == 5, $retval == 3)", args(0, 0, 5, 0), []uint64{3}, []string{"call $arg3=5 $retval=3"}},
		{"read($pid, return)", args(0, 0, 5, 0), []uint64{3}, []string{"return $pid=7 return=3"}},
		{"read($duration, return)", args(0, 0, 5, 0), []uint64{3}, []string{"return $duration=10 return=3"}},
		{"read($duration > 9ns, count)", args(0, 0, 5, 0), []uint64{3}, []string{"call count=5 $duration=10"}},
		{"read(count, $duration)", args(0, 0, 5, 0), []uint64{3}, []string{"entry count=5", "return $duration=10"}},
		{"read($duration > 10)", args(0, 0, 5, 0), []uint64{3}, nil},
		{"read($kstack)", args1(0), nil, []string{"entry $kstack=512 bytes of 512"}},
		{"read($ppid == 5, $task->real_parent->tgid, $task->tgid)", args1(0), nil, []string{"entry $ppid=5 $task->real_parent->tgid=5 $task->tgid=7"}},
		{`read(count) if $task->real_parent->comm == "parent"`, args1(3), nil, []string{"entry count=3"}},
		{"read(return) if $task->tgid == $pid && $ppid != $pid", args1(3), nil, []string{"return return=0"}},
		{"read(return) if $task->tgid == $pid && count == 3", args1(3), nil, []string{"call return=0"}},
		{"read($task->real_parent->real_parent->tgid)", args1(0), nil, []string{"entry $task->real_parent->real_parent->tgid=fault(0x0)"}},
		{"read((u32)$task->tgid + $ppid * 2)", args1(0), nil, []string{"entry (u32)$task->tgid + $ppid * 2=17"}},
		{"read(($task->real_parent + 0)->tgid)", args1(0), nil, []string{"entry ($task->real_parent + 0)->tgid=5"}},
		// Values at return, through the arguments of the entry.
		{"read(after(buf->len) == 105, count)", args1(5), nil, []string{"call count=5 after(buf->len)=105"}},
		{"read(after(buf->dev->name))", args1(5), nil, []string{`call after(buf->dev->name)="eth0"`}},
		{"read(count) if after(buf->len) != 105", args1(5), nil, nil},
		{"read(after(buf->len) - buf->len, after($cpu))", args1(5), nil, []string{"call after(buf->len) - buf->len=0 after($cpu)=3"}},
		{"read(after($comm))", args1(5), nil, []string{`return after($comm)="worker"`}},
		{"read($comm, after($comm))", args1(5), nil, []string{`call $comm="worker" after($comm)="worker"`}},
		{"read(return) if after($cpu) == $cpu", args1(5), []uint64{9}, []string{"call return=9"}},
		{"read(count) if after(buf->len + count) == return", args1(5), []uint64{110}, []string{"call count=5"}},
		{"read(after(buf->len))", args(0, 0, 5, 0), nil, []string{"call after(buf->len)=fault(0x0)"}},
		{"read(count) if !(after(buf->len) == 3)", args(0, 0, 5, 0), nil, nil},
		{"read(after(ubuf):ustring)", args(0, 0x7fff_0000_0000, 5, 0), nil, []string{`call after(ubuf)="user"`}},
		// Formats.
		{"read(count:x16 == 0x1234)", args(0, 0, 0xff1234, 0), nil, []string{"entry count=4660"}},
		{"read(count:s8 == -1)", args(0, 0, 0xff, 0), nil, []string{"entry count=-1"}},
		{"open(dfd:be == 0x01020304)", args(0x04030201, 0), nil, []string{"entry dfd=16909060"}},
		{`open(dfd:ip4 == "1.2.3.255")`, args(0xff030201, 0), nil, []string{"entry dfd=-16580095"}},
		{`open(dfd:ip4 == "1.2.3.4")`, args(0x04030201, 0), nil, []string{"entry dfd=67305985"}},
		// Addresses, by their length.
		{`open(dfd:ip == "1.2.3.4")`, args(0x04030201, 0), nil, []string{"entry dfd=67305985"}},
		{`read(count) if buf->dev->name:ip == "6574:6830::"`, args1(5), nil, []string{"entry count=5"}},
		{`read(count) if buf->dev->name:ip6 == "6574:6830::1"`, args1(5), nil, nil},
		{`read(count) if buf->dev->name:ip6 != "6574:6830::1"`, args1(5), nil, []string{"entry count=5"}},
		{`read(count) if buf->dev->name:ip6 != "6574:6831::"`, args1(5), nil, []string{"entry count=5"}},
		{`read(count) if !(buf->dev->name:ip6 == "6574:6830::")`, args1(5), nil, nil},
		{`read(count) if buf->dev->name:ip6 != "::1"`, args(0, 0, 5, 0), nil, nil},
		{`read(count) if buf->dev:ip4 == "101.116.104.48"`, args1(5), nil, []string{"entry count=5"}},
		{`read(count) if buf->dev:ip6 == "6574:6830::"`, args1(5), nil, []string{"entry count=5"}},
		{`read(count) if buf->dev:ip4 != "1.2.3.4"`, args(0, 0, 5, 0), nil, nil},
		{`times(lhs.tv_sec) if lhs:ip6 == "100::200:0:0:0"`, args(1, 2, 3, 4), nil, []string{"entry lhs.tv_sec=1"}},
		{`times(lhs.tv_sec) if return:ip == "600::700:0:0:0"`, args(1, 2, 3, 4), []uint64{6, 7}, []string{"call lhs.tv_sec=1"}},
		{"read(buf->dev->name:string)", args1(0), nil, []string{`entry buf->dev->name="eth0"`}},
		{"read(ubuf:ustring)", args(0, 0x7fff_0000_0000, 5, 0), nil, []string{`entry ubuf="user"`}},
		{"read(ubuf:ustring)", args(0, 0x7ffe_0000_0000, 5, 0), nil, []string{"entry ubuf=*fault(0x7ffe00000000)"}},
		{"read(ubuf:ustring)", args(0, neg, 5, 0), nil, []string{"entry ubuf=*fault(0xffffffffffffffff)"}},
		// Constants.
		{"work(mode == RESUME)", args(1, 0, 0), nil, []string{"entry mode=1"}},
		{"work(why == BAD)", args(0, 0xffff_ffff, 0), nil, []string{"entry why=-1"}},
		{"work(now == true)", args(0, 0, 1), nil, []string{"entry now=1"}},
		{"read(return == -EAGAIN)", args1(0), []uint64{neg - 10}, []string{"return return=-11"}},
		{"open(return == -ENOENT)", args(0, 0), []uint64{neg - 1}, []string{"return return=*fault(0xfffffffffffffffe)"}},
		{"read(count & O_DIRECT)", args(0, 0, 0x4001, 0), nil, []string{"entry count=16385"}},
		{"read(count & O_DIRECT)", args(0, 0, 0x8001, 0), nil, nil},
		{"read(count == O_RDWR)", args(0, 0, 2, 0), nil, []string{"entry count=2"}},
		// Error pointers.
		{"open(return is-err)", args(0, 0), []uint64{neg - 1}, []string{"return return=*fault(0xfffffffffffffffe)"}},
		{"open(return:x is-err)", args(0, 0), []uint64{neg - 4094}, []string{"return return=18446744073709547521"}},
		{"open(return:x is-err)", args(0, 0), []uint64{neg - 4095}, nil},
		{"open(return:x is-err)", args(0, 0), []uint64{0}, nil},
		{"open(return:x) if !(return is-err)", args(0, 0), []uint64{0}, []string{"return return=0"}},
		{"open(return:x) if !(return is-err)", args(0, 0), []uint64{neg}, nil},
		{"read(count is-err)", args(0, 0, neg-27, 0), nil, []string{"entry count=18446744073709551588"}},
		{"read(count) if ubuf is-err || buf->dev->alias is-err", args(0, neg-13, 5, 0), nil, []string{"entry count=5"}},
		{"read(count) if !(buf->dev->alias is-err)", args1(5), nil, []string{"entry count=5"}},
		{"read(count) if buf->dev->alias is-err", args1(5), nil, nil},
		// A value that cannot be read neither is nor is not an error pointer.
		{"read(count) if buf->dev->alias is-err", args(0, 0, 5, 0), nil, nil},
		{"read(count) if !(buf->dev->alias is-err)", args(0, 0, 5, 0), nil, nil},
		{"read(buf == NULL)", args(0, 0, 0, 0), nil, []string{"entry buf=*fault(0x0)"}},
		// Values that are computed, with C's widths.
		{"read(count - 5)", args(0, 0, 3, 0), nil, []string{"entry count - 5=18446744073709551614"}},
		{"read(count - 5 == 2)", args(0, 0, 7, 0), nil, []string{"entry count - 5=2"}},
		{"read(count * 2 + 1 << 4 >> 1)", args(0, 0, 7, 0), nil, []string{"entry count * 2 + 1 << 4 >> 1=120"}},
		{"many(a + b, a - b, a * b, (a & b), a | b, a << b, a >> b)", args(neg, 4, 0, 0, 0, 0, 0, 0), nil,
			[]string{"entry a + b=3 a - b=-5 a * b=-4 a & b=4 a | b=-1 a << b=-16 a >> b=-1"}},
		{"many(a + b)", args(0x7fffffff, 1, 0, 0, 0, 0, 0, 0), nil, []string{"entry a + b=-2147483648"}},
		{"read(buf->len - 106)", args1(0), nil, []string{"entry buf->len - 106=4294967295"}},
		{"read(buf->len - count)", args1(106), nil, []string{"entry buf->len - count=18446744073709551615"}},
		{"read((buf->len & 3) == 1)", args1(0), nil, []string{"entry buf->len & 3=1"}},
		{"read(count) if (buf->len & 0x60) + 1 == 0x61 && 1 << buf->type", args1(7), nil, []string{"entry count=7"}},
		{"read(count) if buf->len & 2", args1(7), nil, nil},
		{"read(count == 4 * 1k)", args(0, 0, 4096, 0), nil, []string{"entry count=4096"}},
		{"read((count & O_DIRECT) == O_DIRECT)", args(0, 0, 0x4001, 0), nil, []string{"entry count & O_DIRECT=16384"}},
		{"read(count) if count - (buf->len - (count - 5)) == 8", args1(59), nil, []string{"entry count=59"}},
		// Pointers move by what they point to.
		{"read(*(pos + 1))", args(0, 0, 0, 0xffff_8880_0000_0000), nil, []string{"entry *(pos + 1)=fault(0xffff888000000008)"}},
		{"read(buf->dev->index + 1, (count << 1) - buf->dev->index)", args(0xffff_8880_0000_0000, 0, 5, 0), nil,
			[]string{"entry buf->dev->index + 1=fault(0xffff888000000000) (count << 1) - buf->dev->index=fault(0xffff888000000000)"}},
		{"read(buf->dev->index - return)", args(0xffff_8880_0000_0000, 0, 5, 0), []uint64{3}, []string{"call buf->dev->index - return=fault(0xffff888000000000)"}},
		{"read((buf + 1):x, (1 + buf):x, (buf - 1):x, (buf->dev + 2 - buf->dev))", args(0, 0, 0, 0), nil,
			[]string{"entry buf + 1=64 1 + buf=64 buf - 1=18446744073709551552 buf->dev + 2 - buf->dev=fault(0x0)"}},
		{"read(buf->dev + 2 - buf->dev, buf->dev + 3 - buf->dev)", args1(0), nil, []string{"entry buf->dev + 2 - buf->dev=2 buf->dev + 3 - buf->dev=3"}},
		{"read(((struct buf *)((u8 *)buf + 4 - 4))->len == 105)", args1(0), nil, []string{"entry ((struct buf *)((u8 *)buf + 4 - 4))->len=105"}},
		{"read(((struct dev *)(buf->dev->name + (buf->len - 105)))->index)", args1(0), nil,
			[]string{"entry ((struct dev *)(buf->dev->name + (buf->len - 105)))->index=42"}},
		{"read(*(buf->dev->name + 1) == 't')", args1(0), nil, []string{"entry *(buf->dev->name + 1)=116"}},
		// Values compared with values, of both sides.
		{"read(return != count)", args(0, 0, 5, 0), []uint64{3}, []string{"call count=5 return=3"}},
		{"read(return != count)", args(0, 0, 5, 0), []uint64{5}, nil},
		{"read(return < count)", args(0, 0, 5, 0), []uint64{neg}, nil},
		{"read(return < (s64)count)", args(0, 0, 5, 0), []uint64{neg}, []string{"call (s64)count=5 return=-1"}},
		{"read(pos) if !(return == count)", args(0, 0, 5, 0), []uint64{3}, []string{"call pos=*fault(0x0)"}},
		{"read(count - return)", args(0, 0, 5, 0), []uint64{3}, []string{"call count - return=2"}},
		{"read(count, count - return)", args(0, 0, 5, 0), []uint64{3}, []string{"call count=5 count - return=2"}},
		{"read() if return == buf->len", args1(0), []uint64{105}, []string{"call"}},
		{"read() if return == buf->len - 1 && $pid == $tid - 1", args1(0), []uint64{104}, []string{"call"}},
		{"read() if return == buf->len", args(0, 0, 0, 0), []uint64{0}, nil},
		{"read() if return != buf->len || count == 5", args(0, 0, 5, 0), []uint64{0}, []string{"call"}},
		{"read(return - buf->len)", args(0xffff_8880_0000_0000, 0, 0, 0), []uint64{0}, []string{"call return - buf->len=fault(0xffff888000000000)"}},
		{"open(path - (char *)return == 0)", args(0, 0), []uint64{0}, []string{"call path - (char *)return=0"}},
		{"read($duration - 1 == count)", args(0, 0, 9, 0), []uint64{3}, []string{"call count=9 $duration - 1=9"}},
		{"read(return) if $duration > count + 1", args(0, 0, 9, 0), []uint64{3}, nil},
		{"read() if buf->dev != buf->owner", args1(0), nil, []string{"entry"}},
		{"many() if a < b && b > a && a != c", args(neg, 4, 0, 0, 0, 0, 0, 0), nil, []string{"entry"}},
		{"many() if a < (unsigned int)b", args(neg, 4, 0, 0, 0, 0, 0, 0), nil, nil},
		{"many() if a & b", args(6, 4, 0, 0, 0, 0, 0, 0), nil, []string{"entry"}},
		// Only the call.
		{"read()", args1(5), []uint64{3}, []string{"entry"}},
		{"read() if count == 5", args(0, 0, 5, 0), nil, []string{"entry"}},
		{"read() if count == 4", args(0, 0, 5, 0), nil, nil},
		{"read() if return == 3", args1(5), []uint64{3}, []string{"return"}},
		{"read() if return == 4", args1(5), []uint64{3}, nil},
		{"read() if count == 5 && return == 3", args(0, 0, 5, 0), []uint64{3}, []string{"call"}},
		// Conditions.
		{"read(count) if count == 5", args(0, 0, 5, 0), nil, []string{"entry count=5"}},
		{"read(count) if count != 5", args(0, 0, 5, 0), nil, nil},
		{"read(count) if count == 4 || count == 5", args(0, 0, 5, 0), nil, []string{"entry count=5"}},
		{"read(count) if !(count == 4 || count == 5)", args(0, 0, 5, 0), nil, nil},
		{"read(count) if !(count == 4 || count == 6)", args(0, 0, 5, 0), nil, []string{"entry count=5"}},
		{"read(count) if count & 4 && !(count & 2)", args(0, 0, 5, 0), nil, []string{"entry count=5"}},
		{"read(count & 2)", args(0, 0, 5, 0), nil, nil},
		{"read(count) if buf", args(0, 0, 5, 0), nil, nil},
		{"read(count) if !buf", args(0, 0, 5, 0), nil, []string{"entry count=5"}},
		{"read(count) if buf->ready", args1(5), nil, []string{"entry count=5"}},
		{"read(return) if count == 5", args(0, 0, 5, 0), []uint64{3}, []string{"call return=3"}},
		{"read(count) if return == 3", args(0, 0, 5, 0), []uint64{3}, []string{"call count=5"}},
		{"read(count) if return == 4", args(0, 0, 5, 0), []uint64{3}, nil},
		{"read(count) if buf->len == 105 || return == 4", args1(5), []uint64{3}, []string{"call count=5"}},
		{"read(count) if buf->len == 104 || return == 3", args1(5), []uint64{3}, []string{"call count=5"}},
		{"read(count) if buf->len == 104 || return == 4", args1(5), []uint64{3}, nil},
		{"read(count) if count == 4 || return == 3", args1(5), []uint64{3}, []string{"call count=5"}},
		{"read($pid) if $pid == 7 && $tid != 7", args1(5), nil, []string{"entry $pid=7"}},
		// If a value cannot be read, neither a predicate nor its opposite holds.
		{"read(count) if !(buf->len == 5)", args(0, 0, 5, 0), nil, nil},
		{"read(count) if !(buf->len != 5)", args(0, 0, 5, 0), nil, nil},
		{"read(count) if buf->len == 0 || count == 5", args(0, 0, 5, 0), nil, []string{"entry count=5"}},
		{"read(count) if !buf->len || !buf->err", args(0xffff_8880_0000_0000, 0, 5, 0), nil, nil},
		// Strings.
		{`read(buf->dev->name == "eth0")`, args1(5), nil, []string{`entry buf->dev->name="eth0"`}},
		{`read(buf->dev->name == "eth")`, args1(5), nil, nil},
		{`read(buf->dev->name == "eth00")`, args1(5), nil, nil},
		{`read(buf->dev->name != "eth00")`, args1(5), nil, []string{`entry buf->dev->name="eth0"`}},
		{`read(buf->dev->alias == "uplink")`, args1(5), nil, []string{`entry buf->dev->alias="uplink"`}},
		{`read(buf->dev->alias == "uplink2")`, args1(5), nil, nil},
		{`read(buf->dev->alias != "uplin")`, args1(5), nil, []string{`entry buf->dev->alias="uplink"`}},
		{`read(buf->dev->alias ~ "up*")`, args1(5), nil, []string{`entry buf->dev->alias="uplink"`}},
		{`read(buf->dev->alias ~ "*[a-l]?k")`, args1(5), nil, []string{`entry buf->dev->alias="uplink"`}},
		{`read(buf->dev->alias ~ "[!u]*")`, args1(5), nil, nil},
		{`read(buf->dev->name ~ "eth?")`, args1(5), nil, []string{`entry buf->dev->name="eth0"`}},
		{`read(count) if !(buf->dev->name ~ "eth?")`, args1(5), nil, nil},
		{`read(count) if !(buf->dev->name ~ "wlan*")`, args1(5), nil, []string{"entry count=5"}},
		{`read(count) if buf->dev->name ~ "*"`, args(0, 0, 5, 0), nil, nil},
		{`read(count) if $comm == "worker"`, args1(5), nil, []string{"entry count=5"}},
		{`read(count) if $comm ~ "*er" && $comm != "waiter"`, args1(5), nil, []string{"entry count=5"}},
		{`read(return) if buf->dev->name == "eth0"`, args1(5), []uint64{3}, []string{"call return=3"}},
		{`read(ubuf:ustring == "user")`, args(0, 0x7fff_0000_0000, 5, 0), nil, []string{`entry ubuf="user"`}},
		{`read(count) if ubuf != "user"`, args(0, 0x7fff_0000_0000, 5, 0), nil, nil},
	} {
		t.Run(tc.spec, func(t *testing.T) {
			backEnds(t, func(t *testing.T, f compiler.Features) {
				r := newRig(t, f, compiler.Options{}, tc.spec)
				buf, _ := bufAndDev(r.machine)
				r.put(0x7fff_0000_0000, []byte("user\x00"))
				r.do(call{args: tc.args(buf), result: tc.ret, during: func() { r.time += 10 }})
				if tc.want == nil {
					require.Empty(t, r.shown())
					return
				}
				require.Equal(t, tc.want, r.shown())
				requireNoCalls(t, r, "the call has returned")
			})
		})
	}
}

// A tracepoint's arguments have names, and are guarded against NULL.
func TestTracepoint(t *testing.T) {
	r := newRig(t, compilertest.WithTrampoline, compiler.Options{}, "tp:tick(cpu == 3, buf->len)")
	buf, _ := bufAndDev(r.machine)
	r.do(call{args: []uint64{3, buf}})
	r.do(call{args: []uint64{2, buf}})
	require.Equal(t, []string{"entry cpu=3 buf->len=105"}, r.shown())
}

// An argument of a tracepoint may be NULL although the verifier assumes that it
// is valid, so the program must not let the verifier decide comparisons.
func TestTracepointNull(t *testing.T) {
	r := newRig(t, compilertest.WithTrampoline, compiler.Options{}, "tp:tick(buf == NULL)", "tp:tick(cpu) if buf", "tp:tick((s32)buf != 2, buf & 4)")
	buf, _ := bufAndDev(r.machine)
	r.do(call{args: []uint64{3, 0}})
	require.Equal(t, []string{"entry buf=*fault(0x0)"}, r.shown())
	r.do(call{args: []uint64{3, buf}})
	require.Equal(t, []string{"entry cpu=3"}, r.shown())
}

// Variables are read at their address, per-CPU variables at that of this CPU.
func TestGlobals(t *testing.T) {
	backEnds(t, func(t *testing.T, f compiler.Features) {
		r := newRig(t, f, compiler.Options{}, "read(@jiffies == 1234, (u8)@jiffies)")
		r.put(0xffffffff81001100, le(uint64(1234)))
		r.do(call{args: []uint64{0, 0, 0, 0}})
		require.Equal(t, []string{"entry @jiffies=1234 (u8)@jiffies=210"}, r.shown())
	})
}

// A glob traces every function that has what the spec names. Functions whose
// programs are equal share one.
func TestGlob(t *testing.T) {
	target := compilertest.NewTarget(t, compilertest.WithKprobeSession)
	trace, err := spec.Parse("[rs]*(buf->len == 105)")
	require.NoError(t, err)
	plan, err := resolve.All([]*spec.Trace{trace}, target, resolve.Wishes{})
	require.NoError(t, err)
	require.Len(t, plan.Probes, 2)
	require.Equal(t, map[string]int{"it has no argument 'buf'": 1}, plan.LeftOut)

	trace, err = spec.Parse("*(a)")
	require.NoError(t, err)
	target.Features.ConsistentBTF = true
	plan, err = resolve.All([]*spec.Trace{trace}, target, resolve.Wishes{})
	require.NoError(t, err)
	unit, err := generate(plan.Probes, compiler.Options{RingBytes: 4096})
	require.NoError(t, err)
	var symbols []string
	for _, a := range unit.Attachments {
		for _, p := range a.Places {
			symbols = append(symbols, p.Symbol)
			require.Equal(t, p.Probe, unit.Events[p.Cookie].Probe)
		}
	}
	require.Equal(t, []string{"many", "pair", "pair", "twice", "twin", "twin", "spill"}, symbols)
	require.Len(t, unit.Attachments, 2, "int and long differ, nothing else does")
}

// Functions with one name are all traced, by address, if BTF guarantees that
// they are alike.
func TestSeveralFunctions(t *testing.T) {
	f := compilertest.WithTrampoline
	f.ConsistentBTF = true
	p := mustResolve(t, compilertest.NewTarget(t, f), "pair(a)")
	require.Equal(t, []uint64{0xffffffff81001800, 0xffffffff81001900}, p.Func.Addrs)
	require.Equal(t, "fentry takes a name, and several functions have this one", p.Attach.Reason)
}

// A copy that the compiler made is traced if it is named.
func TestSuffixed(t *testing.T) {
	p := mustResolve(t, compilertest.NewTarget(t, compilertest.WithTrampoline), "cloned.isra.0(a)")
	require.Equal(t, "cloned.isra.0", p.Func.Symbol)
	require.Equal(t, "BTF has no function of this name", p.Attach.Reason)
	require.Len(t, p.Func.Notes(), 1)
}

// Calls are counted if a predicate meets a fault.
func TestUnreadableIsCounted(t *testing.T) {
	for _, spec := range []string{
		"read(buf->len == 0)", "read(buf->len != 1, return)", "read(return) if buf->len || buf->err",
		`read(count) if buf->dev->name == "x"`, `read(count) if buf->dev->alias ~ "x*"`,
	} {
		backEnds(t, func(t *testing.T, f compiler.Features) {
			r := newRig(t, f, compiler.Options{}, spec)
			r.do(call{args: []uint64{0, 0, 5, 0}, result: []uint64{0}})
			require.Equal(t, uint64(1), r.counters(0).Unreadable, spec)
		})
	}
}

func (r *rig) counters(event int) compiler.Counters {
	return r.unit.Counters.Read(r.unit.Events[event], r.word)
}

// word returns a word of the counters' map.
func (r *rig) word(off int) uint64 {
	b, err := r.at(r.arrays[compiler.CountersMap]+uint64(off), 8)
	require.NoError(r.t, err)
	return binary.LittleEndian.Uint64(b)
}
