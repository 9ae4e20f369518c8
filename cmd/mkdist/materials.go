package main

import (
	"bytes"
	"debug/buildinfo"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// materials writes the bill of materials of a binary, from the module list in the
// binary itself. The bill also has the checksum of the tool that writes it, so the
// tool must be built the same way everywhere.
func (d *dist) materials(program, arch string) error {
	output := filepath.Join(d.dir, d.name(program, arch)+".cdx.json")
	cmd := exec.Command("go", "tool", "cyclonedx-gomod", "bin", "-json", "-std", "-noserial", "-notimestamp",
		"-version", d.version, "-output", output, d.built(program, arch))
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-trimpath", "GOAMD64=v1", "GOARM64=v8.0")
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", cmd, err, text)
	}
	built, err := buildinfo.ReadFile(d.built(program, arch))
	if err != nil {
		return err
	}
	for _, m := range built.Deps {
		if m.Replace != nil && strings.HasPrefix(m.Replace.Path, "./.build/") {
			if err := d.nameModule(output, m); err != nil {
				return err
			}
		}
	}
	return nil
}

// nameModule corrects a bill of materials, which names the directory of the copy that
// cmd/build has made of a module: it names the module instead, and adds what differs.
func (d *dist) nameModule(file string, m *debug.Module) error {
	patch, err := os.ReadFile(filepath.Join(d.source, m.Replace.Path+".patch"))
	if err != nil {
		return err
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	// Dependencies and the package URL have both, joined.
	text = bytes.ReplaceAll(text, []byte(m.Replace.Path+"@"+m.Replace.Version), []byte(m.Path+"@"+m.Version))
	bill := new(cdx.BOM)
	if err := cdx.NewBOMDecoder(bytes.NewReader(text), cdx.BOMFileFormatJSON).Decode(bill); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	found := false
	for i := range *bill.Components {
		if c := &(*bill.Components)[i]; c.Name == m.Replace.Path {
			c.Name, c.Version, found = m.Path, m.Version, true
			c.Pedigree = &cdx.Pedigree{
				Patches: &[]cdx.Patch{{Type: cdx.PatchTypeUnofficial, Diff: &cdx.Diff{Text: &cdx.AttachedText{ContentType: "text/plain", Content: string(patch)}}}},
			}
		}
	}
	if !found {
		return fmt.Errorf("%s has no component %s", file, m.Replace.Path)
	}
	var out bytes.Buffer
	if err := cdx.NewBOMEncoder(&out, cdx.BOMFileFormatJSON).SetPretty(true).Encode(bill); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return os.WriteFile(file, out.Bytes(), 0o644)
}
