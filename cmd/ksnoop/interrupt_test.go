package main

import (
	"bytes"
	"fmt"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/runtime"
)

// fakeSession says what is done to it.
type fakeSession chan string

func (f fakeSession) Stop() error {
	f <- "stop"
	return nil
}

func (f fakeSession) RemoveEvents() error {
	f <- "remove events"
	return nil
}

// The first signal stops the session. The second one ends ksnoop, after what
// would outlive it is gone.
func TestSignals(t *testing.T) {
	did := make(fakeSession)
	s := &stopper{kill: func(sig syscall.Signal) { did <- sig.String() }}
	signals := make(chan os.Signal)
	go s.follow(signals, did)
	signals <- syscall.SIGINT
	require.Equal(t, "stop", <-did)
	signals <- syscall.SIGTERM
	require.Equal(t, "remove events", <-did)
	require.Equal(t, "terminated", <-did)
}

func TestInterruptedStatus(t *testing.T) {
	s := new(stopper)
	s.first.Store(int32(syscall.SIGINT))
	err := s.explain(fmt.Errorf("attach: %w", runtime.ErrStopped))
	require.EqualError(t, err, "ended by SIGINT while attaching: nothing was traced")
	var stderr bytes.Buffer
	require.Equal(t, 130, report(&stderr, err))
	require.Equal(t, "ksnoop: ended by SIGINT while attaching: nothing was traced\n", stderr.String())
	require.Equal(t, os.ErrClosed, s.explain(os.ErrClosed))
}
