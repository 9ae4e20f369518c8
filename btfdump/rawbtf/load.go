package rawbtf

import (
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/cilium/ebpf/btf"
)

// Load checks raw BTF, which may be anything, and then reads every type from file, so
// that a broken one is reported now. The file holds the same BTF, raw or in an ELF
// object; package btf takes the sizes of data sections from an object's symbols. The
// text of an error is one line.
func Load(raw []byte, file io.ReaderAt) (*btf.Spec, error) {
	if err := Check(raw); err != nil {
		return nil, err
	}
	types, err := btf.LoadSpecFromReader(file)
	if err != nil {
		return nil, lineError{err}
	}
	for _, err := range types.All() {
		if err != nil {
			return nil, lineError{err}
		}
	}
	CorrectSigns(types)
	return types, nil
}

// lineError is an error of package btf, which prints the names of types as they are,
// even with control characters. In the text of a lineError these are question marks.
type lineError struct{ error }

func (e lineError) Unwrap() error { return e.error }

func (e lineError) Error() string {
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !strconv.IsPrint(r) {
			return '?'
		}
		return r
	}, e.error.Error())
}
