package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/cilium/ebpf"
	"github.com/urfave/cli/v2"

	"github.com/ksnoop/ksnoop/compiler"
)

// describe prints how each function is traced, why, and by what programs.
func describe(w io.Writer, unit *compiler.Unit) {
	for _, p := range unit.Probes() {
		fmt.Fprintf(w, "%s: %s: %s\n", p.Func.Name, kinds(unit, p), p.Attach.Reason)
	}
	for _, a := range unit.Attachments {
		fmt.Fprintf(w, "\n%v\n", unit.Collection.Programs[a.Program].Instructions)
	}
}

// kinds names the attach kinds that a probe uses.
func kinds(unit *compiler.Unit, p *compiler.Probe) string {
	text := ""
	for _, a := range unit.Attachments {
		if a.Probe != p {
			continue
		}
		if text != "" {
			text = " and " + text
		}
		text = string(a.Kind) + text
	}
	return text
}

// debugError shows the verifier's log in full when debugging.
func debugError(c *cli.Context, err error) error {
	var refused *ebpf.VerifierError
	if c.Bool("debug") && errors.As(err, &refused) {
		fmt.Fprintf(c.App.ErrWriter, "%+v\n", refused)
	}
	return err
}
