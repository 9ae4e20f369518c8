package target

import (
	"math/bits"
	"os"
	goruntime "runtime"
	"strconv"
	"strings"
	"unicode"

	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/exit"
	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/resolve"
	"github.com/ksnoop/ksnoop/runtime/render"
)

// ParseNumber parses the value of an option that is a positive number.
func ParseNumber(option, text string, limit uint64) (uint64, error) {
	base := 0
	if strings.Trim(text, "0123456789") == "" {
		base = 10 // also with zeroes in front, which do not mean octal
	}
	n, err := strconv.ParseUint(text, base, 64)
	if err != nil || n == 0 || n > limit {
		return 0, exit.Usagef("--%s is %q: it must be a number from 1 to %d", option, text, limit)
	}
	return n, nil
}

// ParseID parses the value of an option that is the id of a process or a thread.
func ParseID(option, text string) (uint32, error) {
	if strings.IndexFunc(text, unicode.IsLetter) == 0 {
		return 0, exit.Usagef("--%s is %q: it must be a number; --comm %s traces processes by their name", option, text, text)
	}
	n, err := ParseNumber(option, text, MaxPID)
	return uint32(n), err
}

const (
	MaxPID   = 1 << 22 // PID_MAX_LIMIT
	MaxBytes = compiler.MostBytes
	maxPages = 1 << 15
)

// Programs holds the options of the command line for the programs.
type Programs struct {
	PID, TID   uint32
	Tree       bool
	Cgroup     string // directory or id, or "" for all
	Container  string // name or the beginning of the id of a container, or "" for all
	Chain      bool
	Attach     compiler.Kind // "" for the best of each function
	Ring       uint32        // bytes of the ring buffer, or 0 for the default
	MaxBytes   int           // of a value, or 0 for the default
	Keys       int           // that a table has room for, or 0 for the default
	Rate       uint32        // events of each kind that are shown in a second, or 0 for any number
	CountCalls bool          // count calls that no event shows, too

	ClearTables bool // each interval has tables of its own
}

// options returns the compiler's options.
func (p *Programs) options(target *compiler.Target) (compiler.Options, error) {
	opts := compiler.Options{
		PID: p.PID, TID: p.TID, Cgroup: p.Cgroup != "" || p.Container != "",
		RingBytes: p.Ring, MaxBytes: p.MaxBytes, CountCalls: p.CountCalls, Keys: p.Keys, Rate: p.Rate,
		ClearTables: p.ClearTables,
	}
	if !p.Tree {
		return opts, nil
	}
	tasks, err := resolve.FindTasks(target.Kernel)
	opts.Tree = tasks
	return opts, err
}

// CheckTree returns an error for the tree of a thread.
func (p *Programs) CheckTree() error {
	if p.Tree && p.TID != 0 {
		return exit.Usagef("--tree follows processes, and --tid is a thread: name its process with --pid")
	}
	return nil
}

// CheckRate returns an error for a rate of events if a unit has none, or those of iterators.
func (p *Programs) CheckRate(unit *compiler.Unit) error {
	switch {
	case p.Rate == 0:
		return nil
	case render.OnlyTables(unit):
		return exit.Usagef("--rate is for events, and these specs have a table in place of them: leave it out")
	case unit.Iterates():
		return exit.Usagef("--rate is for calls, and iter: reads what is there now, once: leave it out")
	}
	return nil
}

// ParseRate parses the value of an option that is a number of events, with or without /s.
func ParseRate(option, text string) (uint32, error) {
	n, err := strconv.ParseUint(strings.TrimSuffix(text, "/s"), 0, 64)
	if err != nil || n == 0 || n > compiler.MostRate {
		return 0, exit.Usagef("--%s is %q: it must be a number from 1 to %d of events a second, such as 10/s", option, text, compiler.MostRate)
	}
	return uint32(n), nil
}

// RingBytes returns the size of the ring buffer in bytes for the value of an option that
// is a number of pages for each CPU. All CPUs share one buffer.
func RingBytes(option, text string) (uint32, error) {
	pages, err := ParseNumber(option, text, maxPages)
	if err != nil {
		return 0, err
	}
	if bits.OnesCount64(pages) != 1 {
		return 0, exit.Usagef("--%s is %d: it must be a power of two, such as %d", option, pages, uint64(1)<<bits.Len64(pages))
	}
	total := pages * uint64(os.Getpagesize()) * uint64(goruntime.NumCPU())
	total = 1 << bits.Len64(total-1)
	if total > 1<<31 {
		return 0, exit.Usagef("--%s is %d: with %d CPUs that is more than 2 GiB", option, pages, goruntime.NumCPU())
	}
	return uint32(total), nil
}
