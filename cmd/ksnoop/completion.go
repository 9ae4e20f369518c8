package main

import (
	_ "embed"
	"fmt"
	"io"
	"strings"
)

// completeWord is the command that the shells' scripts run for a word:
//
//	ksnoop __complete -- WORDS            what the last of them may become
//	ksnoop __complete --bash BREAKS LINE  the same in bash, which takes words apart at some characters
//
// The first line of its output says what the others are (see [answerKind]); each
// is a word, a tab and a note.
const completeWord = "__complete"

var (
	//go:embed completion/ksnoop.bash
	bashScript string
	//go:embed completion/ksnoop.zsh
	zshScript string
	//go:embed completion/ksnoop.fish
	fishScript string
)

func completionCommand() *subcommand {
	return &subcommand{
		name:     "completion",
		usage:    "print a script that lets a shell complete words",
		operands: "bash|zsh|fish",
		description: `Commands, options and their values are completed, and the names of functions, arguments, members and tracepoints
in specs, with quotes around them or not:

   source <(ksnoop completion bash)                                             in ~/.bashrc
   ksnoop completion zsh > ~/.zfunc/_ksnoop                                     a directory of $fpath
   ksnoop completion fish > ~/.config/fish/completions/ksnoop.fish`,
		run: completion,
	}
}

// completion prints the script of a shell.
func completion(c *invocation) error {
	script := map[string]string{"bash": bashScript, "zsh": zshScript, "fish": fishScript}[c.operands[0]]
	if script == "" || len(c.operands) > 1 {
		return unknownName("completion", strings.Join(c.operands, " "), []string{"bash", "zsh", "fish"})
	}
	if _, err := io.WriteString(c.stdout, script); err != nil {
		return fmt.Errorf("write the script: %w", err)
	}
	return nil
}

// printCompletions answers a shell. What cannot be completed is no error.
func printCompletions(args []string, w io.Writer) error {
	var a answer
	switch {
	case len(args) > 0 && args[0] == "--":
		a = complete(running{}, args[1:])
	case len(args) == 3 && args[0] == "--bash":
		a = completeBash(running{}, args[1], args[2])
	}
	text := []byte(string(a.kind) + "\n")
	for _, c := range a.candidates {
		text = append(append(append(append(text, c.text...), '\t'), c.note...), '\n')
	}
	_, err := w.Write(text)
	return err
}
