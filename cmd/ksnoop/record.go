package main

import (
	"math"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/exit"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/run"
)

func recordCommand(e *environment) *cli.Command {
	o := &run.Options{Own: e.own, Version: buildVersion()}
	return &cli.Command{
		Name:      "record",
		Usage:     "write raw records to a file, for replay",
		ArgsUsage: "SPEC... [-- COMMAND [ARGUMENT...]]",
		Description: `What decodes the records is in the file, too, so that replay prints it anywhere:

   ksnoop record -w FILE 'vfs_read(file, count)' -- ls
   ksnoop replay FILE -o json
   ksnoop record -w FILE --rotate 100M --keep 9 'tcp_drop*'    at most ten files`,
		Flags: join([]cli.Flag{
			textFlag("write w", "write to `FILE`; - is standard output", &o.File.Name),
			parsedFlag("rotate", "begin the next file at `SIZE` bytes, such as 64K, 100M or 2G: FILE is then the newest, FILE.1 the one before", &o.File.Rotate, fileSize),
			parsedFlag("keep", "with --rotate, keep `N` files besides the newest (default: 9)", &o.File.Keep, number[int](10_000)),
		}, fileFlag(&o.Specs), programFlags(&o.Programs, &o.Specs, &o.Summary),
			eventsFlag(&o.Bounds), timeFlags(&o.Bounds, &o.Ready), talkFlags(&o.Debug, &o.Verbose), countFlags(&o.Tables)),
		Action: e.traces(&o.Specs, &o.Command, func() error {
			switch {
			case o.File.Name == "" && len(o.Specs.Texts) > 0:
				return exit.Usagef("record writes to no file: name it, as in ksnoop record -w FILE %s", o.Specs.Texts[0])
			case o.File.Name == "":
				return exit.Usagef("record writes to no file: name it, as in ksnoop record -w FILE -f %s", o.Specs.Files[0])
			case o.File.Keep > 0 && o.File.Rotate == 0:
				return exit.Usagef("--keep is for the files of --rotate: give their size, as in --rotate 100M")
			case o.File.Keep == 0:
				o.File.Keep = 9
			}
			return run.Record(o, &e.Streams)
		}),
	}
}

// fileSize parses the value of --rotate.
func fileSize(option, text string) (uint64, error) {
	digits := strings.TrimRight(text, "KMG")
	shift, ok := map[string]int{"": 0, "K": 10, "M": 20, "G": 30}[text[len(digits):]]
	n, err := strconv.ParseUint(digits, 10, 64)
	if least := uint64(1 << 16); err != nil || !ok || n > math.MaxInt64>>shift || n<<shift < least {
		return 0, exit.Usagef("--%s is %q: it must be a number of bytes such as 64K, 100M or 2G, and 64K at least", option, text)
	}
	return n << shift, nil
}
