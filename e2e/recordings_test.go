//go:build linux

package e2e

import (
	"bytes"
	"encoding/base64"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// recordedTraces lists traces of all kinds of specs, with the options for how they look,
// the specs, and the command that makes the calls.
var recordedTraces = []struct {
	name, look string
	specs      []string
	command    string
}{
	{"values", "", []string{"vfs_write(count == 4321, file, *file, $comm, $cgroup, $container, buf:x)"}, "write -n 3 -size 4321"},
	{"calls", "-o json", []string{"vfs_read(file, count == 4321, buf:x64, *pos, after(*pos), return)", "vfs_read(diff(*pos), count == 4321)"}, "read -n 5 -size 4321"},
	{"zeroes", "-o json --emit-zeroes --skip-names --no-symbols", []string{"vfs_read(*file, count == 4321)"}, "read -n 1 -size 4321"},
	{"wall", "-o compact --time wall", []string{"vfs_read(count == 4321, file:path, file->f_path.dentry->d_name.name:string)"}, "read -n 5 -size 4321"},
	{"delta", "--time delta --no-header", []string{"tp:sys_enter($arg2:x, $tid) if $comm == \"traffic\""}, "read -n 1 -size 4321"},
	{"chain", "", []string{"-s", "tcp_sendmsg(size == 300)", "__tcp_transmit_skb", "ip_output(skb->len, *skb, return)"}, "tcp -n 2 -size 300"},
	{"kstack", "", []string{"vfs_write($kstack, count == 4321, file->f_op:symbol)"}, "write -n 2 -size 4321"},
	{"ustack", "-o json", []string{"vfs_write($ustack, $kstack, count == 4321)"}, "write -n 2 -size 4321"},
	{"tables", "", []string{"--every", "200ms", "--clear", "vfs_write(count == 4321, $comm, $kstack, count(), avg(count), hist($duration))"}, "write -n 9 -size 4321"},
	{"jsontables", "-o json --top 3", []string{"--every", "200ms", "vfs_*($comm, count(), sum(count))"}, "write -n 9 -size 4321"},
	{"span", "-o json", []string{"vfs_read(count == 4321) => vfs_read(return == 4321, $duration) on $tid", "vfs_read(count == 4321) => vfs_write(count == 7) on $tid"}, "read -n 3 -size 4321"},
	{"line", "", []string{"p:mine vfs_write file=%R1 count=%R3:u64 symbol=@vfs_write:x8 if count == 4321"}, "write -n 2 -size 4321"},
	{"ftrace", "-o ftrace", []string{"vfs_write(count == 4321, file, *file, $comm, $kstack, return)", "p:mine vfs_write count=%R3:u64", "vfs_write($comm, count(), hist(count)) if count == 4321"}, "write -n 2 -size 4321"},
	{"ftracelosses", "-o ftrace --time wall", []string{"-P", "1", "vfs_write($ustack, count == 4321, buf:x64)"}, "write -n 4000 -size 4321"},
	{"faults", "-o json --summary", []string{"-n", "2", "vfs_write(count == 4321, ((struct file *)buf)->f_mode, return)"}, "write -n 5 -size 4321"},
	{"container", "-o json", []string{"vfs_write($container, $cgroup, count == 4321)", "vfs_read($container, count()) if count == 4321"}, "write -n 3 -size 4321 -cgroup " + containerCgroup},
	{"objects", "-o compact", []string{"iter:task(task->pid, task->comm:string, *task->files) if task->pid == 1"}, ""},
	{"rate", "-o json", []string{"--rate", "3/s", "vfs_write(count == 4321)"}, "write -n 50 -size 4321"},
	{"losses", "-o json", []string{"-P", "1", "vfs_write($ustack, count == 4321, buf:x64)"}, "write -n 4000 -size 4321"},
}

// lossLines match what traces with losses print of them, with the time.
var lossLines = map[string]string{
	"losses":       `{"type":"loss","time":\d+,"func":"vfs_write",.*"lost":[1-9](?s:.*)\n{"type":"summary"`,
	"ftracelosses": `(?m)^# \d\d:\d\d:\d\d\.\d{6}: vfs_write \(entry\): [1-9]\d* lost`,
}

// containerCgroup is the directory of a cgroup that looks like a container's.
var containerCgroup = "/sys/fs/cgroup/docker-" + strings.Repeat("12ab", 16) + ".scope"

// mostHandedOut limits the size of a recording, and of the output, that a guest passes to
// the host.
const mostHandedOut = 64 << 10

// testRecordings verifies that replay prints of a recording what trace has printed, byte
// for byte, and passes both to the host, where [replayRecordings] does the same.
func testRecordings(t *testing.T, _ *kernel) {
	require.NoError(t, os.Mkdir(containerCgroup, 0o755))
	t.Cleanup(func() { os.Remove(containerCgroup) })
	registers := strings.NewReplacer("%R1", "%"+argRegisters[0], "%R3", "%"+argRegisters[2])
	for _, tc := range recordedTraces {
		t.Run(tc.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "recording")
			args := append([]string{"trace", "--record", file}, strings.Fields(tc.look)...)
			for _, spec := range tc.specs {
				args = append(args, registers.Replace(spec))
			}
			if tc.command != "" {
				args = append(append(args, "--", "traffic"), strings.Fields(tc.command)...)
			}
			traced, messages := ran(t, args...)
			require.NotEmpty(t, traced, messages)
			if tc.name == "container" {
				require.Contains(t, string(traced), `"container":{"runtime":"docker","id":"12ab12ab`)
			}
			if losses := lossLines[tc.name]; losses != "" {
				require.Regexp(t, losses, string(traced))
				require.Contains(t, messages, "the ring buffer was full")
			}
			replayed, said := ran(t, append([]string{"replay", file}, strings.Fields(tc.look)...)...)
			require.True(t, bytes.Equal(traced, replayed), "%s\n--- replay:\n%s", traced, replayed)
			for line := range strings.Lines(said) {
				require.Contains(t, messages, line)
			}
			recording, err := os.ReadFile(file)
			require.NoError(t, err)
			if len(recording) < mostHandedOut && len(traced) < mostHandedOut {
				t.Logf("recording of %d bytes for %d: %s %s %s", len(recording), len(traced), encoded([]byte(tc.look)), encoded(recording), encoded(traced))
			}
		})
	}
}

// ran runs ksnoop and returns what it has printed.
func ran(t *testing.T, args ...string) (stdout []byte, stderr string) {
	cmd := exec.Command("/bin/ksnoop", args...)
	var out, messages bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &messages
	require.NoError(t, cmd.Run(), "%q\n%s", args, &messages)
	return out.Bytes(), messages.String()
}

func encoded(b []byte) string { return "<" + base64.StdEncoding.EncodeToString(b) + ">" }

var handedOut = regexp.MustCompile(`recording of \d+ bytes for \d+: <(.*)> <(.*)> <(.*)>`)

// replayRecordings verifies that replay prints on this machine, as a user without
// privileges, what trace has printed in a guest. It returns the guest's output without
// the recordings.
func replayRecordings(t *testing.T, output string) string {
	all := handedOut.FindAllStringSubmatch(output, -1)
	if strings.Contains(output, "--- PASS: TestGuest/recordings ") {
		require.GreaterOrEqual(t, len(all), 10, "recordings for this machine")
	}
	if len(all) == 0 {
		return output
	}
	ksnoop, dir := nobodysBinary(t)
	for _, parts := range all {
		var decoded [3][]byte
		for i := range decoded {
			var err error
			decoded[i], err = base64.StdEncoding.DecodeString(parts[i+1])
			require.NoError(t, err)
		}
		file := filepath.Join(dir, "recording")
		require.NoError(t, os.WriteFile(file, decoded[1], 0o644))
		stdout, stderr, state := asNobody(t, ksnoop, append([]string{"replay", file}, strings.Fields(string(decoded[0]))...)...)
		require.True(t, state.Success(), stderr)
		require.Equal(t, string(decoded[2]), stdout)
	}
	t.Logf("%d recordings of the guest are replayed here", len(all))
	return handedOut.ReplaceAllString(output, "a recording, which was replayed")
}
