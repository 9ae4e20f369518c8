package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	"github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
	"github.com/goreleaser/nfpm/v2/rpm"
)

// packages makes an archive, the packages and a bill of materials for each
// architecture.
func (d *dist) packages() error {
	for _, arch := range d.arches {
		entries, err := d.tree(arch)
		if err != nil {
			return err
		}
		if err := d.tarball(arch, entries); err != nil {
			return err
		}
		if err := d.distributions(arch, entries); err != nil {
			return err
		}
		if err := d.materials(arch); err != nil {
			return err
		}
	}
	return nil
}

// name is what files for an architecture begin with.
func (d *dist) name(arch string) string { return fmt.Sprintf("ksnoop-%s-linux-%s", d.version, arch) }

// tarball is to be unpacked into /usr/local, without its first directory.
func (d *dist) tarball(arch string, entries []entry) error {
	var plain bytes.Buffer
	if err := archive(&plain, d.name(arch), entries, d.time); err != nil {
		return err
	}
	content, err := compress(plain.Bytes())
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(d.dir, d.name(arch)+".tar.gz"), content, 0o644)
}

// conflicts is what has a program of this name: Debian's libbpf-tools has
// /usr/sbin/ksnoop, which root's shell would find first. Elsewhere the package
// of that name calls its tools otherwise.
var conflicts = map[string][]string{"deb": {"libbpf-tools"}, "rpm": {"/usr/sbin/ksnoop"}}

// distributions makes the packages of distributions.
func (d *dist) distributions(arch string, entries []entry) error {
	contents, err := d.stage(entries)
	if err != nil {
		return err
	}
	defer os.RemoveAll(contents.dir)
	for kind, packager := range map[string]nfpm.Packager{"deb": deb.Default, "rpm": rpm.DefaultRPM} {
		info := nfpm.WithDefaults(&nfpm.Info{
			Name: "ksnoop", Arch: arch, Platform: "linux", Version: packageVersion(d.version, d.time), VersionSchema: "none",
			Section: "utils", Priority: "optional", Maintainer: "The ksnoop authors", License: "MIT",
			Homepage:    "https://github.com/ksnoop/ksnoop",
			Description: "data-centric tracer of Linux kernel functions\nShows arguments, return values, members and whole structures of kernel functions,\nselected by conditions that the kernel tests.",
			MTime:       d.time, DisableGlobbing: true,
			Overridables: nfpm.Overridables{
				Conflicts: conflicts[kind], Contents: contents.list,
				RPM: nfpm.RPM{BuildHost: "localhost", Summary: "data-centric tracer of Linux kernel functions"},
			},
		})
		if err := write(d.dir, kind, packager, info); err != nil {
			return fmt.Errorf("make the %s of %s: %w", kind, arch, err)
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

// staged is files that nfpm reads, by its description of them.
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
		s.list = append(s.list, &files.Content{
			Source: source, Destination: "/usr/" + e.path,
			FileInfo: &files.ContentFileInfo{Owner: "root", Group: "root", Mode: os.FileMode(e.mode), MTime: d.time},
		})
	}
	return s, nil
}

// materials writes the bill of materials of a binary. What it is made of is in
// the binary itself. The bill has the checksum of the tool, too, so that must be
// built alike everywhere.
func (d *dist) materials(arch string) error {
	output := filepath.Join(d.dir, d.name(arch)+".cdx.json")
	cmd := exec.Command("go", "tool", "cyclonedx-gomod", "bin", "-json", "-std", "-noserial", "-notimestamp",
		"-version", d.version, "-output", output, d.binary(arch))
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-trimpath", "GOAMD64=v1", "GOARM64=v8.0")
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", cmd, err, text)
	}
	return nil
}
