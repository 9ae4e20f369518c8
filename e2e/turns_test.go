//go:build linux

package e2e

import (
	"cmp"
	"flag"
	goruntime "runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// machineTurns gives turns to the machines of all tests: a machine keeps one processor
// busy, and more machines than processors take longer than one after another.
var machineTurns = turns{free: goruntime.NumCPU()}

// turns lets a limited number of tests run something at once. Of those that wait, the
// one that takes longest is next, so that the last ones are short and end together.
type turns struct {
	sync.Mutex
	free    int
	waiting []*turn // in the order in which they came
}

type turn struct {
	seconds int
	begin   chan struct{}
}

// wait waits for a turn to run something that takes about that many seconds. The caller
// must call done when it has ended.
func (s *turns) wait(seconds int) (done func()) {
	s.Lock()
	w := &turn{seconds, make(chan struct{})}
	s.waiting = append(s.waiting, w)
	s.next()
	s.Unlock()
	<-w.begin
	return sync.OnceFunc(func() {
		s.Lock()
		defer s.Unlock()
		s.free++
		s.next()
	})
}

// next gives free turns to those that wait.
func (s *turns) next() {
	for s.free > 0 && len(s.waiting) > 0 {
		longest := slices.MaxFunc(s.waiting, func(a, b *turn) int { return cmp.Compare(a.seconds, b.seconds) })
		s.waiting = slices.DeleteFunc(s.waiting, func(w *turn) bool { return w == longest })
		s.free--
		close(longest.begin)
	}
}

// manyTests lets up to 64 tests run at the same time unless -parallel is given, because
// most of them wait for their turns.
func manyTests() error { return flag.Set("test.parallel", "64") }

// waitForTurn returns when the test may run a machine, and logs how long that took, which
// is not the test's own time. The turn ends with done or with the test.
func waitForTurn(t *testing.T, seconds int) (done func()) {
	start := time.Now()
	done = machineTurns.wait(seconds)
	t.Logf("waited: %.1fs", time.Since(start).Seconds())
	t.Cleanup(done)
	return done
}

// secondsOf returns about how many seconds of CPU a machine of a test takes in make test.
func secondsOf(t *testing.T) int {
	return cmp.Or(machineSeconds[t.Name()], machineSeconds[strings.Split(t.Name(), "/")[0]], 15)
}

// machineSeconds lists the tests whose machines take longer than others. It decides only
// which of them boots first.
var machineSeconds = map[string]int{
	"TestMatrix/" + oneKernel: 300, "TestDocs": 150, "TestMatrix": 20, "TestARM64": 20, "TestCosts": 50,
}

// TestTurns checks that no more turns are given than there are, and the longest first.
func TestTurns(t *testing.T) {
	s := turns{free: 2}
	first, second := s.wait(1), s.wait(1)
	var wg sync.WaitGroup
	order := make(chan int, 3)
	for i, seconds := range []int{10, 30, 20} {
		wg.Go(func() {
			done := s.wait(seconds)
			order <- seconds
			done()
		})
		for waiting := 0; waiting != i+1; {
			s.Lock()
			waiting = len(s.waiting)
			s.Unlock()
		}
	}
	require.Empty(t, order)
	second()
	second() // more than once is the same as once
	wg.Wait()
	require.Equal(t, []int{30, 20, 10}, []int{<-order, <-order, <-order})
	first()
	require.Equal(t, 2, s.free)
}
