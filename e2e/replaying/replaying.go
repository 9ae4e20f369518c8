//go:build linux

// Package replaying is a command that stands in for ksnoop: it records what ksnoop
// traces, and checks that replay prints the same.
package replaying

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

const ksnoop = "/bin/ksnoop"

// Dir is the directory in which this command has the name ksnoop.
const Dir = "/replaying"

// differs is the exit status if replay prints something else than trace.
const differs = 97

// Main runs ksnoop with the arguments of this process, and ends with its status. It
// records ksnoop if that traces, may write files, and has a pipe as its output, which a
// script reads to the end.
func Main() {
	args := os.Args[1:]
	var out unix.Stat_t
	piped := unix.Fstat(unix.Stdout, &out) == nil && out.Mode&unix.S_IFMT == unix.S_IFIFO
	if !Traces(args) || os.Geteuid() != 0 || !piped {
		err := unix.Exec(ksnoop, append([]string{"ksnoop"}, args...), os.Environ())
		fail(fmt.Errorf("run %s: %w", ksnoop, err))
	}
	status, err := traced(args)
	if err != nil {
		fail(err)
	}
	os.Exit(status)
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "replaying:", err)
	os.Exit(differs)
}

// traced runs ksnoop and returns its status.
func traced(args []string) (status int, err error) {
	dir, err := os.MkdirTemp("", "replaying")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	// Were it a pipe, ksnoop would see it being read when it traces reads.
	shown, err := os.Create(filepath.Join(dir, "shown"))
	if err != nil {
		return 0, err
	}
	defer shown.Close()
	recording := filepath.Join(dir, "recording")
	cmd := exec.Command(ksnoop, Recorded(args, recording)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, shown, os.Stderr
	if err := run(cmd); err != nil {
		return 0, err
	}
	printed, err := os.ReadFile(shown.Name())
	if err != nil {
		return 0, err
	}
	if _, err := os.Stdout.Write(printed); err != nil {
		return 0, err
	}
	if cmd.ProcessState.Success() {
		err = Same(recording, Look(args), printed)
	}
	return cmd.ProcessState.ExitCode(), err
}

// run runs a command, and passes on the signals that end it.
func run(cmd *exec.Cmd) error {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, unix.SIGINT, unix.SIGTERM, unix.SIGHUP)
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() {
		for s := range signals {
			_ = cmd.Process.Signal(s) // fails only once it has ended
		}
	}()
	if err := cmd.Wait(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		return err
	}
	return nil
}

// commandName matches what is a command of ksnoop, if it is the first argument.
var commandName = regexp.MustCompile(`^[a-z]+$`)

// Traces reports whether ksnoop traces with these arguments, and is not to record anyway.
func Traces(args []string) bool {
	if len(args) == 0 || slices.Contains(options(args), "--record") {
		return false
	}
	return args[0] == "trace" || !commandName.MatchString(args[0])
}

// Recorded returns the arguments with which ksnoop writes a recording, too.
func Recorded(args []string, recording string) []string {
	if args[0] == "trace" {
		args = args[1:]
	}
	return append([]string{"trace", "--record", recording}, args...)
}

// options returns the arguments in front of the command that makes the calls.
func options(args []string) []string {
	if i := slices.Index(args, "--"); i >= 0 {
		return args[:i]
	}
	return args
}

// lookOptions maps the options of trace that replay needs to print the same to whether
// a value follows.
var lookOptions = map[string]bool{
	"-o": true, "--color": true, "--indent": true, "--sort": true, "--time": true, "--top": true,
	"--compact": false, "--emit-zeroes": false, "--no-header": false, "--no-strings": false,
	"--no-symbols": false, "--skip-names": false, "--summary": false,
}

// Look returns the options that replay needs to print what trace prints.
func Look(args []string) (look []string) {
	args = options(args)
	for i, arg := range args {
		name, _, joined := strings.Cut(arg, "=")
		switch value, known := lookOptions[name]; {
		case value && !joined:
			look = append(look, arg, args[i+1])
		case known:
			look = append(look, arg)
		}
	}
	return look
}

// Same returns an error unless replay prints of the recording what trace has printed.
func Same(recording string, look []string, shown []byte) error {
	args := slices.Concat([]string{"replay"}, look, []string{recording})
	var printed, said bytes.Buffer
	replay := exec.Command(ksnoop, args...)
	replay.Stdout, replay.Stderr = &printed, &said
	if err := replay.Run(); err != nil {
		return fmt.Errorf("ksnoop %s: %w\n%s", strings.Join(args, " "), err, &said)
	}
	if !bytes.Equal(printed.Bytes(), shown) {
		return fmt.Errorf("ksnoop %s prints\n%s\n\nand trace has printed\n%s", strings.Join(args, " "), &printed, shown)
	}
	return nil
}
