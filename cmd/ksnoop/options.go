package main

import (
	"math/bits"
	"os"
	goruntime "runtime"
	"strconv"

	"github.com/spf13/pflag"

	"github.com/ksnoop/ksnoop/compiler"
)

// defaultRing holds 10,000 small records, or 200 of a page. It counts twice in
// the resident memory: the kernel maps it twice in a row.
const defaultRing = 1 << 20

// programFlags is what programs are made of.
func programFlags(f *pflag.FlagSet) {
	filterFlags(f)
	f.BoolP("stack", "s", false, "trace a call chain: each function only inside the ones named before it")
	attachFlag(f)
	f.StringP("pages", "P", "", "buffer events in `N` pages for each CPU, a power of two")
	f.Bool("summary", false, "count every call, and say at the end what became of them")
	f.String("max-bytes", "", "capture at most `N` bytes of a value (default: 4096)")
}

// attachFlag is how probes are attached.
func attachFlag(f *pflag.FlagSet) {
	f.String("attach", "", "attach by `KIND`: fentry, kprobe, kprobe.multi or kprobe.session (default: the best for each function)")
}

// talkFlags is what ksnoop says of itself.
func talkFlags(f *pflag.FlagSet) {
	f.BoolP("debug", "d", false, "say how each function is traced and why, and show the programs")
	verboseFlag(f)
}

func verboseFlag(f *pflag.FlagSet) {
	f.BoolP("verbose", "v", false, "say what is being done")
}

// hidden are options that a command accepts, as the classic ksnoop did, but that
// mean nothing to it.
func hidden(define ...flags) flags {
	return func(f *pflag.FlagSet) {
		set := optionSet(define...)
		set.VisitAll(func(o *pflag.Flag) { o.Hidden = true })
		f.AddFlagSet(set)
	}
}

// number reads a positive number from an option; 0 if the option is not given.
func number(c *invocation, name string, limit uint64) (uint64, error) {
	if !c.IsSet(name) {
		return 0, nil
	}
	text := c.String(name)
	n, err := strconv.ParseUint(text, 0, 64)
	if err != nil || n == 0 || n > limit {
		return 0, usagef("--%s is %q: it must be a number from 1 to %d", name, text, limit)
	}
	return n, nil
}

const (
	maxPID   = 1 << 22 // PID_MAX_LIMIT
	maxBytes = 1 << 20
	maxPages = 1 << 15
)

// compileOptions reads what the command line says about the programs.
func compileOptions(c *invocation, target *compiler.Target) (compiler.Options, error) {
	opts := compiler.Options{Arch: target.Arch, Features: target.Features, Cgroup: c.IsSet("cgroup")}
	if c.Bool("tree") {
		tasks, err := compiler.FindTasks(target.Kernel)
		if err != nil {
			return opts, err
		}
		opts.Tree = tasks
	}
	opts.Tally = c.Bool("summary") || c.String("output") == "json"
	for _, o := range []struct {
		name  string
		limit uint64
		set   func(uint64)
	}{
		{"pid", maxPID, func(n uint64) { opts.PID = uint32(n) }},
		{"tid", maxPID, func(n uint64) { opts.TID = uint32(n) }},
		{"max-bytes", maxBytes, func(n uint64) { opts.MaxBytes = int(n) }},
		{"pages", maxPages, func(n uint64) { opts.RingBytes = uint32(n) }},
	} {
		n, err := number(c, o.name, o.limit)
		if err != nil {
			return opts, err
		}
		o.set(n)
	}
	ring, err := ringBytes(opts.RingBytes)
	opts.RingBytes = ring
	return opts, err
}

// ringBytes is the size of the ring buffer for a number of pages for each CPU.
// All CPUs share one buffer.
func ringBytes(pages uint32) (uint32, error) {
	if pages == 0 {
		return defaultRing, nil
	}
	if bits.OnesCount32(pages) != 1 {
		return 0, usagef("--pages is %d: it must be a power of two, such as %d", pages, uint32(1)<<bits.Len32(pages))
	}
	total := uint64(pages) * uint64(os.Getpagesize()) * uint64(goruntime.NumCPU())
	total = 1 << bits.Len64(total-1)
	if total > 1<<31 {
		return 0, usagef("--pages is %d: with %d CPUs that is more than 2 GiB", pages, goruntime.NumCPU())
	}
	return uint32(total), nil
}
