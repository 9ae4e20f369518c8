package main

import (
	"encoding/hex"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"

	"github.com/ksnoop/ksnoop/btfdump"
)

// maxInput bounds what dump reads: more than any type of a kernel has.
const maxInput = 64 << 20

func dumpCommand() *subcommand {
	return &subcommand{
		name:        "dump",
		usage:       "print bytes from standard input as a value of a type",
		operands:    "TYPE",
		description: "TYPE is the name of a struct, union, enum or typedef, as in 'struct file' or file,\nor #N for the type with the number N in the BTF.",
		flags:       []flags{typesFlag, valueFlags, colorFlag, hexFlag, dumpFlags},
		run:         dump,
	}
}

// valueFlags is how a value is printed.
func valueFlags(f *pflag.FlagSet) {
	f.StringP("output", "o", "text", "print `FORMAT`: text or json")
}

// hexFlag is how its bytes are read.
func hexFlag(f *pflag.FlagSet) {
	f.Bool("hex", false, "read hexadecimal digits instead of bytes")
}

func dump(c *invocation) error {
	opts, err := dumpOptions(c, "")
	if err != nil {
		return err
	}
	if c.String("output") == "text" {
		if err := setColor(c); err != nil {
			return err
		}
	}
	print, err := dumpFormat(c.String("output"))
	if err != nil {
		return err
	}
	if len(c.operands) != 1 {
		return usagef("dump takes one type, not %d: quote its name, as in 'struct file'", len(c.operands))
	}
	types, err := openTypes(c.String("btf"))
	if err != nil {
		return err
	}
	t, err := findType(types, c.operands[0])
	if err != nil {
		return err
	}
	d, err := btfdump.New(t, opts)
	if err != nil {
		return fmt.Errorf("dump %s: %w", c.operands[0], err)
	}
	data, cut, err := readInput(c.stdin, c.Bool("hex"))
	if err != nil {
		return err
	}
	if _, err := c.stdout.Write(append(print(d, data), '\n')); err != nil {
		return fmt.Errorf("write the value: %w", err)
	}
	if note := unshown(d.Takes(data), len(data), cut); note != "" {
		fmt.Fprintf(c.stderr, "ksnoop: %s\n", note)
	}
	return nil
}

// unshown says what of the input is not shown; "": nothing. Of n bytes a value
// took some, and cut says that even more were not read.
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

// dumpFormat is what prints a value in a format.
func dumpFormat(name string) (func(*btfdump.Dumper, []byte) []byte, error) {
	switch name {
	case "text":
		return func(d *btfdump.Dumper, data []byte) []byte { return d.AppendText(nil, data) }, nil
	case "json":
		return func(d *btfdump.Dumper, data []byte) []byte { return d.AppendJSON(nil, data) }, nil
	}
	return nil, usagef("--output is %q: it must be text or json", name)
}

// readInput reads all of the bytes, or of the hexadecimal digits; cut says that
// there are too many of them.
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
		text = text[:len(text)&^1] // half a byte is not the input's fault
	}
	data, err = hex.DecodeString(text)
	if err != nil {
		return nil, false, fmt.Errorf("read hexadecimal digits: %w", err)
	}
	return data, cut, nil
}
