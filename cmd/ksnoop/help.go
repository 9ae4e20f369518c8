package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/exit"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/term"
	"github.com/ksnoop/ksnoop/runtime/render"
)

// synopsis shows the forms of command lines.
const synopsis = `ksnoop [OPTIONS] [trace|info|list|compile] SPEC...
ksnoop [OPTIONS] -f FILE [SPEC...]
ksnoop [OPTIONS] SPEC... -- COMMAND [ARGUMENT...]
ksnoop test FILE [-- COMMAND [ARGUMENT...]]
ksnoop check [--btf FILE]... SPEC...
ksnoop dump TYPE < bytes
ksnoop doctor
ksnoop help [COMMAND|spec]`

// specExamples explains the language by examples.
const specExamples = `A SPEC is a function, followed by the values to show, in parentheses. Each value
may have a condition:

   vfs_read                                  all arguments, the return value
   vfs_read(file, return)                    only these
   vfs_read()                                the call, without values
   vfs_read(return < 0)                      only calls that fail
   vfs_read(return == -EINTR, $duration)     only these calls, and their duration
   ip_send_skb(skb->len > 100, skb, return)  a member, the structure, the result
   vfs_read if count > 4096 || $comm ~ "c*"  a condition whose values are not shown
   tcp_*(sk->sk_err)                         all such functions that have the member
   tp:sched_switch(prev->comm, next->comm)   a tracepoint
   iter:task(task->pid, task->comm)          every thread that there is now

In a shell, put specs in single quotes. 'ksnoop help spec' explains the language
on one screen, docs/spec.md describes all of it. With -s, the functions are a
call chain: 'ksnoop -s vfs_read rw_verify_area' shows calls of the second that
are made inside the first. Lines of the kernel's kprobe_events can be used
instead of specs, and -f reads files of both: docs/kprobe-events.md.`

// specHelp describes the language on one screen.
const specHelp = `SPEC: [MODULE:]FUNCTION or tp:TRACEPOINT or iter:NAME [(ITEM...)] [if CONDITION]
ITEM: VALUE[:FORMAT] [== != < <= > >= & ~ CONSTANT]   & a common bit, ~ a glob
VALUE: an argument, return, $comm $pid $tid $ppid $cpu $uid $cgroup $container
  $duration $kstack $ustack $task $arg1... @variable; v->m v.m v[2] *v (T *)v
  v+v - * & | << >>; a value may stand for the constant: return != count
  after(v) at return; diff(v) what differs then, and only calls that change it
AGGREGATE: count() sum(v) avg(v) min(v) max(v) hist(v) lhist(v, LOW, HIGH, STEP)
FORMAT: x d u c be u8 s8 x8..x64 string ustring path symbol errno ip ip4 ip6 mac
CONSTANT: 10 0x1f 0o17 64K 'a' "eth0" an enumerator -EINTR NULL true false 10ms
Items are shown if all conditions hold. No list: all there is; (): the call.
Entry, return and a condition: one event. SPEC => SPEC on KEY [== KEY]: a span.

  vfs_read                                all arguments and the return value
  vfs_read(file->f_flags:x, return < 0)   only calls that fail; one event each
  vfs_read($comm, count(), sum(return))   a table, with a row for each name
  vfs_open(path->dentry->d_name.name:string ~ "*.conf")   a pattern for strings
  vfs_read(count) if count > 4096 || $comm == "cat"       && || ! and ( )
  tcp_connect(sk->__sk_common.skc_daddr:ip == "127.0.0.1")
  kfree($kstack) if $comm ~ "b*"          where it was called from
  tcp_*(sk->sk_err)      ext4:ext4_*      all with such names; in a module
  tp:block_rq_issue(rq) => tp:block_rq_complete($duration) on rq   from A to B
  iter:task(task->pid, task->comm) if task->mm   what there is now

An unreadable value makes its condition false. Write specs in single quotes.
`

// helpCommand returns the command that explains a command, or the language.
func helpCommand() *cli.Command {
	var asJSON bool
	return &cli.Command{
		Name:      "help",
		Usage:     "explain a command, or the language",
		ArgsUsage: "[COMMAND|spec]",
		Flags:     []cli.Flag{onOffFlag("json", "describe commands, options, exit statuses and the language for programs, as one JSON object", &asJSON)},
		Action: func(c *cli.Context) error {
			topic, words := "", allWords(c)
			if len(words) > 0 {
				topic = words[0]
			}
			switch {
			case len(words) > 1:
				return exit.Usagef("help explains one command, or the language, and there are %d words: as in ksnoop help %s", len(words), topic)
			case topic != "" && topic != "spec" && c.App.Command(topic) == nil:
				return unknownTopic(c.App, topic)
			case asJSON:
				_, err := c.App.Writer.Write(render.AppendJSON(nil, newHelpObject(c.App, topic)))
				return err
			case topic == "":
				printHelp(c.App.Writer, c.App)
				return nil
			case topic == "spec":
				_, err := io.WriteString(c.App.Writer, specHelp)
				return err
			default:
				printHelp(c.App.Writer, c.App.Command(topic))
				return nil
			}
		},
	}
}

// init makes package cli print the help as printHelp does.
func init() {
	cli.HelpPrinterCustom = func(w io.Writer, _ string, of any, _ map[string]any) { printHelp(w, of) }
}

// printHelp prints the help of ksnoop itself, a *cli.App, or of a command.
func printHelp(w io.Writer, of any) {
	h := helpText{width: term.WidthOf(w)}
	switch of := of.(type) {
	case *cli.App:
		h.section("NAME", of.Name+" - "+of.Usage)
		h.section("USAGE", of.UsageText)
		h.section("VERSION", of.Version)
		h.section("DESCRIPTION", of.Description)
		h.commands(of.VisibleCommands())
		h.options("GLOBAL OPTIONS", of.VisibleFlags())
	case *cli.Command:
		h.section("NAME", of.HelpName+" - "+of.Usage)
		h.section("USAGE", strings.TrimSpace(of.HelpName+" [OPTIONS] "+of.ArgsUsage))
		h.section("DESCRIPTION", of.Description)
		h.options("OPTIONS", append(of.VisibleFlags(), helpFlag(new(bool))))
	}
	_, _ = io.WriteString(w, h.text) // firstError keeps the error
}

// helpText is help for a terminal of so many columns, or of any width if that is 0.
type helpText struct {
	width int
	text  string
}

// section adds text under a heading, unless the text is empty.
func (h *helpText) section(heading, text string) {
	block := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if line != "" {
			line = "  " + line
		}
		indent := len(line) - len(strings.TrimLeft(line, " "))
		block += render.Wrap(line, h.width, indent) + "\n"
	}
	if block != "" {
		h.block(heading, block)
	}
}

func (h *helpText) block(heading, lines string) {
	if h.text != "" {
		h.text += "\n"
	}
	h.text += heading + ":\n" + lines
}

func (h *helpText) commands(all []*cli.Command) {
	t := render.NewTable("", "")
	for _, c := range all {
		t.Row(c.Name, c.Usage)
	}
	t.Rows = t.Rows[1:] // no headings
	h.block("COMMANDS", t.Fit(h.width))
}

// options adds options in their order, each category under its name.
func (h *helpText) options(heading string, all []cli.Flag) {
	column := 0
	for _, f := range all {
		column = max(column, len(optionHead(f)))
	}
	categories := []string{""} // those without a category come first
	lines := map[string]string{}
	for _, f := range all {
		category := f.(cli.CategorizableFlag).GetCategory()
		if !slices.Contains(categories, category) {
			categories = append(categories, category)
		}
		_, usage := valueName(f)
		line := fmt.Sprintf("%-*s   %s", column, optionHead(f), usage)
		lines[category] += render.Wrap(line, h.width, column+3) + "\n"
	}
	for _, category := range categories {
		if lines[category] == "" {
			continue
		}
		h.block(cmp.Or(strings.ToUpper(category), heading), lines[category])
	}
}

// optionHead returns an option with the name of its value: "  -o, --output FORMAT".
func optionHead(f cli.Flag) string {
	names := f.Names()
	head := "      --" + names[0]
	if len(names) > 1 {
		head = "  -" + names[1] + ", --" + names[0]
	}
	value, _ := valueName(f)
	return strings.TrimRight(head+" "+value, " ")
}

// valueName returns the name of an option's value, which its usage has in back
// quotes, and the usage with the default value added.
func valueName(f cli.Flag) (name, usage string) {
	documented := f.(cli.DocGenerationFlag)
	name, usage = valueParts(documented.GetUsage())
	if byDefault := documented.GetValue(); byDefault != "" {
		usage += " (default: " + byDefault + ")"
	}
	return name, usage
}

// valueParts returns the name of a value in back quotes, and the text without these.
func valueParts(text string) (name, usage string) {
	before, rest, ok := strings.Cut(text, "`")
	if !ok {
		return "", text
	}
	name, rest, _ = strings.Cut(rest, "`")
	return name, before + name + rest
}
