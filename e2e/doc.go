// Package e2e tests the ksnoop binary on real kernels: Debian's, each booted
// under software emulation with an initramfs that holds the binary, this test
// and the scripts in testdata, so that every run is also the test that ksnoop
// needs nothing else. Tests that look at more calls than can be printed trace
// in the guest's own process, through the packages compiler and runtime.
//
//	go test ./e2e                                       everything on every kernel
//	go test ./e2e -run 'TestMatrix/6.12'                on one kernel; the lines are in vm.Matrix
//	go test ./e2e -run 'TestMatrix/newest/traffic'      one script
//	go test ./e2e -v -run 'TestMatrix/6.12/pairing'     one test in process: cycles, pairing, preemption, sweep, unreadable
//	go test ./e2e -v -run 'TestMatrix/6.12/sweep' -sweep 0 -timeout 2h   every function of a kernel
//	go test ./e2e -v -run 'TestMatrix/6.12/cycles' -cycles 10m           attach, detach and kill for so long
//	go test ./e2e -v -run 'TestCosts|TestPairing'       what tracing adds to a call; pairing on two CPUs
//	go test ./e2e -v -run TestBench -results DIR        all costs, beside those of other tracers: make bench
//	go test ./e2e -v -scripts DIR -ksnoop FILE          other scripts, another static binary
//	go test ./e2e -short                                none of this
//
// The scripts are testscript's; package script documents the commands for
// tracing, package traffic the command that makes the calls to be traced,
// package confine the one that takes things away from ksnoop. Those in
// testdata/last change the guest for good and run last.
package e2e
