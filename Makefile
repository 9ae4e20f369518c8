# Each target is a plain command, which works without make, too. docs/install.md and docs/testing.md explain them.
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || echo 1)
MKDIST = go run -C cmd/mkdist . -version "$(VERSION)" -time $(SOURCE_DATE_EPOCH) -ref "$(REF)"
# What is built is static, and so are the tests. With the flags of cmd/build nothing is compiled twice.
export CGO_ENABLED = 0
export GOFLAGS += -trimpath -gcflags=fmt=-l -gcflags=errors=-l -gcflags=reflect=-l -gcflags=regexp/...=-l -gcflags=encoding/json=-l -gcflags=text/...=-l -gcflags=compress/...=-l -gcflags=debug/...=-l -gcflags=internal/zstd=-l -gcflags=flag=-l -gcflags=log=-l -gcflags=os/signal=-l -gcflags=github.com/urfave/cli/v2=-l -gcflags=github.com/valyala/fastjson/...=-l -gcflags=github.com/ksnoop/ksnoop/cmd/ksnoop/...=-l -gcflags=github.com/ksnoop/ksnoop/compiler/suite/...=-l -gcflags=github.com/ksnoop/ksnoop/compiler/spec/...=-l -gcflags=github.com/ksnoop/ksnoop/compiler/resolve=-l -gcflags=github.com/ksnoop/ksnoop/runtime/cgroup=-l -gcflags=github.com/ksnoop/ksnoop/runtime/known=-l -gcflags=github.com/ksnoop/ksnoop/runtime/clock=-l -gcflags=github.com/ksnoop/ksnoop/cmd/ksnoop/internal/run= -gcflags=github.com/ksnoop/ksnoop/cmd/ksnoop/internal/term=

ksnoop ksnoop-exporter: FORCE
	go run ./cmd/build -program $@ -version "$(VERSION)" -o $@
static:
	go run ./cmd/build -version "$(VERSION)" -all dist
dist: static
	$(MKDIST) packages
image: static
	$(MKDIST) image
exporter-image: static
	$(MKDIST) -program ksnoop-exporter image
test:
	.ci/deps
	GOGC=800 go vet ./... # a fifth less to do for the compiler, in 0.5 GB of memory
	GOGC=800 go run honnef.co/go/tools/cmd/staticcheck@v0.8.2 ./...
	go run ./e2e/gotest -vet=off -timeout 80m ./e2e ./...
	cd cmd/ksnoop-exporter && GOGC=800 go vet ./... && go test -vet=off ./...
test-kernels: test-machines test-rest
test-machines:
	.ci/deps rest
	go run ./e2e/gotest -timeout 12h ./e2e -full
test-long: test-kernels
test-rest test-seeds test-long:
	.ci/$(@:test-%=%)
bench: ksnoop
	go test ./e2e -v -timeout 60m -run '^TestBench$$' -ksnoop $(CURDIR)/ksnoop -results $(CURDIR)/bench
demo cast:
	go run ./e2e/$@
clean:
	rm -rf ksnoop ksnoop-exporter dist .build
FORCE:
.PHONY: static dist image exporter-image test test-kernels test-machines test-rest test-seeds test-long bench demo cast clean FORCE
