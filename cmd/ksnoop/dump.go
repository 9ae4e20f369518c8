package main

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/cilium/ebpf/btf"
	"github.com/urfave/cli/v2"

	"github.com/ksnoop/ksnoop/btfdump"
)

// maxInput bounds what dump reads: more than any type of a kernel has.
const maxInput = 64 << 20

func dumpCommand() *cli.Command {
	return &cli.Command{
		Name:        "dump",
		Usage:       "print bytes from standard input as a value of a type",
		ArgsUsage:   "TYPE",
		Description: "TYPE is the name of a struct, union, enum or typedef, as in 'struct file' or file,\nor #N for the type with the number N in the BTF.",
		Flags: append([]cli.Flag{
			typesFlag(),
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Value: "text", Usage: "print `FORMAT`: text or json"},
			&cli.BoolFlag{Name: "hex", Usage: "read hexadecimal digits instead of bytes"},
		}, dumpFlags()...),
		Action: dump,
	}
}

func dump(c *cli.Context) error {
	opts, err := dumpOptions(c, "")
	if err != nil {
		return err
	}
	print, err := dumpFormat(c.String("output"))
	if err != nil {
		return err
	}
	if c.NArg() != 1 {
		return usagef("dump takes one type, not %d: quote its name, as in 'struct file'", c.NArg())
	}
	types, err := openTypes(c.String("btf"))
	if err != nil {
		return err
	}
	t, err := findType(types, c.Args().First())
	if err != nil {
		return err
	}
	d, err := btfdump.New(t, opts)
	if err != nil {
		return fmt.Errorf("dump %s: %w", c.Args().First(), err)
	}
	data, err := readInput(c.App.Reader, c.Bool("hex"))
	if err != nil {
		return err
	}
	_, err = c.App.Writer.Write(append(print(d, data), '\n'))
	return err
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

// openTypes reads a BTF file, which may be raw or in an ELF file.
func openTypes(file string) (*btf.Spec, error) {
	if file == "" {
		k, err := openKernel()
		if err != nil {
			return nil, err
		}
		return k.Types(), nil
	}
	types, err := btf.LoadSpec(file)
	if errors.Is(err, btf.ErrNotFound) {
		return nil, fmt.Errorf("%s has no type information: give a file of raw BTF, or an ELF file with a .BTF section", file)
	}
	if err != nil {
		return nil, fmt.Errorf("read the types of %s: %w", file, err)
	}
	return types, nil
}

// readInput reads all of the bytes, or of the hexadecimal digits.
func readInput(r io.Reader, digits bool) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxInput))
	if err != nil {
		return nil, fmt.Errorf("read the bytes: %w", err)
	}
	if !digits {
		return data, nil
	}
	text := strings.Join(strings.Fields(string(data)), "")
	data, err = hex.DecodeString(strings.TrimPrefix(text, "0x"))
	if err != nil {
		return nil, fmt.Errorf("read hexadecimal digits: %w", err)
	}
	return data, nil
}
