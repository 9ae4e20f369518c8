package main

import (
	"fmt"

	"github.com/spf13/pflag"

	"github.com/ksnoop/ksnoop/cmd/ksnoop/report"
)

// promFlag is where metrics go.
func promFlag(f *pflag.FlagSet) {
	f.String("prom-textfile", "", "write metrics to `FILE` for Prometheus: NAME.prom in the directory of node_exporter's textfile collector")
}

// writeMetrics writes a file for the textfile collector of node_exporter, which
// may read it at any time.
func writeMetrics(name string, metrics []report.Metric) error {
	text, err := report.AppendMetrics(nil, metrics)
	if err == nil {
		err = writeWhole(name, text)
	}
	if err != nil {
		return fmt.Errorf("write the metrics: %w", err)
	}
	return nil
}
