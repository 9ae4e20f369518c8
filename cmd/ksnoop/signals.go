package main

import (
	"os"
	"os/signal"
	"syscall"
)

// onStop calls stop at the first signal that asks ksnoop to end. A second one
// ends it at once. Those that it was told to ignore, as by nohup, stay ignored.
func onStop(stop func()) {
	signals := make(chan os.Signal, 1)
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(s) {
			signal.Notify(signals, s)
		}
	}
	go func() {
		<-signals
		signal.Reset(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
		stop()
	}()
}
