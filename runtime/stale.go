package runtime

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"
)

// groupPrefix is what the groups of our events in tracefs begin with. The
// process id and a number follow, and 16 digits at random.
const groupPrefix = "ksnoop"

// newGroup names the group of one more event.
func (s *Session) newGroup() string {
	s.groups++
	return fmt.Sprintf("%s_%d_%d", groupPrefix, os.Getpid(), s.groups)
}

// removeStale removes the events that a killed ksnoop has left in tracefs,
// each with its return instances. What a live one in another PID namespace
// uses, the kernel does not remove.
func removeStale() {
	f, err := openTracefs("kprobe_events")
	if err != nil {
		return
	}
	defer f.Close()
	events := staleEvents(f, func(pid int) bool {
		_, err := os.Stat(fmt.Sprintf("/proc/%d", pid))
		return err == nil
	})
	for _, event := range events {
		// One write each: the kernel stops at the first that is in use.
		if w, err := os.OpenFile(f.Name(), os.O_WRONLY|os.O_APPEND, 0); err == nil {
			_, _ = w.WriteString("-:" + event)
			w.Close()
		}
	}
}

// staleEvents finds lines like "r4096:ksnoop_7_1_a0b1/vfs_read vfs_read" of
// processes that are not alive.
func staleEvents(r io.Reader, alive func(pid int) bool) []string {
	var stale []string
	for s := bufio.NewScanner(r); s.Scan(); {
		head, _, _ := strings.Cut(s.Text(), " ")
		_, event, _ := strings.Cut(head, ":")
		var pid, number int
		if n, _ := fmt.Sscanf(event, groupPrefix+"_%d_%d_", &pid, &number); n == 2 && !alive(pid) {
			stale = append(stale, event)
		}
	}
	return stale
}
