package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
)

// record is a line as it arrives.
type record struct {
	body       any
	text       string // the body as JSON, its members sorted
	severity   string
	time       time.Time
	resource   map[string]any
	attributes map[string]any
	times      int // how often it has arrived
}

// backend takes records by OTLP as a server of logs does, and keeps one of those with the
// same log.record.uid.
type backend struct {
	t   *testing.T
	url string

	mu       sync.Mutex
	records  map[string]*record
	refusing bool
	refused  int
}

func newBackend(t *testing.T) *backend {
	b := &backend{t: t, records: map[string]*record{}}
	server := httptest.NewServer(b)
	t.Cleanup(server.Close)
	b.url = server.URL
	return b
}

func (b *backend) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.refusing {
		b.refused++
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	if err := b.take(r); err != nil {
		b.t.Errorf("%s: %v", r.URL, err)
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
	answer, _ := plogotlp.NewExportResponse().MarshalProto()
	_, _ = w.Write(answer)
}

// take adds the records of a request.
func (b *backend) take(r *http.Request) error {
	if r.URL.Path != "/v1/logs" || r.Header.Get("Content-Encoding") != "gzip" {
		return fmt.Errorf("not logs that are compressed: %v", r.Header)
	}
	plain, err := gzip.NewReader(r.Body)
	if err != nil {
		return err
	}
	message, err := io.ReadAll(plain)
	if err != nil {
		return err
	}
	request := plogotlp.NewExportRequest()
	if err := request.UnmarshalProto(message); err != nil {
		return err
	}
	for _, of := range request.Logs().ResourceLogs().All() {
		for _, scope := range of.ScopeLogs().All() {
			for _, l := range scope.LogRecords().All() {
				if err := b.add(of.Resource().Attributes().AsRaw(), l); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// add adds a record, or counts it if it is there.
func (b *backend) add(resource map[string]any, l plog.LogRecord) error {
	r := &record{body: l.Body().AsRaw(), severity: severityName(l), resource: resource, attributes: l.Attributes().AsRaw()}
	if l.Timestamp() != 0 {
		r.time = l.Timestamp().AsTime()
	}
	text, err := json.Marshal(r.body)
	if err != nil {
		return err
	}
	r.text = string(text)
	uid, _ := r.attributes["log.record.uid"].(string)
	if uid == "" {
		return fmt.Errorf("no log.record.uid: %s", r.text)
	}
	if earlier := b.records[uid]; earlier != nil {
		if r.text != earlier.text {
			return fmt.Errorf("two records %s: %s, %s", uid, earlier.text, r.text)
		}
		earlier.times++
		return nil
	}
	r.times = 1
	b.records[uid] = r
	return nil
}

func severityName(l plog.LogRecord) string {
	switch l.SeverityNumber() {
	case plog.SeverityNumberInfo:
		return "INFO"
	case plog.SeverityNumberWarn:
		return "WARN"
	}
	return l.SeverityNumber().String()
}

// refuse makes the backend refuse everything, or take it.
func (b *backend) refuse(all bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refusing = all
}

func (b *backend) awaitRefused() {
	require.Eventually(b.t, func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.refused > 0
	}, patience, 20*time.Millisecond)
}

// all returns the records, each once.
func (b *backend) all() (all []*record) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range b.records {
		all = append(all, r)
	}
	return all
}

func (b *backend) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.records)
}

// doubles returns how often a record came again.
func (b *backend) doubles() (n int) {
	for _, r := range b.all() {
		n += r.times - 1
	}
	return n
}

// awaitCount waits until there are n records.
func (b *backend) awaitCount(n int) {
	b.t.Helper()
	require.Eventually(b.t, func() bool { return b.count() >= n }, patience, 20*time.Millisecond, "%d records", n)
}

// awaitLines waits until as many records have arrived as there are lines, whose contents
// they must have.
func (b *backend) awaitLines(lines []string) {
	b.t.Helper()
	b.awaitCount(len(lines))
	got := map[string]int{}
	for _, r := range b.all() {
		got[r.text]++
	}
	want := map[string]int{}
	for _, line := range lines {
		want[sorted(b.t, line)]++
	}
	require.Equal(b.t, len(want), len(got))
	for text, n := range want {
		require.Equal(b.t, n, got[text], text)
	}
}

// sorted returns a line as the bodies of records are written.
func sorted(t *testing.T, line string) string {
	var v any
	d := json.NewDecoder(bytes.NewReader([]byte(line)))
	d.UseNumber()
	require.NoError(t, d.Decode(&v), line)
	text, err := json.Marshal(v)
	require.NoError(t, err)
	return string(text)
}

// checkRecords checks what is not in the bodies of records: the severity, the time and
// the resource, which has more than the probe.
func checkRecords(t *testing.T, all []*record, resource map[string]string) {
	seen := map[any]bool{}
	for _, r := range all {
		body := r.body.(map[string]any)
		seen[body["type"]], seen[body["func"]] = true, true
		want := map[string]any{}
		for name, value := range resource {
			want[name] = value
		}
		if f := body["func"]; f != nil {
			want["ksnoop.probe"] = f
		}
		require.Equal(t, want, r.resource, r.text)
		require.Equal(t, "INFO", r.severity, r.text)
		if wall, ok := body["wall"].(string); ok {
			at, err := time.Parse(time.RFC3339Nano, wall)
			require.NoError(t, err)
			require.Equal(t, at.UTC(), r.time, r.text)
		} else {
			require.NotEqual(t, "event", body["type"])
		}
	}
	for _, what := range []any{"run", "event", "summary", "tp:sys_enter", "tp:task_rename"} {
		require.True(t, seen[what], what)
	}
}
