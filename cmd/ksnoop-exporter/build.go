package main

import (
	goruntime "runtime"

	"github.com/prometheus/client_golang/prometheus"

	ksnoop "github.com/ksnoop/ksnoop/runtime"
)

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
