package jq

import (
	"fmt"
	"io"
	"os"
	"strings"
)

// Main runs a command like jq, for examples in which a shell connects it to
// ksnoop: [OPTION...] FILTER [FILE].
func Main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "jq:", err)
		os.Exit(2)
	}
}

func run(args []string) error {
	options := ""
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		options, args = options+args[0], args[1:]
	}
	var input []byte
	var err error
	switch len(args) {
	case 1:
		input, err = io.ReadAll(os.Stdin)
	case 2:
		input, err = os.ReadFile(args[1])
	default:
		return fmt.Errorf("want a filter, and a file at most: %q", args)
	}
	if err != nil {
		return err
	}
	return Run(os.Stdout, options, args[0], input)
}
