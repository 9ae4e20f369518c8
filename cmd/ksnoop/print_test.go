package main

import (
	"bytes"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/fixture"
	"github.com/ksnoop/ksnoop/runtime"
)

// onLine runs a command line. Its words are separated by |.
func onLine(line string) (status int, stdout, stderr string) {
	var out, errors bytes.Buffer
	status = ksnoopStatus(append([]string{"ksnoop"}, strings.Split(line, "|")...), strings.NewReader(""), &out, &errors)
	return status, out.String(), errors.String()
}

// TestPrint prints values of the running kernel, whatever it allows to be attached.
func TestPrint(t *testing.T) {
	if _, err := os.Stat("/sys/kernel/btf/vmlinux"); err != nil {
		t.Skip("the running kernel has no BTF: ", err)
	}
	if why := runtime.ReadPrivileges().Refusal(); why != "" {
		t.Skip(why)
	}
	comm, err := os.ReadFile("/proc/thread-self/comm")
	require.NoError(t, err)
	status, stdout, stderr := onLine("print|$task->nsproxy->uts_ns->name.sysname, $task->comm:string|(struct file *)16")
	require.Zero(t, status, stderr)
	require.Equal(t, "$task->nsproxy->uts_ns->name.sysname = (char[65])\"Linux\"\n$task->comm = (char[16])\""+strings.TrimSpace(string(comm))+"\"\n"+
		"(struct file *)16 = *(0x10) /* Cannot show '(struct file *)16' as 'struct file *': 0x10 is in the NULL page */\n", stdout)
	status, stdout, stderr = onLine("print|-o|json|--every|1ms|-n|3|$task->se, $comm|*(u8 *)8")
	require.Zero(t, status, stderr)
	require.NoError(t, fixture.Schema(t, "print").Lines(stdout))
	testOneThread(t)
}

// testOneThread verifies that all readings are made by one thread, whatever else runs.
func testOneThread(t *testing.T) {
	stop := make(chan struct{})
	var busy sync.WaitGroup
	for range 8 {
		busy.Go(func() {
			for {
				select {
				case <-stop:
					return
				default: // blocked threads pass their goroutines on to others
					syscall.Nanosleep(&syscall.Timespec{Nsec: 50_000}, nil)
				}
			}
		})
	}
	status, stdout, stderr := onLine("print|--every|1ms|-n|200|$tid, $task->pid")
	close(stop)
	busy.Wait()
	require.Zero(t, status, stderr)
	require.Equal(t, 2, strings.Count(stdout, "\n"), stdout)
}

// TestPrintRefuses verifies what the command line says of mistakes.
func TestPrintRefuses(t *testing.T) {
	for line, want := range map[string]string{
		"print":                   "ksnoop: print needs a value, as in ksnoop print '$task->comm' (ksnoop help print explains more)\n",
		"print|return":            "ksnoop: 'return' is of a call, and values are read without one\n  return\n  ^^^^^^\n  ksnoop trace shows calls\n",
		"print|$comm|(int)":       "ksnoop: a value is missing after the cast '(int)'\n  (int)\n       ^\n",
		"print|(struct|file|*)@f": "ksnoop: the shell has split '(struct file *)@f' at its blanks: put each spec in single quotes, as in ksnoop 'vfs_read(count > 100, return)'\n",
		"print|--cpu||$cpu":       "ksnoop: --cpu has no value: ksnoop print --help explains it\n",
		"print|--cpu=|$cpu":       "ksnoop: --cpu has no value: ksnoop print --help explains it\n",
		"follow|--show||f(a)":     "ksnoop: --show has no value: ksnoop follow --help explains it\n",
		"follow|--show= |f(a)":    "ksnoop: --show has no value: ksnoop follow --help explains it\n",
		"print|-n|2|$pid":         "ksnoop: --events and --for limit how often values are read: give the time between, as in --every 1s\n",
		"print|-o|xml|$pid":       "ksnoop: --output is \"xml\": it must be text, compact or json\n",
		"print|--every|x|$p":      "ksnoop: --every is \"x\": it must be a time from 1ns to 2562047h, such as 500ms, 2m or 10 (seconds)\n",
	} {
		status, stdout, stderr := onLine(line)
		require.Equal(t, 2, status, line)
		require.Empty(t, stdout)
		require.Equal(t, want, stderr)
	}
}
