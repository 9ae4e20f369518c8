package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/ksnoop/ksnoop/cmd/ksnoop-exporter/probes"
)

// options are the command line.
type options struct {
	listen string
	files  []string
	keep   bool // all privileges
	probes probes.Options
	log    io.Writer
}

// exporter attaches probes and serves what they count.
type exporter struct {
	*options
	privileges *privileges
	collector  probes.Collector
	set        *probes.Set

	reloaded, reloadedAt prometheus.Gauge
}

// run serves until a signal ends it.
func run(ctx context.Context, o *options) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	if _, err := probes.Read(o.files); err != nil {
		return usageError{err}
	}
	e, err := newExporter(o)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", o.listen)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	server := &http.Server{Handler: e.handler(), ReadHeaderTimeout: 10 * time.Second, WriteTimeout: time.Minute, IdleTimeout: 5 * time.Minute}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	defer func() {
		patience, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = server.Shutdown(patience)
	}()
	if err := e.start(); err != nil {
		return errors.Join(err, e.close())
	}
	fmt.Fprintf(o.log, "ksnoop-exporter: %d of %d metrics are counted, http://%s/metrics\n", e.set.Counting(), len(e.set.Probes), listener.Addr())
	for {
		select {
		case <-ctx.Done():
			return e.close()
		case err := <-ended:
			return errors.Join(fmt.Errorf("serve: %w", err), e.close())
		case <-hangups:
			e.reload()
		}
	}
}

// newExporter returns an exporter that has attached nothing yet. It gives up the privileges
// that are not needed.
func newExporter(o *options) (_ *exporter, err error) {
	e := &exporter{
		options:    o,
		reloaded:   prometheus.NewGauge(prometheus.GaugeOpts{Name: "ksnoop_exporter_config_last_reload_successful", Help: "Whether the probe files could be taken over the last time they were read."}),
		reloadedAt: prometheus.NewGauge(prometheus.GaugeOpts{Name: "ksnoop_exporter_config_last_reload_success_timestamp_seconds", Help: "When the probe files were taken over the last time."}),
	}
	e.probes.Warn = prefixed{o.log}
	if e.privileges, err = giveUp(o.keep); err != nil {
		return nil, err
	}
	e.collector.Reading = e.privileges.reading
	return e, nil
}

// prefixed begins each text with the name of the program.
type prefixed struct{ io.Writer }

func (p prefixed) Write(text []byte) (int, error) {
	_, err := fmt.Fprintf(p.Writer, "ksnoop-exporter: %s", text)
	return len(text), err
}

// start attaches the probes for the first time.
func (e *exporter) start() error {
	set, err := e.attach()
	if err != nil {
		return err
	}
	failed := set.Failed(nil)
	if set.Counting() == 0 && failed != nil {
		return errors.Join(failed, set.Close(nil))
	}
	e.take(set)
	if failed != nil {
		say(e.log, failed)
	}
	return nil
}

// reload reads the files again. Unless all that is new in them can be attached, as far
// as this kernel has it, nothing changes.
func (e *exporter) reload() {
	set, err := e.attach()
	if err == nil {
		if err = set.Failed(e.set); err != nil {
			err = errors.Join(err, set.Close(e.set))
		}
	}
	if err != nil {
		e.reloaded.Set(0)
		say(e.log, err)
		fmt.Fprintln(e.log, "ksnoop-exporter: the probe files are not taken over: what was counted before is still counted")
		return
	}
	earlier := e.set
	e.take(set)
	if err := earlier.Close(set); err != nil {
		say(e.log, err)
	}
	fmt.Fprintf(e.log, "ksnoop-exporter: the probe files are read again: %d of %d metrics are counted\n", set.Counting(), len(set.Probes))
}

// attach reads the files and attaches what is new.
func (e *exporter) attach() (set *probes.Set, err error) {
	suites, err := probes.Read(e.files)
	if err != nil {
		return nil, err
	}
	err = e.privileges.with(func() error {
		set, err = probes.Attach(suites, e.set, &e.probes)
		return err
	})
	return set, err
}

// take serves a set.
func (e *exporter) take(set *probes.Set) {
	e.set = set
	e.collector.Put(set)
	e.reloaded.Set(1)
	e.reloadedAt.SetToCurrentTime()
	if absent := set.Absent(); absent != nil {
		say(e.log, absent)
	}
}

func (e *exporter) close() error {
	set := e.collector.Put(nil)
	if set == nil {
		return nil
	}
	return set.Close(nil)
}

// handler returns what is served.
func (e *exporter) handler() http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(&e.collector, e.reloaded, e.reloadedAt, buildInfo(), collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", complete(promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		ErrorHandling: promhttp.HTTPErrorOnError, MaxRequestsInFlight: 4,
		EnableOpenMetrics: false, // Prometheus would store le="63.0" of it, and le="63" of the text format
	})))
	mux.HandleFunc("GET /-/healthy", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ksnoop-exporter is healthy") })
	mux.HandleFunc("GET /-/ready", func(w http.ResponseWriter, _ *http.Request) {
		switch attached, err := e.collector.Ready(); {
		case err != nil:
			http.Error(w, "the counts cannot be read: "+err.Error(), http.StatusServiceUnavailable)
		case !attached:
			http.Error(w, "the probes are not attached yet", http.StatusServiceUnavailable)
		default:
			fmt.Fprintln(w, "ksnoop-exporter is ready")
		}
	})
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprintln(w, `<!DOCTYPE html><title>ksnoop-exporter</title><h1>ksnoop-exporter</h1><p><a href="/metrics">Metrics</a>`)
	})
	return mux
}

// mostUnread is the largest number of answers that wait for clients to read them.
const mostUnread = 32

// complete sends what a handler answers once that is complete, so that a client that does not
// read it is none of the few requests that the handler takes at a time.
func complete(h http.Handler) http.Handler {
	unread := make(chan struct{}, mostUnread)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case unread <- struct{}{}:
			defer func() { <-unread }()
		default:
			http.Error(w, "too many clients do not read their answers: try again later", http.StatusServiceUnavailable)
			return
		}
		a := &answer{header: w.Header(), status: http.StatusOK}
		h.ServeHTTP(a, r)
		w.WriteHeader(a.status)
		_, _ = w.Write(a.Bytes()) // the client is gone
	})
}

// answer is an answer that is not sent yet.
type answer struct {
	bytes.Buffer
	header http.Header
	status int
}

func (a *answer) Header() http.Header    { return a.header }
func (a *answer) WriteHeader(status int) { a.status = status }
