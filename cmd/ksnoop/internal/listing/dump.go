package listing

import (
	"encoding/hex"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/ksnoop/ksnoop/btfdump"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/exit"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/target"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/term"
	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/runtime"
)

// maxInput is the largest input of dump in bytes: more than any type of a kernel has.
const maxInput = 64 << 20

// DumpOptions selects the type of the bytes, and how the value is shown.
type DumpOptions struct {
	Type   string
	Types  string // a file, or "" for the running kernel
	Hex    bool   // whether the input is hexadecimal digits
	Format string // one of Formats
	Color  string // one of term.Colors
	Values btfdump.Options
}

// Dump prints the bytes of standard input as a value.
func Dump(o *DumpOptions, s *term.Streams) error {
	print := (*btfdump.Dumper).AppendJSON
	if o.Format == "text" {
		print = (*btfdump.Dumper).AppendText
		term.SetColor(s.Out, o.Color)
	}
	types, err := target.OpenTypes(o.Types)
	if err != nil {
		return err
	}
	kernel := &compiler.Target{Kernel: types}
	if o.Types == "" {
		kernel.TypeNames = runtime.TypeNames
	}
	t, err := declaredType(kernel, o.Type)
	if err != nil {
		return err
	}
	d, err := btfdump.New(t, o.Values)
	if err != nil {
		return err
	}
	data, cut, err := readInput(s.In, o.Hex)
	if err != nil {
		return err
	}
	if _, err := s.Out.Write(append(print(d, nil, data), '\n')); err != nil {
		return fmt.Errorf("write the value: %w", err)
	}
	if note := unshown(d.Takes(data), len(data), cut); note != "" {
		fmt.Fprintf(s.Err, "ksnoop: %s\n", note)
	}
	return nil
}

// unshown returns a sentence about the input that is not shown, or "". The value
// used took of n bytes, and cut reports whether there are more that were not read.
func unshown(took, n int, cut bool) string {
	switch rest := n - took; {
	case rest == 0 && cut:
		return fmt.Sprintf("the input is cut: only its first %d MB are read", maxInput>>20)
	case cut:
		return fmt.Sprintf("the value ends after %d bytes: more than %d bytes of the input are not shown", took, rest)
	case rest == 1:
		return fmt.Sprintf("the value ends after %d bytes: 1 more byte of the input is not shown", took)
	case rest > 0:
		return fmt.Sprintf("the value ends after %d bytes: %d more bytes of the input are not shown", took, rest)
	}
	return ""
}

// readInput reads all bytes, or all hexadecimal digits. cut reports whether there are too
// many of them.
func readInput(r io.Reader, digits bool) (data []byte, cut bool, err error) {
	data, err = io.ReadAll(io.LimitReader(r, maxInput+1))
	if err != nil {
		return nil, false, fmt.Errorf("read the bytes: %w", err)
	}
	if cut = len(data) > maxInput; cut {
		data = data[:maxInput]
	}
	if !digits {
		return data, cut, nil
	}
	text := strings.TrimPrefix(strings.Join(strings.Fields(string(data)), ""), "0x")
	if cut {
		text = text[:len(text)&^1] // an odd digit at the cut is not the input's fault
	}
	data, err = hex.DecodeString(text)
	if err != nil {
		return nil, false, fmt.Errorf("read hexadecimal digits: %s: two are a byte, as in 7f 45 4c 46 or 7f454c46", strings.TrimPrefix(err.Error(), "encoding/hex: "))
	}
	return data, cut, nil
}

// Indentation parses the indentation of a level of a value.
func Indentation(option, text string) (string, error) {
	if text == "tab" {
		return "\t", nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > 16 {
		return "", exit.Usagef("--%s is %q: it must be a number from 1 to 16, or tab", option, text)
	}
	return strings.Repeat(" ", n), nil
}
