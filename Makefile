# Every target is one plain command that works without make, too.

VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)

# What is built is static, and so are the tests, which run in virtual machines. With
# the flags of cmd/build everywhere nothing is compiled twice.
export CGO_ENABLED = 0
export GOFLAGS += -trimpath -gcflags=fmt=-l -gcflags=errors=-l -gcflags=reflect=-l -gcflags=regexp/...=-l -gcflags=encoding/json=-l -gcflags=text/...=-l -gcflags=compress/...=-l -gcflags=debug/...=-l -gcflags=internal/zstd=-l -gcflags=flag=-l -gcflags=log=-l -gcflags=os/signal=-l -gcflags=github.com/urfave/cli/v2=-l -gcflags=github.com/valyala/fastjson/...=-l -gcflags=github.com/ksnoop/ksnoop/cmd/ksnoop/...=-l -gcflags=github.com/ksnoop/ksnoop/compiler/suite/...=-l -gcflags=github.com/ksnoop/ksnoop/compiler/spec/...=-l -gcflags=github.com/ksnoop/ksnoop/compiler=-l -gcflags=github.com/ksnoop/ksnoop/compiler/resolve=-l -gcflags=github.com/ksnoop/ksnoop/runtime/cgroup=-l -gcflags=github.com/ksnoop/ksnoop/runtime/known=-l -gcflags=github.com/ksnoop/ksnoop/runtime/clock=-l -gcflags=github.com/ksnoop/ksnoop/cmd/ksnoop/internal/run= -gcflags=github.com/ksnoop/ksnoop/cmd/ksnoop/internal/term=

# The static binary.
ksnoop: FORCE
	go run ./cmd/build -version "$(VERSION)" -o $@

EXPORTER := cd cmd/ksnoop-exporter && go build -buildvcs=false -trimpath -tags urfave_cli_no_docs -gcflags=fmt=-l -ldflags "-s -w -funcalign=4 -X main.version=$(VERSION)"

# The program that serves metrics to Prometheus.
ksnoop-exporter: FORCE
	$(EXPORTER) -o ../../$@ .

# What is made of one commit by one version of Go has the same bytes everywhere.
SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || echo 1)
MKDIST = go run -C cmd/mkdist . -version "$(VERSION)" -time $(SOURCE_DATE_EPOCH)

# The name of the image.
REF := localhost/ksnoop:latest

# Static binaries of both programs for amd64 and arm64 in dist/, with archives, packages and a bill of materials for each.
dist: static static-exporter
	$(MKDIST) packages

# A container image that holds the binary alone, in dist/ as an OCI layout and as an archive of it.
image: static
	$(MKDIST) -ref "$(REF)" image

# An image with the exporter alone.
exporter-image: static-exporter
	$(MKDIST) -program ksnoop-exporter -ref "$(dir $(REF))$(subst ksnoop,ksnoop-exporter,$(notdir $(REF)))" image

# What the tests of packages, and of the binary for arm64, need, as root on
# Debian; skipped elsewhere.
dist-deps:
	-@[ "$$(id -u)" != 0 ] || { which rpm dnf qemu-aarch64 > /dev/null; } || { apt-get update && \
		apt-get install -y --no-install-recommends rpm dnf qemu-user; }

static:
	mkdir -p dist
	for arch in amd64 arm64; do \
		GOFLAGS= go run ./cmd/build -arch $$arch -version "$(VERSION)" -o dist/ksnoop-linux-$$arch || exit 1; \
	done

static-exporter:
	mkdir -p dist
	for arch in amd64 arm64; do \
		( export GOOS=linux GOARCH=$$arch GOAMD64=v1 GOARM64=v8.0 GOFLAGS=; \
			$(EXPORTER) -o ../../dist/ksnoop-exporter-linux-$$arch . ) || exit 1; \
	done

# In ten minutes with empty caches: all tests on one kernel, where virtual machines can be had, and
# the main job on four others.
test: deps
	GOGC=800 go vet ./... # a fifth less to do for the compiler, in 0.5 GB of memory
	GOGC=800 go run honnef.co/go/tools/cmd/staticcheck@v0.8.2 ./...
	go run ./e2e/gotest -vet=off -timeout 80m ./e2e ./...
	cd cmd/ksnoop-exporter && GOGC=800 go vet ./... && go test -vet=off ./...

# Every test on every kernel, of arm64 on three, with full loops; costs by the table,
# packages and the image. CI does so in parts, all at once: .github/workflows/ci.yml.
test-kernels: test-machines test-rest

test-machines: deps dist-deps
	go run ./e2e/gotest -timeout 12h ./e2e -full

test-rest: deps dist-deps
	go run github.com/rhysd/actionlint/cmd/actionlint@v1.7.12
	go test ./cmd/ksnoop -run 'TestMutatedRecordings$$' -mutants 100000
	go test ./compiler/codegen -run Semantics -rounds 100000
	go test ./btfdump -all
	cd cmd/mkdist && go vet ./... && go test -timeout 30m ./...
	cd cmd/ksnoop-exporter && go test -run Prometheus . -full

# What is about races, on kernels under so many seeds, the first of which is SEED:
# with another one, threads and interrupts come in another order.
SEEDS := 20
SEED := 2
KERNELS := .*
test-seeds: deps
	failed=; for seed in $$(seq $(SEED) $$(($(SEED) + $(SEEDS) - 1))); do \
		go run ./e2e/gotest -count 1 -timeout 2h ./e2e -run 'TestMatrix/$(KERNELS)/$(RACES)' -seed $$seed || failed="$$failed $$seed"; \
	done; [ -z "$$failed" ] || { echo "seeds that failed:$$failed"; exit 1; }; echo "all of $(SEEDS) seeds passed"
RACES := ^(accounting|attaching|chain|cycles|ends|flood|frozen|limited|losses|many|measures|mishaps|noroom|pairing|preemption|runtime|spanning|stack|tables|tree|unload)$$

# For a night: test-kernels, every function, a million calls of random specs, ten
# minutes of attaching and detaching, two tracers beside busy threads for an hour, and
# the OpenTelemetry Collector.
test-long: test-kernels
	cd e2e/collector && go vet . && go test -vet=off -count 1 .
	go test ./compiler/codegen -run 'Semantics$$' -rounds 1000000 -timeout 3h
	go test ./e2e -v -run 'TestMatrix/.*/sweep' -sweep -1 -timeout 4h
	go test ./e2e -v -run 'TestMatrix/.*/cycles' -cycles 10m -timeout 4h
	go test ./e2e -v -run 'TestSoak$$' -soak-for 1h -timeout 4h

# What tracing costs, beside bcc's ksnoop and bpftrace: docs/performance.md.
bench: ksnoop
	go test ./e2e -v -timeout 60m -run '^TestBench$$' -ksnoop $(CURDIR)/ksnoop -results $(CURDIR)/bench

# What the comparison with libbpf, the completion of shells and the manual page
# need, as root on Debian; skipped elsewhere.
deps:
	-@[ "$$(id -u)" != 0 ] || { [ -e /usr/include/bpf/btf.h ] && which zsh fish mandoc groff > /dev/null; } || { apt-get update && \
		apt-get install -y --no-install-recommends gcc libc6-dev libbpf-dev zsh fish mandoc groff-base; }

# ksnoop at work in a virtual machine.
demo:
	go run ./e2e/demo

# The moving picture of the README, from a recording in a virtual machine.
cast:
	go run ./e2e/cast

clean:
	rm -rf ksnoop ksnoop-exporter dist .build

FORCE:
.PHONY: dist image exporter-image static static-exporter dist-deps test test-kernels test-machines test-rest test-seeds test-long bench deps demo cast clean FORCE
