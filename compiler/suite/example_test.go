package suite_test

import (
	"fmt"
	"time"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/suite"
)

func ExampleParse() {
	s, err := suite.Parse("tcp.probes", `ksnoop-probes 1
suite   tcp-retransmit
require kernel >= 5.10
run     ./test.sh --loss 5%   timeout 120s

# name                spec                              condition
assert retransmit-ok  tcp_retransmit_skb(return < 0)    never
assert big-reads      vfs_read(count > 4096)            at-least 1
assert send-latency   tcp_sendmsg()                     p99 < 1ms  min-samples 1000
assert not-called     tcp_abort()                       never
xfail  send-latency   on qemu "emulated clock"
`)
	if err != nil {
		fmt.Println(err)
		return
	}
	var durations compiler.Histogram
	for n := range uint64(2000) {
		durations.Add(n * 1000)
	}
	observed := map[string]suite.Observed{
		"retransmit-ok": {Counts: suite.Counts{Called: 312, Matched: 2}, First: &suite.Value{Bits: ^uint64(100), Signed: true}},
		"big-reads":     {Counts: suite.Counts{Called: 4120, Matched: 88, Missed: 3}},
		"send-latency":  {Counts: suite.Counts{Called: 2000, Matched: 2000}, Histogram: &durations, Emulated: true, AllowEmulated: true},
	}
	run, _ := s.Command(nil, false)
	results := []suite.Result{run.Judge(suite.Exited{Took: 41200 * time.Millisecond})}
	for _, a := range s.Asserts {
		r := a.Judge(observed[a.Name])
		if reason, ok := s.Expected(a.Name, suite.Machine{Release: "6.12.3", Emulated: true}); ok {
			r = r.ExpectFailure(reason)
		}
		results = append(results, r)
	}
	for _, r := range results {
		for _, note := range r.Notes {
			fmt.Println("#", note)
		}
		fmt.Printf("%s %s # %s\n", r.Status, r.Name, r.Text)
	}
	fmt.Println("exit status", suite.ExitStatus(results, false))
	// Output:
	// pass run # status=0 time=41.2s
	// # tcp_retransmit_skb called=312 matched=2 missed=0 first=-101 (ENETUNREACH)
	// fail retransmit-ok # matched 2 of 312, expected never
	// pass big-reads # matched 88 of 4120
	// # tcp_sendmsg called=2000 matched=2000 missed=0
	// # p50=983.04us..1.015807ms p90=1.769472ms..1.835007ms p95=1.835008ms..1.900543ms p99=1.96608ms..2.031615ms p99.9=1.96608ms..2.031615ms
	// xfail send-latency # emulated clock: p99=1.96608ms..2.031615ms of 2000, expected p99 < 1ms
	// # tcp_abort called=0 matched=0 missed=0
	// error not-called # not reached, expected never
	// exit status 1
}
