// Package e2e tests the ksnoop binary on real kernels. It boots Debian's kernels
// under software emulation with an initramfs that holds the binary, this test
// and the scripts in testdata, so every run also tests that ksnoop needs nothing
// else. Tests that look at more calls than ksnoop can print trace in the guest's
// own process, through the packages compiler and runtime.
//
//	go test ./e2e                                       everything on one kernel with short loops, the main job on the others
//	go test ./e2e -full                                 every test on every kernel, with loops at their full length
//	go test ./e2e -run 'TestMatrix/6.12'                on one kernel; the lines are in vm.Matrix
//	go test ./e2e -run 'TestMatrix/newest/traffic'      one script
//	go test ./e2e -v -run 'TestMatrix/6.12/pairing'     one test in process: cycles, pairing, preemption, sweep, unreadable
//	go test ./e2e -v -run 'TestMatrix/6.12/sweep' -sweep -1 -timeout 2h   every function of a kernel
//	go test ./e2e -v -run 'TestMatrix/6.12/cycles' -cycles 10m           attach, detach and kill for 10 minutes
//	go test ./e2e -v -run 'TestCosts|TestPairing|TestTables'   what tracing adds to a call; pairing and tables on two CPUs
//	go test ./e2e -v -run TestBench -results DIR        all costs, beside those of other tracers: make bench
//	go test ./e2e -v -scripts DIR -ksnoop FILE          other scripts, another static binary
//	go test ./e2e -short                                none of this
//
// The scripts use testscript. Package script documents the commands for tracing,
// package traffic the command that makes the calls to trace, and package confine
// the command that runs ksnoop with restrictions. The scripts in testdata/last
// change the guest permanently and run last.
package e2e
