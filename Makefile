# Every target is one plain command that works without make, too.

VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)

# What no event passes through need not be fast: without inlining it is smaller.
COLD := fmt reflect time regexp/... text/template/... github.com/cilium/ebpf/asm github.com/urfave/cli/v2 github.com/ksnoop/ksnoop/compiler/...

# The static binary. The tag leaves out what would make manuals of the help.
ksnoop: FORCE
	CGO_ENABLED=0 go build -trimpath -tags urfave_cli_no_docs -ldflags "-s -w -X main.version=$(VERSION)" \
		$(COLD:%=-gcflags=%=-l) -o $@ ./cmd/ksnoop

# Everything, on five kernels where virtual machines can be had.
test: deps
	go vet ./...
	go run honnef.co/go/tools/cmd/staticcheck@v0.8.2 ./...
	go test -timeout 75m ./...

# The same with every function of every kernel, a million calls of random specs,
# and ten minutes of attaching and detaching.
test-long: test
	go test ./compiler -run 'TestSemantics$$' -rounds 1000000 -timeout 60m
	go test ./e2e -v -run 'TestMatrix/.*/sweep' -sweep 0 -timeout 4h
	go test ./e2e -v -run 'TestMatrix/.*/cycles' -cycles 10m -timeout 4h

# What the comparison with libbpf needs, as root on Debian; skipped elsewhere.
deps:
	-@[ "$$(id -u)" != 0 ] || [ -e /usr/include/bpf/btf.h ] || { apt-get update && \
		apt-get install -y --no-install-recommends gcc libc6-dev libbpf-dev; }

# ksnoop at work in a virtual machine.
demo:
	go run ./e2e/demo

clean:
	rm -f ksnoop

FORCE:
.PHONY: test test-long deps demo clean FORCE
