package main

import (
	"bytes"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	"github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
	"github.com/goreleaser/nfpm/v2/rpm"
)

// packages makes an archive, and the packages and the bill of materials of both
// programs, for each architecture.
func (d *dist) packages() error {
	for _, arch := range d.arches {
		entries, err := d.tree(arch)
		if err != nil {
			return err
		}
		if err := d.tarball(arch, entries); err != nil {
			return err
		}
		exporter, err := d.exporterTree(arch)
		if err != nil {
			return err
		}
		for program, entries := range map[string][]entry{"ksnoop": entries, "ksnoop-exporter": exporter} {
			if err := d.distributions(program, arch, entries); err != nil {
				return err
			}
			if err := d.materials(program, arch); err != nil {
				return err
			}
		}
	}
	return nil
}

// name returns the beginning of the names of a program's files for an architecture.
func (d *dist) name(program, arch string) string {
	return fmt.Sprintf("%s-%s-linux-%s", program, d.version, arch)
}

// tarball writes an archive to be unpacked into /usr/local, without its first
// directory.
func (d *dist) tarball(arch string, entries []entry) error {
	var plain bytes.Buffer
	name := d.name("ksnoop", arch)
	if err := archive(&plain, name, entries, d.time); err != nil {
		return err
	}
	content, err := compress(plain.Bytes())
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(d.dir, name+".tar.gz"), content, 0o644)
}

// longer says in packages what the line of descriptions does not.
var longer = map[string]string{
	"ksnoop":          "Shows arguments, return values, members and whole structures of kernel functions,\nselected by conditions that the kernel tests. libbpf-tools has another program of\nthis name in /usr/sbin, which root's shell finds first: this one is /usr/bin/ksnoop.",
	"ksnoop-exporter": "Counts calls by the probe file /etc/ksnoop/node.probes, at 127.0.0.1:9536:\nsystemctl enable --now ksnoop-exporter",
}

// distributions makes the deb and rpm packages of a program. Debian's libbpf-tools has a
// ksnoop, too, but in /usr/sbin: both can be installed.
func (d *dist) distributions(program, arch string, entries []entry) error {
	contents, err := d.stage(entries)
	if err != nil {
		return err
	}
	defer os.RemoveAll(contents.dir)
	for kind, packager := range map[string]nfpm.Packager{"deb": deb.Default, "rpm": rpm.DefaultRPM} {
		info := nfpm.WithDefaults(&nfpm.Info{
			Name: program, Arch: arch, Platform: "linux", Version: packageVersion(d.version, d.time), VersionSchema: "none",
			Section: "utils", Priority: "optional", Maintainer: "The ksnoop authors", License: "MIT",
			Homepage:    "https://github.com/ksnoop/ksnoop",
			Description: descriptions[program] + "\n" + longer[program],
			MTime:       d.time, DisableGlobbing: true,
			Overridables: nfpm.Overridables{
				Contents: contents.list,
				RPM:      nfpm.RPM{BuildHost: "localhost", Summary: descriptions[program]},
			},
		})
		if err := write(d.dir, kind, packager, info); err != nil {
			return fmt.Errorf("make the %s of %s for %s: %w", kind, program, arch, err)
		}
	}
	return nil
}

func write(dir, kind string, packager nfpm.Packager, info *nfpm.Info) error {
	if err := nfpm.PrepareForPackager(info, kind); err != nil {
		return err
	}
	var out bytes.Buffer
	if err := packager.Package(info, &out); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, packager.ConventionalFileName(info)), out.Bytes(), 0o644)
}

// staged holds files for nfpm, and its description of them.
type staged struct {
	dir  string
	list files.Contents
}

// stage writes entries to files. Distributions want manuals compressed.
func (d *dist) stage(entries []entry) (staged, error) {
	dir, err := os.MkdirTemp("", "mkdist-")
	s := staged{dir: dir}
	if err != nil {
		return s, err
	}
	for i, e := range entries {
		if strings.HasPrefix(e.path, "share/man/") {
			e.path += ".gz"
			if e.content, err = compress(e.content); err != nil {
				return s, err
			}
		}
		source := filepath.Join(dir, fmt.Sprint(i))
		if err := os.WriteFile(source, e.content, 0o644); err != nil {
			return s, err
		}
		content := &files.Content{
			Source: source, Destination: "/usr/" + e.path,
			FileInfo: &files.ContentFileInfo{Owner: "root", Group: "root", Mode: os.FileMode(e.mode), MTime: d.time},
		}
		if path.IsAbs(e.path) { // what users change stays as it is
			content.Destination, content.Type = e.path, files.TypeConfigNoReplace
		}
		s.list = append(s.list, content)
	}
	return s, nil
}
