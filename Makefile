# Every target is one plain command that works without make, too.

VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)

# What no event passes through need not be fast: without inlining it is smaller.
COLD := fmt reflect time regexp/... github.com/cilium/ebpf/asm github.com/ksnoop/ksnoop/compiler/...

BUILD := go build -buildvcs=false -trimpath -ldflags "-s -w -X main.version=$(VERSION)" $(COLD:%=-gcflags=%=-l)

# The static binary.
ksnoop: FORCE
	CGO_ENABLED=0 $(BUILD) -o $@ ./cmd/ksnoop

# What is made of one commit by one version of Go has the same bytes everywhere.
SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || echo 1)
MKDIST = go run -C cmd/mkdist . -version "$(VERSION)" -time $(SOURCE_DATE_EPOCH)

# The name of the image.
REF := localhost/ksnoop:latest

# Static binaries for amd64 and arm64 in dist/, with archives, packages and a bill of materials for each.
dist: static
	$(MKDIST) packages

# A container image that holds the binary alone, in dist/ as an OCI layout and as an archive of it.
image: static
	$(MKDIST) -ref "$(REF)" image

# What the tests of packages, and of the binary for arm64, need, as root on
# Debian; skipped elsewhere.
dist-deps:
	-@[ "$$(id -u)" != 0 ] || { which rpm qemu-aarch64 > /dev/null; } || { apt-get update && \
		apt-get install -y --no-install-recommends rpm qemu-user; }

static:
	mkdir -p dist
	for arch in amd64 arm64; do \
		GOOS=linux GOARCH=$$arch GOAMD64=v1 GOARM64=v8.0 GOFLAGS= CGO_ENABLED=0 \
			$(BUILD) -o dist/ksnoop-linux-$$arch ./cmd/ksnoop || exit 1; \
	done

# In ten minutes: all tests on one kernel, where virtual machines can be had, and
# the main job on four others.
test: deps
	go vet ./...
	go run honnef.co/go/tools/cmd/staticcheck@v0.8.2 ./...
	go test -vet=off -timeout 30m ./...

# Every test on every kernel with full loops; packages and the image.
test-kernels: deps dist-deps
	go test -timeout 4h ./e2e -full
	cd cmd/mkdist && go vet ./... && go test -timeout 30m ./...

# What is about races, on each kernel under many seeds, from SEED on: with
# another one, threads and interrupts come in another order.
SEEDS := 20
SEED := 2
KERNELS := .*
test-seeds: deps
	failed=; for seed in $$(seq $(SEED) $$(($(SEED) + $(SEEDS) - 1))); do \
		go test -count 1 -timeout 2h ./e2e -run 'TestMatrix/$(KERNELS)/$(RACES)' -seed $$seed || failed="$$failed $$seed"; \
	done; [ -z "$$failed" ] || { echo "seeds that failed:$$failed"; exit 1; }; echo "all of $(SEEDS) seeds passed"
RACES := ^(pairing|losses|flood|measures|chain|cycles|attaching|unload|mishaps|runtime|frozen|preemption|many|stack|tree)$$

# For a night: every function of every kernel, a million calls of random specs,
# and ten minutes of attaching and detaching.
test-long: test test-kernels
	go test ./compiler -run 'TestSemantics$$' -rounds 1000000 -timeout 60m
	go test ./e2e -v -run 'TestMatrix/.*/sweep' -sweep -1 -timeout 4h
	go test ./e2e -v -run 'TestMatrix/.*/cycles' -cycles 10m -timeout 4h

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

clean:
	rm -rf ksnoop dist

FORCE:
.PHONY: dist image static dist-deps test test-kernels test-seeds test-long bench deps demo clean FORCE
