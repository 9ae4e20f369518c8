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

// entry is a file below the directory that a program is installed to, or a configuration
// file if its path is absolute.
type entry struct {
	path    string
	mode    int64
	content []byte
}

// tree returns the files to install: the program, the manual, completions and
// documents.
func (d *dist) tree(arch string) ([]entry, error) {
	program, err := os.ReadFile(d.binary(arch))
	if err != nil {
		return nil, err
	}
	texts, err := d.texts([]place{
		{"docs/ksnoop.8", "share/man/man8/ksnoop.8"},
		{"LICENSE", "share/doc/ksnoop/copyright"},
		{"README.md", "share/doc/ksnoop/README.md"},
	})
	if err != nil {
		return nil, err
	}
	documents, err := d.documents()
	if err != nil {
		return nil, err
	}
	completions, err := d.completions()
	return slices.Concat([]entry{{"bin/ksnoop", 0o755, program}}, texts, documents, completions), err
}

// exporterTree returns the files to install of the exporter: the program, its service, and
// what it counts until that is changed.
func (d *dist) exporterTree(arch string) ([]entry, error) {
	program, err := os.ReadFile(d.built("ksnoop-exporter", arch))
	if err != nil {
		return nil, err
	}
	texts, err := d.texts([]place{
		{"LICENSE", "share/doc/ksnoop-exporter/copyright"},
		{"docs/exporter.md", "share/doc/ksnoop-exporter/exporter.md"},
		{"cmd/ksnoop-exporter/ksnoop-exporter.service", "lib/systemd/system/ksnoop-exporter.service"},
		{"cmd/ksnoop-exporter/node.probes", "/etc/ksnoop/node.probes"},
	})
	return slices.Concat([]entry{{"bin/ksnoop-exporter", 0o755, program}}, texts), err
}

// place says where a file of the repository is installed.
type place struct{ from, to string }

// texts returns files of the repository.
func (d *dist) texts(places []place) ([]entry, error) {
	var entries []entry
	for _, p := range places {
		content, err := os.ReadFile(filepath.Join(d.source, p.from))
		if err != nil {
			return nil, err
		}
		entries = append(entries, entry{p.to, 0o644, content})
	}
	return entries, nil
}

// documents returns the documents other than the manual.
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

// completions runs the program for this machine and returns its completions.
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
