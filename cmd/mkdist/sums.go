package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
)

const sumsFile = "SHA256SUMS"

// sums writes the checksums of all files, in the format of sha256sum -c.
func (d *dist) sums() error {
	list, err := os.ReadDir(d.dir)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	for _, f := range list {
		if !f.Type().IsRegular() || f.Name() == sumsFile {
			continue
		}
		content, err := os.ReadFile(filepath.Join(d.dir, f.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&text, "%x  %s\n", sha256.Sum256(content), f.Name())
	}
	return os.WriteFile(filepath.Join(d.dir, sumsFile), text.Bytes(), 0o644)
}
