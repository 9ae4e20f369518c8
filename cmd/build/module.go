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

// copyModule writes modFile. It is go.mod, but with a copy of package cli in which
// HelpPrinterCustom has no default. ksnoop sets HelpPrinterCustom, so that it does the
// same with both. But the default prints by text/template, which finds methods by their
// names, and the linker would keep every exported method of the program, which would
// take 1.3 MB.
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
	help := filepath.Join(copied, "help.go")
	if texts[help], texts[copied+".patch"], err = withoutDefault(texts[help]); err != nil {
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

// withoutDefault returns the source text of a file without the default of
// HelpPrinterCustom, and the difference for the bill of materials.
func withoutDefault(text []byte) (changed, patch []byte, err error) {
	const declared = "var HelpPrinterCustom helpPrinterCustom"
	const line = declared + " = printHelpCustom"
	before, after, _ := bytes.Cut(text, []byte(line+"\n"))
	if n := bytes.Count(text, []byte(line+"\n")); n != 1 {
		return nil, nil, fmt.Errorf("%s has the line %q %d times, not once: see how this version of it prints help", module, line, n)
	}
	at := bytes.Count(before, []byte("\n")) + 1
	patch = fmt.Appendf(nil, "--- a/help.go\n+++ b/help.go\n@@ -%d +%d @@\n-%s\n+%s\n", at, at, line, declared)
	return slices.Concat(before, []byte(declared+"\n"), after), patch, nil
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
