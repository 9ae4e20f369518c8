package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/complete"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/exit"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/getopt"
)

// completeWord is the hidden command that the shells' scripts run to complete a word:
//
//	ksnoop __complete -- WORDS            completes the last word
//	ksnoop __complete --bash BREAKS LINE  does so for bash, which splits words at the characters BREAKS
//
// The first line of its output is the kind of the other lines (answerKind of package
// complete); each of these is a word, a tab and a note.
const completeWord = "__complete"

func completionCommand(e *environment) *cli.Command {
	return &cli.Command{
		Name:      "completion",
		Usage:     "print a completion script for a shell",
		ArgsUsage: "bash|zsh|fish",
		Description: `Commands, options and their values are completed, and the names of functions, arguments, members and tracepoints
in specs, with quotes around them or not:

   source <(ksnoop completion bash)                                             in ~/.bashrc
   ksnoop completion zsh > ~/.zfunc/_ksnoop                                     a directory of $fpath
   ksnoop completion fish > ~/.config/fish/completions/ksnoop.fish`,
		Action: func(c *cli.Context) error {
			operands := allWords(c)
			if len(operands) == 0 {
				return noOperand("completion")
			}
			script := complete.Scripts[operands[0]]
			if script == "" || len(operands) > 1 {
				return exit.UnknownName("completion", strings.Join(operands, " "), []string{"bash", "zsh", "fish"})
			}
			if _, err := io.WriteString(e.Out, script); err != nil {
				return fmt.Errorf("write the script: %w", err)
			}
			return nil
		},
	}
}

func completeCommand(e *environment) *cli.Command {
	return &cli.Command{
		Name:   completeWord,
		Hidden: true,
		Action: func(c *cli.Context) error {
			var commands []*complete.Command
			for _, command := range c.App.VisibleCommands() {
				commands = append(commands, &complete.Command{
					Name: command.Name, Usage: command.Usage, Operands: command.ArgsUsage, Options: completeOptions(command.Flags),
				})
			}
			return complete.New(commands, completeOptions(c.App.Flags), typesOption).Answer(c.Args().Slice(), e.Out)
		},
	}
}

// completeOptions returns a description of each option.
func completeOptions(flags []cli.Flag) (all []complete.Option) {
	for i, o := range optionObjects(flags) {
		f := flags[i]
		option := complete.Option{
			Option: getopt.Option{Name: o.Name, TakesValue: takesValue(f)},
			Short:  o.Short, Usage: o.Usage, Value: o.Value,
			Hidden: !f.(cli.VisibleFlag).IsVisible(),
		}
		if f, ok := f.(valued); ok {
			option.Choices = f.value.choices
		}
		all = append(all, option)
	}
	return all
}
