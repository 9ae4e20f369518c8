package main

// specExamples is the language in examples.
const specExamples = `A SPEC is a function, in parentheses the values to record, each with an optional condition:

   vfs_read                                    every argument, and the return value
   vfs_read(file, return)                      these alone
   vfs_read(return < 0)                        only calls that fail
   vfs_read(return == -EINTR, $duration)       an error by name; how long the calls took
   ip_send_skb(skb->len > 100, skb, return)    a member, the whole structure, the outcome
   tcp_connect(sk->__sk_common.skc_daddr:ip4)  in a format
   vfs_read if count > 4096 || $comm ~ "c*"    a condition whose values are not shown
   tcp_*(sk->sk_err)                           all functions with such names that have it
   tp:sched_switch(prev->comm, next->comm)     a tracepoint

With -s, the functions are a call chain: 'ksnoop -s vfs_read rw_verify_area' shows calls of the second inside the first.
In a shell, put specs in single quotes. docs/spec.md describes the whole language.
Lines of the kernel's kprobe_events can take the place of specs, -f reads files of both: docs/kprobe-events.md.`
