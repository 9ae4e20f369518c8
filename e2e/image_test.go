//go:build linux

package e2e

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/e2e/vm"
)

// guestImage is where the guest has the file system of the container image.
const guestImage = "image"

// imageFiles makes the container image of a binary, and returns what is in it.
func imageFiles(t *testing.T, ksnoop string) []vm.File {
	dist, root := t.TempDir(), t.TempDir()
	program, err := filepath.Abs(ksnoop)
	require.NoError(t, err)
	require.NoError(t, os.Symlink(program, filepath.Join(dist, "ksnoop-linux-amd64")))
	cmd := exec.CommandContext(t.Context(), "go", "run", "-C", "../cmd/mkdist", ".",
		"-dist", dist, "-arches", "amd64", "-version", "test", "-time", "1", "image")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s: %s", cmd, out)
	names := unpackImage(t, filepath.Join(dist, "image"), root)
	require.Equal(t, []string{"bin/ksnoop"}, names, "the image has the binary and nothing else")
	var files []vm.File
	for _, name := range names {
		files = append(files, vm.File{Path: guestImage + "/" + name, Source: filepath.Join(root, name)})
	}
	return files
}

// A descriptor names a blob of an image layout.
type descriptor struct {
	MediaType, Digest string
	Size              int
}

// unpackImage unpacks the layers of the only image in a layout, and returns the
// names of the files.
func unpackImage(t *testing.T, layout, root string) []string {
	blob := filepath.Join(layout, "index.json")
	var index struct{ Manifests []descriptor }
	for {
		text, err := os.ReadFile(blob)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(text, &index))
		require.Len(t, index.Manifests, 1)
		d := index.Manifests[0]
		blob = openBlob(t, layout, d)
		if d.MediaType == "application/vnd.oci.image.manifest.v1+json" {
			break
		}
	}
	text, err := os.ReadFile(blob)
	require.NoError(t, err)
	var manifest struct{ Layers []descriptor }
	require.NoError(t, json.Unmarshal(text, &manifest))
	var names []string
	for _, layer := range manifest.Layers {
		names = append(names, unpackLayer(t, openBlob(t, layout, layer), root)...)
	}
	return names
}

// openBlob is the file of a blob, which must be what its descriptor says.
func openBlob(t *testing.T, layout string, d descriptor) string {
	digest, found := strings.CutPrefix(d.Digest, "sha256:")
	require.True(t, found, d.Digest)
	path := filepath.Join(layout, "blobs", "sha256", digest)
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	sum := sha256.Sum256(content)
	require.Equal(t, digest, hex.EncodeToString(sum[:]))
	require.Len(t, content, d.Size)
	return path
}

func unpackLayer(t *testing.T, path, root string) []string {
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	plain, err := gzip.NewReader(f)
	require.NoError(t, err)
	var names []string
	for r := tar.NewReader(plain); ; {
		h, err := r.Next()
		if err == io.EOF {
			return names
		}
		require.NoError(t, err)
		to := filepath.Join(root, h.Name)
		if h.Typeflag == tar.TypeDir {
			require.NoError(t, os.MkdirAll(to, 0o755))
			continue
		}
		require.Equal(t, byte(tar.TypeReg), h.Typeflag, h.Name)
		content, err := io.ReadAll(r)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(to, content, h.FileInfo().Mode()))
		names = append(names, h.Name)
	}
}
