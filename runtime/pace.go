package runtime

import "time"

// A pace decides how a reader waits. To be woken costs the traced call and the
// reader far more than the event, so a reader that has much to read pauses instead,
// and then reads all that there is; events that come more than a millisecond apart
// are shown at once.
type pace struct {
	count int           // records read since then
	since time.Time     // when there was nothing to read
	at    uint64        // position then
	pause time.Duration // until the next look; 0 means that the next record wakes the reader
	soon  bool          // whether the next record is expected within linger
}

const (
	longestPause  = 4 * time.Millisecond
	firstPause    = time.Millisecond
	shortestPause = firstPause / 2
	// busyCount records, on average no more than busyGap apart, make a reader
	// pause.
	busyCount = 4
	busyGap   = time.Millisecond
	// linger is for how long a reader expects a record where the one before came
	// within soonGap.
	soonGap = 10 * time.Millisecond
	linger  = 2 * soonGap
)

// emptied decides how to wait. There is nothing to read at a position of a ring
// buffer of size bytes.
func (p *pace) emptied(now time.Time, at, size uint64) {
	elapsed, n, bytes := now.Sub(p.since), time.Duration(p.count), at-p.at
	busy := n > 0 && elapsed <= n*busyGap
	switch {
	case elapsed < p.pause/2: // something else ended the pause
		return
	case p.pause > 0 && !busy:
		p.pause = 0
	case p.pause > 0 && bytes > size/4: // of that fourfold would be lost
		if p.pause /= 2; p.pause < shortestPause {
			p.pause = 0
		}
	case p.pause > 0 && bytes < size/16:
		p.pause = min(2*p.pause, longestPause)
	case p.pause > 0:
	case busy && n >= busyCount && bytes < size/4:
		p.pause = firstPause
	case busy && n < busyCount: // too few to tell
		p.soon = true
		return
	}
	p.soon = n > 0 && elapsed < soonGap
	p.since, p.count, p.at = now, 0, at
}
