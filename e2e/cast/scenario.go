//go:build linux

package main

// title names the picture for those who do not see it.
const title = "ksnoop shows an open that fails, who writes to a variable, how long reads take, and judges a test"

// scenario lists the commands that are typed.
var scenario = []string{
	`ksnoop 'do_sys_openat2(filename:ustring, how, return < 0)' -- cat nosuchfile`,
	`ksnoop watch '(int)@panic_timeout' -- sh -c 'echo 5 > /proc/sys/kernel/panic'`,
	`ksnoop --comm wc 'vfs_read($comm, count(), hist($duration))' -- sh -c 'wc /proc/*/stat | tail -n 1'`,
	`cat connect.probes`,
	`ksnoop test connect.probes -- nc 127.0.0.1 99`,
}

// probes is the file connect.probes.
const probes = `ksnoop-probes 1
suite  connect
assert no-error  tcp_done(sk->sk_err != 0)  never  scope task
`
