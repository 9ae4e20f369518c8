package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

const (
	module  = "github.com/urfave/cli/v2"
	copied  = ".build/cli"
	modFile = ".build/go.mod"
)

// changes are what differs in the copy of package cli.
var changes = []change{
	{"fish.go", "package cli\n", "", "//go:build !urfave_cli_no_docs\n\npackage cli\n"},
	{"help.go", "\t\"text/tabwriter\"\n", "\t\"text/template\"\n", ""},
	{"help.go", "var HelpPrinterCustom helpPrinterCustom = printHelpCustom\n", "", "var HelpPrinterCustom helpPrinterCustom\n"},
	{"help.go", "// printHelpCustom is the default ", "\n}\n\n", ""},
}

// copyModule writes modFile. It is go.mod, but with a copy of package cli without what
// prints by text/template: the default of HelpPrinterCustom, and completion for fish. ksnoop
// has its own of both, so that it does the same with and without. But text/template finds
// methods by their names, and the linker would keep every exported method of the program,
// which would take 1.3 MB. Imported alone, it takes 60 KB.
func copyModule() error {
	source, err := download()
	if err != nil {
		return err
	}
	names, err := filepath.Glob(filepath.Join(source, "*.go"))
	if err != nil {
		return err
	}
	texts := map[string][]byte{}
	for _, name := range append(names, filepath.Join(source, "go.mod"), filepath.Join(source, "LICENSE"), "go.sum", "go.mod") {
		to := filepath.Join(copied, filepath.Base(name))
		if filepath.Dir(name) == "." {
			to = filepath.Join(filepath.Dir(modFile), name)
		}
		if texts[to], err = os.ReadFile(name); err != nil {
			return err
		}
	}
	texts[modFile] = fmt.Appendf(texts[modFile], "\nreplace %s => ./%s\n", module, copied)
	if texts[copied+".patch"], err = applyAll(texts); err != nil {
		return err
	}
	for name, text := range texts {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		if err := write(name, text); err != nil {
			return err
		}
	}
	return nil
}

// download returns the directory of the module, whose checksum go has verified.
func download() (string, error) {
	cmd := exec.Command("go", "mod", "download", "-json", module)
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", cmd, err, out)
	}
	var m struct{ Dir string }
	return m.Dir, json.Unmarshal(out, &m)
}

// applyAll makes the changes in the texts of the copy, and returns the difference for the
// bill of materials.
func applyAll(texts map[string][]byte) (patch []byte, err error) {
	file, shift := "", 0
	for _, c := range changes {
		if c.file != file {
			patch = fmt.Appendf(patch, "--- a/%s\n+++ b/%[1]s\n", c.file)
			file, shift = c.file, 0
		}
		name := filepath.Join(copied, c.file)
		text, was, err := c.apply(string(texts[name]))
		if err != nil {
			return nil, err
		}
		at := strings.Index(string(texts[name]), was)
		texts[name] = []byte(text)
		hunk, more := difference(strings.Count(text[:at], "\n")+1, shift, was, c.now)
		patch, shift = append(patch, hunk...), shift+more
	}
	return patch, nil
}

// A change replaces a part of a file, from one text to the end of another.
type change struct{ file, from, to, now string }

// apply returns the changed text of the file, and what was replaced.
func (c change) apply(text string) (changed, was string, err error) {
	before, after, _ := strings.Cut(text, c.from)
	end := strings.Index(after, c.to)
	if n := strings.Count(text, c.from); n != 1 || end < 0 {
		return "", "", fmt.Errorf("%s of %s has %q %d times, not once: see how this version of it prints help", c.file, module, c.from, n)
	}
	end += len(c.to)
	return before + c.now + after[end:], c.from + after[:end], nil
}

// difference returns a hunk of diff -U0 for lines that are replaced, and how many more
// lines there are then. at is the first line in the changed file, shift the number of lines more
// than in the other one before it.
func difference(at, shift int, was, now string) (hunk string, more int) {
	old, lines := slices.Collect(strings.Lines(was)), slices.Collect(strings.Lines(now))
	more = len(lines) - len(old)
	for len(old) > 0 && len(lines) > 0 && old[len(old)-1] == lines[len(lines)-1] {
		old, lines = old[:len(old)-1], lines[:len(lines)-1]
	}
	hunk = fmt.Sprintf("@@ -%s +%s @@\n", place(at-shift, len(old)), place(at, len(lines)))
	for _, line := range old {
		hunk += "-" + line
	}
	for _, line := range lines {
		hunk += "+" + line
	}
	return hunk, more
}

// place returns where lines are in a file, as diff writes it.
func place(at, lines int) string {
	switch lines {
	case 0:
		return fmt.Sprintf("%d,0", at-1)
	case 1:
		return fmt.Sprint(at)
	}
	return fmt.Sprintf("%d,%d", at, lines)
}

// write writes a file unless it has this text. Several programs may do so at a time.
func write(name string, text []byte) error {
	if old, err := os.ReadFile(name); err == nil && bytes.Equal(old, text) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	temporary := fmt.Sprintf("%s-%d", name, os.Getpid())
	if err := os.WriteFile(temporary, text, 0o644); err != nil {
		return err
	}
	return os.Rename(temporary, name)
}
