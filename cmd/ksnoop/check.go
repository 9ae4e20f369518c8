package main

import (
	"github.com/urfave/cli/v2"

	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/check"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/target"
)

func checkCommand(e *environment) *cli.Command {
	o := &check.Options{Version: buildVersion()}
	return &cli.Command{
		Name:      "check",
		Usage:     "report whether specs fit kernels, and if not, why",
		ArgsUsage: "[SPEC|PROBEFILE...]",
		Description: `Each spec is resolved and compiled with the types of each kernel. This works for any user, on any machine:

   ksnoop check --btf 6.1.btf --btf 6.12.btf 'vfs_read(file->f_flags, return < 0)' -f probes.txt

--watch checks what ksnoop watch would watch, and shows where that is; --print checks the values of ksnoop print:

   ksnoop check --watch '(int)@panic_timeout' --watch 'tcp_v4_connect(sk->sk_err)' --print '$task->comm'

The exit status is 1 if a spec does not fit a kernel. Without --btf, the running kernel is checked.`,
		Flags: join(fileFlag(&o.Specs), []cli.Flag{
			textsFlag("watch", "check what ksnoop watch takes, `MEMORY`; may be given several times", &o.Watch),
			textsFlag("print", "check what ksnoop print takes, `EXPR`; may be given several times", &o.Print),
		}, reportsFlag(&o.Output, check.Format().Formats()), []cli.Flag{
			textsFlag(typesOption, "check against the types in `FILE`, raw BTF or ELF; may be given several times (default: the running kernel)", &o.Types),
			textsFlag("symbols", "take the symbols from `FILE`, a copy of /proc/kallsyms or System.map, to know which functions have code; once for each --btf, in the same order", &o.Symbols),
			choicesFlag("kernel-features", "assume what kernel `VERSION` can do: %s; once, or once for each --btf (default: the running kernel; with --btf the newest)", &o.Features, target.Versions()),
		}),
		Before: func(c *cli.Context) error {
			if words := allWords(c); len(words) > 0 || len(o.Watch)+len(o.Print) == 0 {
				return e.readSpecs(c, &o.Specs, words)
			}
			return nil
		},
		Action: func(*cli.Context) error { return check.Run(o, &e.Streams) },
	}
}
