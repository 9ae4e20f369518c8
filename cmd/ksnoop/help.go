package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"
)

// synopsis is what command lines look like.
const synopsis = `ksnoop [OPTIONS] [trace|info|list|compile] SPEC...
ksnoop [OPTIONS] -f FILE [SPEC...]
ksnoop [OPTIONS] SPEC... -- COMMAND [ARGUMENT...]
ksnoop test FILE [-- COMMAND [ARGUMENT...]]
ksnoop check [--btf FILE]... SPEC...
ksnoop dump TYPE < bytes
ksnoop doctor
ksnoop help [COMMAND|spec]`

// specExamples is the language in examples.
const specExamples = `A SPEC is a function, in parentheses the values to record, each with an
optional condition:

   vfs_read                                  all arguments, the return value
   vfs_read(file, return)                    these alone
   vfs_read(return < 0)                      only calls that fail
   vfs_read(return == -EINTR, $duration)     these calls alone, how long they took
   ip_send_skb(skb->len > 100, skb, return)  a member, the structure, the outcome
   vfs_read if count > 4096 || $comm ~ "c*"  a condition that is not shown
   tcp_*(sk->sk_err)                         all with such names that have it
   tp:sched_switch(prev->comm, next->comm)   a tracepoint

In a shell, put specs in single quotes. 'ksnoop help spec' explains the language
on one screen, docs/spec.md describes all of it. With -s, the functions are a
call chain: 'ksnoop -s vfs_read rw_verify_area' shows calls of the second inside
the first. Lines of the kernel's kprobe_events can take the place of specs, and
-f reads files of both: docs/kprobe-events.md.`

// specHelp is the language on one screen.
const specHelp = `SPEC: [MODULE:]FUNCTION or tp:TRACEPOINT [(ITEM, ITEM...)] [if CONDITION]
ITEM: VALUE[:FORMAT] [== != < <= > >= & ~ CONSTANT]   & a common bit, ~ a glob
VALUE: an argument, return, or $comm $pid $tid $cpu $uid $cgroup $duration
  $kstack $arg1... @variable; v->member v.member v[2] *v (struct file *)v
FORMAT: x d u c be u8...u64 s8... x8... string ustring symbol ip4 ip6 mac
CONSTANT: 10 0x1f 'a' "eth0" an enumerator -EINTR NULL true false 10ms
Items are recorded; all that have conditions must hold. No list: all arguments,
and the return value. Entry and return with a condition make one event.

  vfs_read                                every argument, and the return value
  vfs_read(file, count, return)           a structure behind a pointer is whole
  vfs_read(file->f_flags:x, return < 0)   only calls that fail; one event each
  vfs_read(return == -EINTR, $duration)   an error by name; how long calls took
  vfs_open(path->dentry->d_name.name:string ~ "*.conf")   a string's pattern
  vfs_read(count) if count > 4096 || $comm == "cat"       && || ! and ( )
  tcp_connect(sk->__sk_common.skc_daddr:ip4 == "127.0.0.1")
  kfree($kstack) if $comm ~ "b*"          from where it was called
  tcp_*(sk->sk_err)      ext4:ext4_*      all with such names, of a module
  tp:sched_switch(prev->comm, next->comm)  a tracepoint

A value that cannot be read makes its condition false. In a shell, put specs in
single quotes. See ksnoop(8), docs/spec.md; ksnoop list 'tcp_*' shows functions.
`

// overview prints the help of ksnoop itself.
func overview(c *invocation) error {
	h := helpText{width: widthOf(c.stdout)}
	h.section("NAME", "ksnoop - show the data that flows through kernel functions")
	h.section("USAGE", synopsis)
	h.section("VERSION", buildVersion())
	h.section("DESCRIPTION", specExamples)
	t := newTable("", "")
	for _, s := range subcommands() {
		t.row(s.name, s.usage)
	}
	t.rows = t.rows[1:] // no headings
	h.block("COMMANDS", t.fit(h.width))
	h.options("GLOBAL OPTIONS", helpFlag, versionFlag)
	return h.print(c.stdout)
}

// help prints the help of a subcommand.
func (s *subcommand) help(c *invocation) error {
	h := helpText{width: widthOf(c.stdout)}
	h.section("NAME", "ksnoop "+s.name+" - "+s.usage)
	h.section("USAGE", strings.TrimSpace("ksnoop "+s.name+" [OPTIONS] "+s.operands))
	h.section("DESCRIPTION", s.description)
	h.options("OPTIONS", append(s.flags, helpFlag)...)
	return h.print(c.stdout)
}

// languageHelp prints the help of the language.
func languageHelp(c *invocation) error { return (&helpText{text: specHelp}).print(c.stdout) }

// helpText is help for a terminal of so many columns; 0: of any number.
type helpText struct {
	width int
	text  string
}

// section adds text under a heading.
func (h *helpText) section(heading, text string) {
	block := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if line != "" {
			line = "  " + line
		}
		indent := len(line) - len(strings.TrimLeft(line, " "))
		block += wrap(line, h.width, indent) + "\n"
	}
	h.block(heading, block)
}

func (h *helpText) block(heading, lines string) {
	if h.text != "" {
		h.text += "\n"
	}
	h.text += heading + ":\n" + lines
}

// options adds options, with what they are unless they are given.
func (h *helpText) options(heading string, define ...flags) {
	set := optionSet(define...)
	set.VisitAll(func(o *pflag.Flag) {
		if o.Value.Type() == "string" && o.DefValue != "" {
			o.Usage += " (default: " + o.DefValue + ")"
			o.DefValue = ""
		}
	})
	h.block(heading, set.FlagUsagesWrapped(h.width))
}

func (h *helpText) print(w io.Writer) error {
	if _, err := io.WriteString(w, h.text); err != nil {
		return fmt.Errorf("write the help: %w", err)
	}
	return nil
}
