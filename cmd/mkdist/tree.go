package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
)

// An entry is a file below the directory that ksnoop is installed to.
type entry struct {
	path    string
	mode    int64
	content []byte
}

// tree is what is installed: the program, the manual, completions, documents.
func (d *dist) tree(arch string) ([]entry, error) {
	program, err := os.ReadFile(d.binary(arch))
	if err != nil {
		return nil, err
	}
	entries := []entry{{"bin/ksnoop", 0o755, program}}
	for _, f := range []struct{ from, to string }{
		{"docs/ksnoop.8", "share/man/man8/ksnoop.8"},
		{"LICENSE", "share/doc/ksnoop/copyright"},
		{"README.md", "share/doc/ksnoop/README.md"},
	} {
		content, err := os.ReadFile(filepath.Join(d.source, f.from))
		if err != nil {
			return nil, err
		}
		entries = append(entries, entry{f.to, 0o644, content})
	}
	documents, err := d.documents()
	if err != nil {
		return nil, err
	}
	completions, err := d.completions()
	return slices.Concat(entries, documents, completions), err
}

// documents is everything about ksnoop but the manual.
func (d *dist) documents() ([]entry, error) {
	var entries []entry
	err := filepath.WalkDir(filepath.Join(d.source, "docs"), func(path string, f fs.DirEntry, err error) error {
		if err != nil || !f.Type().IsRegular() || f.Name() == "ksnoop.8" {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(d.source, path)
		entries = append(entries, entry{"share/doc/ksnoop/" + name, 0o644, content})
		return err
	})
	return entries, err
}

// completions asks the program that runs on this machine for its completions.
func (d *dist) completions() ([]entry, error) {
	var entries []entry
	for _, c := range []struct{ shell, to string }{
		{"bash", "share/bash-completion/completions/ksnoop"},
		{"zsh", "share/zsh/site-functions/_ksnoop"},
		{"fish", "share/fish/vendor_completions.d/ksnoop.fish"},
	} {
		path, err := filepath.Abs(d.binary(runtime.GOARCH))
		if err != nil {
			return nil, err
		}
		cmd := exec.Command(path, "completion", c.shell)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		content, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("%s: %w\n%s", cmd, err, stderr.Bytes())
		}
		entries = append(entries, entry{c.to, 0o644, content})
	}
	return entries, nil
}
