package runtime

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// profileMissed is what the kretprobe of ours missed whose group in tracefs
// begins with group. kprobe_profile names no groups: its lines are found by
// those of kprobe_events, which have the same order.
func profileMissed(group string) (uint64, error) {
	events, err := openTracefs("kprobe_events")
	if err != nil {
		return 0, err
	}
	defer events.Close()
	profile, err := openTracefs("kprobe_profile")
	if err != nil {
		return 0, err
	}
	defer profile.Close()
	n, err := parseProfile(events, profile, group)
	if err != nil {
		return 0, fmt.Errorf("read %s: %w", profile.Name(), err)
	}
	return n, nil
}

// parseProfile reads lines like "r32:ksnoop_7_1_a0b1/vfs_read vfs_read" and
// " vfs_read  12  3".
func parseProfile(events, profile io.Reader, group string) (missed uint64, err error) {
	ours, counts := bufio.NewScanner(events), bufio.NewScanner(profile)
	for ours.Scan() && counts.Scan() {
		head, _, _ := strings.Cut(ours.Text(), " ")
		_, event, _ := strings.Cut(head, ":")
		if !strings.HasPrefix(event, group+"_") {
			continue
		}
		_, name, _ := strings.Cut(event, "/")
		var got string
		var hits uint64
		if _, err := fmt.Sscan(counts.Text(), &got, &hits, &missed); err != nil {
			return 0, fmt.Errorf("parse %q: %w", counts.Text(), err)
		}
		if got != name {
			return 0, fmt.Errorf("found event %s instead of %s: another program changes the probes", got, name)
		}
		return missed, nil
	}
	return 0, fmt.Errorf("no event of group %s", group)
}
