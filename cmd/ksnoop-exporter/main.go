// Command ksnoop-exporter counts the calls of kernel functions by the metric lines of
// probe files, and serves the counts to Prometheus.
package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	goruntime "runtime"
	"runtime/debug"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/urfave/cli/v2"

	"github.com/ksnoop/ksnoop/compiler"
	ksnoop "github.com/ksnoop/ksnoop/runtime"
)

// version is set at link time.
var version string

func main() { os.Exit(status(os.Args, os.Stdout, os.Stderr)) }

// status runs a command line and returns the exit status.
func status(args []string, stdout, stderr io.Writer) int {
	err := newApp(stdout, stderr).Run(args)
	var usage usageError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &usage):
		say(stderr, usage.error) // the errors that it joins
		return 2
	}
	say(stderr, err)
	return 1
}

// usageError is an error of the command line or of a probe file.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// say prints an error, or each of the errors that it joins on a line of its own.
func say(w io.Writer, err error) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			say(w, e)
		}
		return
	}
	fmt.Fprintf(w, "ksnoop-exporter: %s\n", strings.TrimSpace(err.Error()))
}

func newApp(stdout, stderr io.Writer) *cli.App {
	o := &options{log: stderr}
	return &cli.App{
		Name:            "ksnoop-exporter",
		Usage:           "count the calls of kernel functions for Prometheus",
		UsageText:       "ksnoop-exporter [OPTIONS] FILE...",
		Description:     "FILE is a probe file of ksnoop test, of which the metric lines are served at /metrics. SIGHUP reads the files again.",
		Version:         buildVersion(),
		HideHelpCommand: true,
		Writer:          stdout,
		ErrWriter:       stderr,
		ExitErrHandler:  func(*cli.Context, error) {},
		OnUsageError:    func(_ *cli.Context, err error, _ bool) error { return usageError{err} },
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "listen", Value: "127.0.0.1:9536", Usage: "serve at `ADDRESS`, a host and a port; any client that reaches it may read", Destination: &o.listen},
			&cli.IntFlag{Name: "series", Value: 1000, Usage: "serve at most `N` label sets of a metric; further keys are counted together", Destination: &o.probes.Series},
			&cli.IntFlag{Name: "keys", Value: compiler.DefaultKeys, Usage: "make room for `N` keys of a metric in the kernel", Destination: &o.probes.Keys},
			&cli.BoolFlag{Name: "keep-privileges", Usage: "give up no capabilities", Destination: &o.keep},
		},
		Action: func(c *cli.Context) error {
			o.files = c.Args().Slice()
			if err := o.check(); err != nil {
				return usageError{err}
			}
			return run(c.Context, o)
		},
	}
}

// mostKeys is the largest value of --series and --keys.
const mostKeys = 1 << 20

// check returns an error for a wrong command line.
func (o *options) check() error {
	switch {
	case len(o.files) == 0:
		return errors.New("no probe file is given: as in ksnoop-exporter node.probes")
	case o.probes.Series < 1 || o.probes.Series > mostKeys:
		return fmt.Errorf("--series is %d: the limits are 1 and %d", o.probes.Series, mostKeys)
	case o.probes.Keys < 1 || o.probes.Keys > mostKeys:
		return fmt.Errorf("--keys is %d: the limits are 1 and %d", o.probes.Keys, mostKeys)
	}
	_, port, err := net.SplitHostPort(o.listen)
	if err == nil {
		_, err = net.LookupPort("tcp", port)
	}
	if err != nil {
		return fmt.Errorf("--listen is %q: it must be a host and a port, as in 127.0.0.1:9536", o.listen)
	}
	for _, name := range o.files {
		if strings.HasPrefix(name, "-") {
			return fmt.Errorf("%s is behind a probe file: options come first", name)
		}
	}
	return nil
}

func buildVersion() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}

// buildInfo returns a metric about this program and the kernel.
func buildInfo() prometheus.Collector {
	release, _ := ksnoop.Release() // an empty label if the kernel does not say
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "ksnoop_build_info", Help: "The version of ksnoop-exporter, and the kernel that it runs on.",
		ConstLabels: prometheus.Labels{"version": buildVersion(), "goversion": goruntime.Version(), "goarch": goruntime.GOARCH, "kernel": release},
	})
	info.Set(1)
	return info
}
