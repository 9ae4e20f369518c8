package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/fixture"
	"github.com/ksnoop/ksnoop/compiler/compilertest"
)

// TestEventFormat covers what info prints for kprobe_events lines, with functions
// between them.
func TestEventFormat(t *testing.T) {
	knowsCaller := compilertest.Function("rethook_find_ret_addr", compilertest.Ulong)
	types := fixture.Write(t, knowsCaller)
	const common = `format:
	field:unsigned short common_type;	offset:0;	size:2;	signed:0;
	field:unsigned char common_flags;	offset:2;	size:1;	signed:0;
	field:unsigned char common_preempt_count;	offset:3;	size:1;	signed:0;
	field:int common_pid;	offset:4;	size:4;	signed:1;

`
	for _, tc := range []struct{ line, want string }{
		{"info|f:g/read vfs_read", "name: read\n" + common + `	field:unsigned long __probe_ip;	offset:8;	size:8;	signed:0;

print fmt: "(%lx)", REC->__probe_ip
`},
		{"info|r vfs_read $retval", "name: r_vfs_read_0\n" + common + `	field:unsigned long __probe_func;	offset:8;	size:8;	signed:0;
	field:unsigned long __probe_ret_ip;	offset:16;	size:8;	signed:0;
	field:s64 arg1;	offset:24;	size:8;	signed:1;

print fmt: "(%lx <- %lx) arg1=%Ld", REC->__probe_func, REC->__probe_ret_ip, REC->arg1
`},
		{"info|f vfs_read $retval", "name: vfs_read__exit\n" + common + `	field:unsigned long __probe_func;	offset:8;	size:8;	signed:0;
	field:s64 arg1;	offset:16;	size:8;	signed:1;

print fmt: "(<- %lx) arg1=%Ld", REC->__probe_func, REC->arg1
`},
		{"info|p:n vfs_read+4 %di:u8 %si:s16 %dx:x32 %cx:char b=%di:b3@1/32 w=%di:b7@0/64 s=%si:symbol", "name: n\n" + common + `	field:unsigned long __probe_ip;	offset:8;	size:8;	signed:0;
	field:u8 arg1;	offset:16;	size:1;	signed:0;
	field:s16 arg2;	offset:17;	size:2;	signed:1;
	field:u32 arg3;	offset:19;	size:4;	signed:0;
	field:u8 arg4;	offset:23;	size:1;	signed:0;
	field:u32 b;	offset:24;	size:4;	signed:0;
	field:u64 w;	offset:28;	size:8;	signed:0;
	field:u64 s;	offset:36;	size:8;	signed:0;

print fmt: "(%lx) arg1=%u arg2=%d arg3=0x%x arg4='%c' b=%u w=%Lu s=%pS", REC->__probe_ip, REC->arg1, REC->arg2, REC->arg3, REC->arg4, REC->b, REC->w, REC->s
`},
		{"info|p:s vfs_open path=+0($arg1):string u=+0($arg1):ustring y=+0($arg1):symstr t=\\\"text\":string c=$comm $comm", "name: s\n" + common + `	field:unsigned long __probe_ip;	offset:8;	size:8;	signed:0;
	field:__data_loc char[] path;	offset:16;	size:4;	signed:1;
	field:__data_loc char[] u;	offset:20;	size:4;	signed:1;
	field:__data_loc char[] y;	offset:24;	size:4;	signed:1;
	field:__data_loc char[] t;	offset:28;	size:4;	signed:1;
	field:__data_loc char[] c;	offset:32;	size:4;	signed:1;
	field:__data_loc char[] arg6;	offset:36;	size:4;	signed:1;

print fmt: "(%lx) path=\"%s\" u=\"%s\" y=\"%s\" t=\"%s\" c=\"%s\" arg6=\"%s\"", REC->__probe_ip, __get_str(path), __get_str(u), __get_str(y), __get_str(t), __get_str(c), __get_str(arg6)
`},
		{"info|p:a vfs_open w=+0($arg1):s64[2] x=+0($arg1):x8[1]", "name: a\n" + common + `	field:unsigned long __probe_ip;	offset:8;	size:8;	signed:0;
	field:s64 w[];	offset:16;	size:16;	signed:1;
	field:u8 x[];	offset:32;	size:1;	signed:0;

print fmt: "(%lx) w={%Ld,%Ld} x={0x%x}", REC->__probe_ip, REC->w[0], REC->w[1], REC->x[0]
`},
		{"info|vfs_read|t:tk tick $arg*|vfs_open", `long vfs_read(struct file *file, long count);

name: tk
` + common + `	field:unsigned long __probe_ip;	offset:8;	size:8;	signed:0;
	field:s32 cpu;	offset:16;	size:4;	signed:1;

print fmt: "(%lx) cpu=%d", REC->__probe_ip, REC->cpu

int vfs_open(char *path, struct file *file);
`},
	} {
		status, stdout, stderr := ksnoop(t, types, tc.line)
		require.Zero(t, status, stderr)
		require.Equal(t, tc.want, stdout, tc.line)
		require.Empty(t, stderr)
	}
}
