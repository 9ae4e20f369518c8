// Package complete completes command lines: commands, options and their values, and
// the names in specs.
package complete

import (
	_ "embed"
	"io"
)

var (
	//go:embed ksnoop.bash
	bashScript string
	//go:embed ksnoop.zsh
	zshScript string
	//go:embed ksnoop.fish
	fishScript string
)

// Scripts are the completion scripts of the shells.
var Scripts = map[string]string{"bash": bashScript, "zsh": zshScript, "fish": fishScript}

// Answer prints the answer to a shell. It is not an error if nothing can be completed.
func (c *Completer) Answer(args []string, w io.Writer) error {
	var a answer
	switch {
	case len(args) > 0 && args[0] == "--":
		a = c.complete(args[1:])
	case len(args) == 3 && args[0] == "--bash":
		a = c.completeBash(args[1], args[2])
	}
	text := []byte(string(a.kind) + "\n")
	for _, found := range a.candidates {
		text = append(append(append(append(text, found.text...), '\t'), found.note...), '\n')
	}
	_, err := w.Write(text)
	return err
}
