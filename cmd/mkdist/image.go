package main

import (
	"bytes"
	"compress/gzip"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// image writes an OCI image layout for all architectures, and the same layout as
// an archive, which container engines load.
func (d *dist) image() error {
	platforms := v1.ImageIndex(empty.Index)
	for _, arch := range d.arches {
		img, err := d.platform(arch)
		if err != nil {
			return err
		}
		platforms = mutate.AppendManifests(platforms, mutate.IndexAddendum{
			Add: img, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}},
		})
	}
	// OCI tools read one of the names, containerd the other.
	named := mutate.AppendManifests(empty.Index, mutate.IndexAddendum{
		Add: platforms, Descriptor: v1.Descriptor{Annotations: map[string]string{
			"org.opencontainers.image.ref.name": d.ref, "io.containerd.image.name": d.ref,
		}},
	})
	dir := filepath.Join(d.dir, strings.TrimPrefix(d.program+"-image", "ksnoop-"))
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if _, err := layout.Write(dir, named); err != nil {
		return err
	}
	return d.imageArchive(dir)
}

// platform returns the image for an architecture, which holds only the program. Its
// user is root, as engines give added capabilities to no other user.
func (d *dist) platform(arch string) (v1.Image, error) {
	program, err := os.ReadFile(d.built(d.program, arch))
	if err != nil {
		return nil, err
	}
	var content bytes.Buffer
	if err := archive(&content, "", []entry{{"bin/" + d.program, 0o755, program}}, d.time); err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content.Bytes())), nil }
	layer, err := tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer),
		tarball.WithCompressionLevel(gzip.BestCompression), tarball.WithCompressedCaching)
	if err != nil {
		return nil, err
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	created := v1.Time{Time: d.time}
	img, err := mutate.ConfigFile(base, &v1.ConfigFile{
		OS: "linux", Architecture: arch, Created: created, RootFS: v1.RootFS{Type: "layers"},
		Config: v1.Config{
			Entrypoint: []string{"/bin/" + d.program}, Env: []string{"PATH=/bin"}, User: "0:0", WorkingDir: "/",
			Labels: map[string]string{
				"org.opencontainers.image.title":       d.program,
				"org.opencontainers.image.description": descriptions[d.program],
				"org.opencontainers.image.version":     d.version,
				"org.opencontainers.image.source":      "https://github.com/ksnoop/ksnoop",
				"org.opencontainers.image.licenses":    "MIT",
			},
		},
	})
	if err != nil {
		return nil, err
	}
	return mutate.Append(img, mutate.Addendum{Layer: layer, History: v1.History{Created: created, CreatedBy: "mkdist"}})
}

// descriptions says what the programs are.
var descriptions = map[string]string{
	"ksnoop":          "data-centric tracer of Linux kernel functions",
	"ksnoop-exporter": "counts of Linux kernel functions for Prometheus",
}

// imageArchive writes the files of a layout to an archive.
func (d *dist) imageArchive(dir string) error {
	var entries []entry
	err := filepath.WalkDir(dir, func(path string, f fs.DirEntry, err error) error {
		if err != nil || f.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		entries = append(entries, entry{name, 0o644, content})
		return err
	})
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if err := archive(&out, "", entries, d.time); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(d.dir, d.program+"-"+d.version+"-image.tar"), out.Bytes(), 0o644)
}
