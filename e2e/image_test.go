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
	goruntime "runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/e2e/vm"
)

// guestImage is the path in the guest of the container image's file system.
const guestImage = "image"

// guestPackages is the directory in the guest of what packages install.
const guestPackages = "packages"

// distFiles builds the container image and the packages of the binary and returns
// the files of the image, and the programs that the packages install. Without -full
// it does so for make test alone, and for amd64: the program that makes them takes
// longer to build than all other programs.
func distFiles(t *testing.T, a vm.Arch) []vm.File {
	if !*full && (named() || a != vm.AMD64) {
		return nil
	}
	dist, root := t.TempDir(), t.TempDir()
	for _, arch := range []vm.Arch{a, vm.Arch(goruntime.GOARCH)} { // the second one makes the completions
		program, err := filepath.Abs(staticBinary(t, arch))
		require.NoError(t, err)
		if name := filepath.Join(dist, "ksnoop-linux-"+string(arch)); !exists(name) {
			require.NoError(t, os.Symlink(program, name))
		}
	}
	require.NoError(t, os.Symlink(built(t, builtExporter, a), filepath.Join(dist, "ksnoop-exporter-linux-"+string(a))))
	for _, what := range []string{"image", "packages"} {
		cmd := exec.CommandContext(t.Context(), "go", "run", "-C", "../cmd/mkdist", ".",
			"-dist", dist, "-arches", string(a), "-version", "v1.2.3", "-time", "1", what)
		cmd.Env = buildFor(vm.Arch(goruntime.GOARCH))
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s: %s", cmd, out)
	}
	return append(imageFiles(t, dist, root), packagedFiles(t, dist)...)
}

// unpackers has a shell command for each kind of package, which unpacks the file $1
// in the current directory.
var unpackers = map[string]string{
	"deb":    `dpkg-deb -x "$1" .`,
	"rpm":    `rpm2archive -n - < "$1" | tar -x`,
	"tar.gz": `tar -xz --strip-components=1 --one-top-level=usr -f "$1"`,
}

// packagedFiles returns the programs that packages install, each in a directory with
// the name of the kind.
func packagedFiles(t *testing.T, dist string) (files []vm.File) {
	for kind, unpack := range unpackers {
		if _, err := exec.LookPath("rpm2archive"); kind == "rpm" && err != nil && !(*full && os.Getenv("CI") == "true") {
			t.Log("no rpm is unpacked:", err)
			continue
		}
		found, err := filepath.Glob(filepath.Join(dist, "*."+kind))
		require.NoError(t, err)
		found = slices.DeleteFunc(found, func(file string) bool { return strings.HasPrefix(filepath.Base(file), "ksnoop-exporter") })
		require.Len(t, found, 1)
		cmd := exec.CommandContext(t.Context(), "sh", "-c", unpack, "sh", found[0])
		cmd.Dir = t.TempDir()
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s: %s", cmd, out)
		files = append(files, vm.File{Path: guestPackages + "/" + kind + "/ksnoop", Source: filepath.Join(cmd.Dir, "usr/bin/ksnoop")})
	}
	return files
}

// imageFiles returns the files of the container image.
func imageFiles(t *testing.T, dist, root string) []vm.File {
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

// openBlob returns the path of a blob and checks that its content matches the
// descriptor.
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
