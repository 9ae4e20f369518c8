package main

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"io"
	"path"
	"slices"
	"time"
)

// archive writes entries, sorted, into the directory below, preceded by their
// directories. All are owned by root and have the same time.
func archive(out io.Writer, below string, entries []entry, at time.Time) error {
	w := tar.NewWriter(out)
	made := map[string]bool{".": true, "/": true}
	entries = slices.Clone(entries)
	slices.SortFunc(entries, func(a, b entry) int { return cmp.Compare(a.path, b.path) })
	for _, e := range entries {
		name := path.Join(below, e.path)
		if err := directories(w, path.Dir(name), at, made); err != nil {
			return err
		}
		h := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: e.mode, Size: int64(len(e.content)), ModTime: at, Format: tar.FormatUSTAR}
		if err := w.WriteHeader(h); err != nil {
			return err
		}
		if _, err := w.Write(e.content); err != nil {
			return err
		}
	}
	return w.Close()
}

// directories writes the headers of a directory and its parents, each once.
func directories(w *tar.Writer, dir string, at time.Time, made map[string]bool) error {
	if made[dir] {
		return nil
	}
	made[dir] = true
	if err := directories(w, path.Dir(dir), at, made); err != nil {
		return err
	}
	return w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o755, ModTime: at, Format: tar.FormatUSTAR})
}

// compress returns content compressed by gzip, without a name and a time.
func compress(content []byte) ([]byte, error) {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(content); err != nil {
		return nil, err
	}
	err = w.Close()
	return out.Bytes(), err
}
