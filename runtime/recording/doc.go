// Package recording writes records to a file together with what decodes them, and
// reads them anywhere: on another machine, of another architecture, without
// privileges. docs/recording.md describes the format.
//
//	w, err := recording.NewWriter(file, unit, recording.Origin{System: system}, symbols)
//	err = w.Record(rec) // as the programs wrote it
//	err = w.End(counts)
//
//	r, err := recording.NewReader(file)
//	for {
//		item, err := r.Next() // io.EOF at the end
//	}
//
// A file may have any content: nothing in it is trusted.
package recording
