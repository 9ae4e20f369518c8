package suite

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler/spec"
)

// body is the beginning of a file to which one statement is added.
const body = "ksnoop-probes 1\nsuite s\nassert x foo never\n"

// refused has invalid files with the whole error message.
var refused = []struct{ before, text, want string }{
	{"", "", `
f:1:1: the file is empty
  a probe file begins with 'ksnoop-probes 1'`},
	{"", "# nothing but a comment\n\n", `
f:2:1: the file is empty
  a probe file begins with 'ksnoop-probes 1'`},
	{"", "assert x vfs_read never", `
f:1:1: a probe file begins with 'ksnoop-probes 1'
  assert x vfs_read never
  ^^^^^^`},
	{body, "assert y foo(x) each count() < 9", `
f:4:22: 'each' is about the rows of a table, and the spec has no number among its aggregates
  assert y foo(x) each count() < 9
                       ^^^^^^^
  as in vfs_read($comm, count()) each count() < 100`},
	{body, "assert y foo(count(), sum(x)) each sum( y ) < 9", `
f:4:36: 'sum(y)' is not an aggregate of the spec that is a number
  assert y foo(count(), sum(x)) each sum( y ) < 9
                                     ^^^^^^^^
  did you mean 'sum(x)'?`},
	{body, "assert y foo(count(), hist(x)) each hist(x) < 9", `
f:4:37: 'hist(x)' is not an aggregate of the spec that is a number
  assert y foo(count(), hist(x)) each hist(x) < 9
                                      ^^^^^^^
  write 'count()'`},
	{body, "assert y foo(count()) each count() < many", `
f:4:38: 'many' is not a duration
  assert y foo(count()) each count() < many
                                       ^^^^
  a duration has a unit: 10ms, 1.5s`},
	{body, "assert y foo(count()) each count() <", `
f:4:37: a number or a duration is missing
  assert y foo(count()) each count() <
                                      ^`},
	{body, "assert y foo(count()) each count() < 10ms", `
f:4:38: 'count()' is not a duration
  assert y foo(count()) each count() < 10ms
                                       ^^^^
  durations are compared with $duration, as in max($duration) < 10ms`},
	{body, "assert y foo(max(x)) each max(x) < 9223372036854775808", `
f:4:36: '9223372036854775808' is out of range
  assert y foo(max(x)) each max(x) < 9223372036854775808
                                     ^^^^^^^^^^^^^^^^^^^
  numbers go from -9223372036854775808 to 9223372036854775807 here`},
	{body, "assert y foo(count()) each count() >= 1", `
f:4:23: 'each count() >= 1' always holds
  assert y foo(count()) each count() >= 1
                        ^^^^^^^^^^^^^^^^^`},
	{body, "assert y foo(count()) each count() == 0", `
f:4:23: 'each count() == 0' can never hold
  assert y foo(count()) each count() == 0
                        ^^^^^^^^^^^^^^^^^`},
	{body, "assert y foo(count()) p99 < 1ms min-samples 1", `
f:4:14: count() makes a table of the calls, and 'p99' is not about their number
  assert y foo(count()) p99 < 1ms min-samples 1
               ^^^^^^^
  leave count() out, or make a line of its own: metric NAME SPEC table`},
	{body, "assert y any-of {foo bar}($comm, sum(a)) changed", `
f:4:34: sum() makes a table of the calls, and 'changed' is not about their number
  assert y any-of {foo bar}($comm, sum(a)) changed
                                   ^^^^^^
  leave sum(a) out, or make a line of its own: metric NAME SPEC table`},
	{body, "assert y foo() ~ bar(x, count()) difference < 1", `
f:4:25: count() makes a table of the calls, and 'difference' is not about their number
  assert y foo() ~ bar(x, count()) difference < 1
                          ^^^^^^^
  leave count() out, or make a line of its own: metric NAME SPEC table`},
	{body, "assert y -s foo bar(count()) never", `
f:4:21: the calls of a chain are counted as chains, and count() makes a table of calls
  assert y -s foo bar(count()) never
                      ^^^^^^^
  leave it out, or the chain`},
	{body, "metric y foo(x, hist(x)) histogram", `
f:4:17: hist() makes a table of the calls, and 'histogram' is one number or histogram
  metric y foo(x, hist(x)) histogram
                  ^^^^^^^
  write 'table' in place of 'histogram'`},
	{body, "metric y foo(x) table", `
f:4:10: 'table' shows aggregates, and this spec has none
  metric y foo(x) table
           ^^^^^^^
  as in vfs_read($comm, count())`},
	{body, "evidence x foo(x, count()) last 1", `
f:4:19: count() makes a table of the calls, and evidence is the events themselves
  evidence x foo(x, count()) last 1
                    ^^^^^^^
  write an assertion with it, which has the table beside it, or: metric NAME SPEC table`},
	{"", "ksnoop-probes", `
f:1:14: the version is missing
  ksnoop-probes
               ^
  write 'ksnoop-probes 1'`},
	{"", "ksnoop-probes 2\nsuit x", `
f:1:15: version '2' of the format is not known
  ksnoop-probes 2
                ^
  this ksnoop knows version 1`},
	{"", "ksnoop-probes 1 2\nsuite s\nassert x foo never", `
f:1:17: '2' behind the version
  ksnoop-probes 1 2
                  ^`},
	{"", "ksnoop-probes 1\nsuite s\nksnoop-probes 1\nassert x foo never", `
f:3:1: a second 'ksnoop-probes'
  ksnoop-probes 1
  ^^^^^^^^^^^^^`},
	{"", "ksnoop-probes 1\nassert x foo never", `
f:2:1: the suite has no name
  a line 'suite NAME' is missing`},
	{"", "ksnoop-probes 1\nsuite s", `
f:2:1: nothing is asserted or measured
  a line with 'assert' or 'metric' is missing`},
	{"", "ksnoop-probes 1\nsuite s\nrun true", `
f:3:1: nothing is asserted or measured
  a line with 'assert' or 'metric' is missing`},
	{body, "asert x foo never", `
f:4:1: 'asert' is not a statement
  asert x foo never
  ^^^^^
  did you mean 'assert'?`},
	{body, "assert y foo(a,\n  b) never", `
f:4:16: ')' is missing
  assert y foo(a,
                 ^
  close the list of values with ')'
f:5:3: 'b)' is not a statement
    b) never
    ^^
  write one of suite, require, run, settle, assert, metric, evidence, xfail
  a statement ends where its line ends`},
	{body, "suite t", `
f:4:1: a second 'suite': the first is in line 2
  suite t
  ^^^^^`},
	{body, "suite a b", `
f:4:1: a second 'suite': the first is in line 2
  suite a b
  ^^^^^`},
	{"", "ksnoop-probes 1\nsuite a#b", `
f:2:8: a name has no '#'
  suite a#b
         ^
  names have letters, digits and _ - . : / +`},
	{"", "ksnoop-probes 1\nsuite -s", `
f:2:7: a name does not begin with '-'
  suite -s
        ^^`},
	{"", "ksnoop-probes 1\nsuite", `
f:2:6: the name of the suite is missing
  suite
       ^`},
	{body, "require", `
f:4:8: something to require is missing
  require
         ^
  write one of kernel, func, btf`},
	{body, "require kernl >= 5.10", `
f:4:9: 'kernl' is not something to require
  require kernl >= 5.10
          ^^^^^
  did you mean 'kernel'?`},
	{body, "require kernel", `
f:4:15: a comparison is missing
  require kernel
                ^
  the comparisons are == != < <= > >=`},
	{body, "require kernel 5.10", `
f:4:16: expected a comparison, not '5.10'
  require kernel 5.10
                 ^^^^
  the comparisons are == != < <= > >=`},
	{body, "require kernel => 5.10", `
f:4:16: expected a comparison, not '=>'
  require kernel => 5.10
                 ^^
  did you mean '>='?`},
	{body, "require kernel = 5.10", `
f:4:16: expected a comparison, not '='
  require kernel = 5.10
                 ^
  did you mean '=='?`},
	{body, "require kernel >= five", `
f:4:19: 'five' is not a version of a kernel
  require kernel >= five
                    ^^^^
  write 6.12 or 6.12.3`},
	{body, "require kernel >=", `
f:4:18: the version of the kernel is missing
  require kernel >=
                   ^`},
	{body, "require kernel >= 6.1.2.3", `
f:4:19: '6.1.2.3' is not a version of a kernel
  require kernel >= 6.1.2.3
                    ^^^^^^^
  write 6.12 or 6.12.3`},
	{body, "require kernel >= 5.10 please", `
f:4:24: 'please' behind what is required
  require kernel >= 5.10 please
                         ^^^^^^`},
	{body, "require func", `
f:4:13: the name of a function is missing
  require func
              ^`},
	{body, "require func 5x", `
f:4:14: '5x' is not the name of a function
  require func 5x
               ^^`},
	{body, "require func a(b)", `
f:4:14: 'a(b)' is not the name of a function
  require func a(b)
               ^^^^`},
	{body, "require btf tcp_sock", `
f:4:13: 'tcp_sock' is not a kind of type
  require btf tcp_sock
              ^^^^^^^^
  write one of struct, union, enum, typedef`},
	{body, "require btf struct", `
f:4:19: the name of a type is missing
  require btf struct
                    ^`},
	{body, "require btf struct a.b", `
f:4:20: 'a.b' is not the name of a type
  require btf struct a.b
                     ^^^`},
	{body, "require btf struct tcp_sock *", `
f:4:29: '*' behind what is required
  require btf struct tcp_sock *
                              ^`},
	{body, "require config BTF", `
f:4:9: 'config' is not something to require
  require config BTF
          ^^^^^^
  write one of kernel, func, btf`},
	{body, "run", `
f:4:4: the command is missing
  run
     ^`},
	{body, "run timeout 5s", `
f:4:15: the command is missing
  run timeout 5s
                ^`},
	{body, "run ./x | grep y", `
f:4:9: '|' is for a shell, and run starts none
  run ./x | grep y
          ^
  write sh -c "..."`},
	{body, "run ./x timeout", `
f:4:16: a value is missing after 'timeout'
  run ./x timeout
                 ^
  a word of the command is written "timeout"`},
	{body, "run ./x timeout 5", `
f:4:17: '5' is not a duration
  run ./x timeout 5
                  ^
  a duration has a unit: 10ms, 1.5s`},
	{body, "run ./x timeout 5sec", `
f:4:17: '5sec' is not a number
  run ./x timeout 5sec
                  ^^^^
  did you mean '5s'?`},
	{body, "run ./x timeout 0s", `
f:4:17: a duration of nothing
  run ./x timeout 0s
                  ^^`},
	{body, "run ./x status 256", `
f:4:16: '256' is not an exit status
  run ./x status 256
                 ^^^
  a status goes from 0 to 255`},
	{body, "run ./x status 0 status 1", `
f:4:9: a second 'status'
  run ./x status 0 status 1
          ^^^^^^`},
	{body, "run ./x timeout 1s timeout 2s status 1", `
f:4:9: a second 'timeout'
  run ./x timeout 1s timeout 2s status 1
          ^^^^^^^`},
	{body, "run -- ./x", `
f:4:5: there is no '--' before the command of a probe file
  run -- ./x
      ^^`},
	{body, `run ./x "a`, `
f:4:9: the string has no closing "
  run ./x "a
          ^`},
	{body, "run a\nrun b", `
f:5:1: a second 'run': the first is in line 4
  run b
  ^^^`},
	{body, "settle", `
f:4:7: a duration is missing
  settle
        ^`},
	{body, "settle 5", `
f:4:8: '5' is not a duration
  settle 5
         ^
  a duration has a unit: 10ms, 1.5s`},
	{body, "settle 1s 2", `
f:4:11: '2' behind the duration
  settle 1s 2
            ^`},
	{body, "settle 1s\nsettle 2s", `
f:5:1: a second 'settle': the first is in line 4
  settle 2s
  ^^^^^^`},
	{body, "assert", `
f:4:7: the name of the assertion is missing
  assert
        ^`},
	{body, "assert a,b foo never", `
f:4:9: a name has no ','
  assert a,b foo never
          ^
  names have letters, digits and _ - . : / +`},
	{body, "assert run foo never", `
f:4:8: 'run' is the name of the command's own result
  assert run foo never
         ^^^`},
	{body, "assert x foo never", `
f:4:8: the name 'x' is taken by line 3
  assert x foo never
         ^`},
	{body, "assert y", `
f:4:9: a spec is missing
  assert y
          ^`},
	{body, "assert y foo", `
f:4:13: a condition is missing
  assert y foo
              ^
  the conditions are never, at-least, at-most, exactly, count, p50, p90, p95, p99, p99.9, max, changed, unchanged, difference, ratio, each`},
	{body, "assert y nevr", `
f:4:14: a condition is missing
  assert y nevr
               ^
  did you mean 'never'?`},
	{body, "assert y foo nevr", `
f:4:14: 'nevr' is not a condition
  assert y foo nevr
               ^^^^
  did you mean 'never'?`},
	{body, "assert y foo(a = 5) never", `
f:4:16: '=' is not a comparison
  assert y foo(a = 5) never
                 ^
  did you mean '=='?`},
	{body, "assert y foo(cuont never", `
f:4:20: expected ',' or ')', not 'never'
  assert y foo(cuont never
                     ^^^^^`},
	{body, "assert y f) never", `
f:4:11: ')' without a '(' before it
  assert y f) never
            ^`},
	{body, "assert y foo() if never", `
f:4:24: a condition is missing
  assert y foo() if never
                         ^
  the conditions are never, at-least, at-most, exactly, count, p50, p90, p95, p99, p99.9, max, changed, unchanged, difference, ratio, each`},
	{body, "assert y p vfs_read never", `
f:4:10: put a kprobe_events line in quotes
  assert y p vfs_read never
           ^
  write "p ..."`},
	{body, `assert y "p vfs_read never`, `
f:4:10: the quotes of the kprobe_events line are not closed
  assert y "p vfs_read never
           ^`},
	{body, `assert y "vfs_read" never`, `
f:4:10: what is in quotes is not a kprobe_events line
  assert y "vfs_read" never
           ^
  a spec is written without quotes around it`},
	{body, `assert y "p vfs_read" if a == 1 never`, `
f:4:23: 'if' after the end of the spec
  assert y "p vfs_read" if a == 1 never
                        ^^
  that of a kprobe_events line is inside its quotes`},
	{body, `assert y "p:é vfs_read" never`, `
f:4:13: U+00E9 at position 13: a spec is plain ASCII text
  assert y "p:? vfs_read" never
              ^`},
	{body, `assert y "p vfs_read $ar1" never`, `
f:4:22: '$ar1' is not known
  assert y "p vfs_read $ar1" never
                       ^^^^
  did you mean '$arg1'?`},
	{body, "assert y foo at-least", `
f:4:22: a number after 'at-least' is missing
  assert y foo at-least
                       ^`},
	{body, "assert y foo at-least some", `
f:4:23: 'some' is not a number of calls
  assert y foo at-least some
                        ^^^^`},
	{body, "assert y foo at-least 010", `
f:4:23: '010' is not a number of calls
  assert y foo at-least 010
                        ^^^`},
	{body, "assert y foo at-least 0", `
f:4:14: 'at-least 0' always holds
  assert y foo at-least 0
               ^^^^^^^^^^
  what is only reported is a metric: metric NAME SPEC count`},
	{body, "assert y foo at-most 18446744073709551615", `
f:4:14: 'at-most 18446744073709551615' always holds
  assert y foo at-most 18446744073709551615
               ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  what is only reported is a metric: metric NAME SPEC count`},
	{body, "assert y foo count 0..18446744073709551615 allow-unreached", `
f:4:14: 'count 0..18446744073709551615' always holds
  assert y foo count 0..18446744073709551615 allow-unreached
               ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  what is only reported is a metric: metric NAME SPEC count`},
	{body, "assert y foo at-least -1", `
f:4:23: '-1' is not a number of calls
  assert y foo at-least -1
                        ^^`},
	{body, "assert y foo at-least 99999999999999999999", `
f:4:23: '99999999999999999999' is out of range
  assert y foo at-least 99999999999999999999
                        ^^^^^^^^^^^^^^^^^^^^`},
	{body, "assert y foo exactly 3 5", `
f:4:24: '5' is not a modifier
  assert y foo exactly 3 5
                         ^
  write one of min-samples, allow-unreached, scope`},
	{body, "assert y foo count 3", `
f:4:20: one number is not a range
  assert y foo count 3
                     ^
  write exactly 3`},
	{body, "assert y foo count 5..3", `
f:4:20: no number is from 5 to 3
  assert y foo count 5..3
                     ^^^^
  did you mean 3..5?`},
	{body, "assert y foo count 3 5", `
f:4:20: expected a range after 'count', not '3'
  assert y foo count 3 5
                     ^
  write count 3..5`},
	{body, "assert y foo count 3..x", `
f:4:20: expected a range after 'count', not '3..x'
  assert y foo count 3..x
                     ^^^^
  write count 3..5`},
	{body, "assert y foo count 3..99999999999999999999", `
f:4:20: '3..99999999999999999999' is out of range
  assert y foo count 3..99999999999999999999
                     ^^^^^^^^^^^^^^^^^^^^^^^`},
	{body, "assert y foo() p99 < 1ms", `
f:4:16: 'p99' of a few calls says nothing: how many there must be is missing
  assert y foo() p99 < 1ms
                 ^^^
  write min-samples 1000 after the condition`},
	{body, "assert y foo() p99 1ms min-samples 10", `
f:4:20: expected a comparison, not '1ms'
  assert y foo() p99 1ms min-samples 10
                     ^^^
  the comparisons are < <= > >=`},
	{body, "assert y foo() p99 == 1ms min-samples 10", `
f:4:20: expected a comparison, not '=='
  assert y foo() p99 == 1ms min-samples 10
                     ^^
  the comparisons are < <= > >=`},
	{body, "assert y foo() p99 < 1 min-samples 10", `
f:4:22: '1' is not a duration
  assert y foo() p99 < 1 min-samples 10
                       ^
  a duration has a unit: 10ms, 1.5s`},
	{body, "assert y foo() p99 < min-samples 10", `
f:4:22: 'min-samples' is not a duration
  assert y foo() p99 < min-samples 10
                       ^^^^^^^^^^^
  a duration has a unit: 10ms, 1.5s`},
	{body, "assert y foo() p99 < 1ms min-samples 0", `
f:4:26: a percentile of nothing: min-samples is 1 or more
  assert y foo() p99 < 1ms min-samples 0
                           ^^^^^^^^^^^`},
	{body, "assert y foo() p98 < 1ms min-samples 10", `
f:4:16: 'p98' is not a condition
  assert y foo() p98 < 1ms min-samples 10
                 ^^^
  did you mean 'p90'?`},
	{body, "assert y foo() p99 < 1ms min-samples", `
f:4:37: a number after 'min-samples' is missing
  assert y foo() p99 < 1ms min-samples
                                      ^`},
	{body, "assert y foo() max < 1ms min-samples 10", `
f:4:26: only percentiles have 'min-samples', and this is 'max'
  assert y foo() max < 1ms min-samples 10
                           ^^^^^^^^^^^`},
	{body, "assert y foo() max <", `
f:4:21: a duration is missing
  assert y foo() max <
                      ^`},
	{body, "assert y foo() max < 3000000h", `
f:4:22: '3000000h' is longer than 292 years
  assert y foo() max < 3000000h
                       ^^^^^^^^`},
	{body, "assert y tp:sched_switch max < 1ms", `
f:4:10: 'max' is about durations, and a tracepoint takes no time
  assert y tp:sched_switch max < 1ms
           ^^^^^^^^^^^^^^^^`},
	{body, "assert y any-of {foo tp:sched_switch}() max < 1ms", `
f:4:10: 'max' is about durations, and a tracepoint takes no time
  assert y any-of {foo tp:sched_switch}() max < 1ms
           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^`},
	{body, "assert y tp:a() => tp:b() on x max < 1ms", `
f:4:10: 'max' measures calls, and spans are counted
  assert y tp:a() => tp:b() on x max < 1ms
           ^^^^^^^^^^^^^^^^^^^^^^
  tables measure them: metric NAME A() => B(hist($duration)) on KEY table`},
	{body, "metric m tp:a() => tp:b($duration) on x histogram", `
f:4:10: 'histogram' measures calls, and spans are counted
  metric m tp:a() => tp:b($duration) on x histogram
           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  tables measure them: metric NAME A() => B(hist($duration)) on KEY table`},
	{body, `assert y "p vfs_read" max < 1ms`, `
f:4:10: 'max' is about durations, and this line is only about the beginning of a call
  assert y "p vfs_read" max < 1ms
           ^^^^^^^^^^^^
  a line with r is about the return as well`},
	{body, "assert y foo() never min-samples 10", `
f:4:22: only percentiles have 'min-samples', and this is 'never'
  assert y foo() never min-samples 10
                       ^^^^^^^^^^^`},
	{body, "assert y foo() never never", `
f:4:22: 'never' is not a modifier
  assert y foo() never never
                       ^^^^^
  write one of min-samples, allow-unreached, scope`},
	{body, "assert y foo() never allow-unreachd", `
f:4:22: 'allow-unreachd' is not a modifier
  assert y foo() never allow-unreachd
                       ^^^^^^^^^^^^^^
  did you mean 'allow-unreached'?`},
	{body, "assert y foo() never scope", `
f:4:27: a scope is missing
  assert y foo() never scope
                            ^
  write one of system, task, cgroup`},
	{body, "assert y foo() never scope cgrop", `
f:4:28: 'cgrop' is not a scope
  assert y foo() never scope cgrop
                             ^^^^^
  did you mean 'cgroup'?`},
	{body, "assert y foo() never scope task scope task", `
f:4:33: a second 'scope'
  assert y foo() never scope task scope task
                                  ^^^^^`},
	{body, "assert y foo() never#comment", `
f:4:21: '#' is not a modifier
  assert y foo() never#comment
                      ^
  a comment begins with a blank and '#'`},
	{body, "assert y foo() at-least 1 allow-unreached", `
f:4:27: without a call 'at-least 1' does not hold, so 'allow-unreached' contradicts it
  assert y foo() at-least 1 allow-unreached
                            ^^^^^^^^^^^^^^^`},
	{body, "assert y foo(a) changed allow-unreached", `
f:4:25: without a call 'changed' does not hold, so 'allow-unreached' contradicts it
  assert y foo(a) changed allow-unreached
                          ^^^^^^^^^^^^^^^`},
	{body, "assert y foo() changed", `
f:4:10: 'changed' is about one value, and this spec has none
  assert y foo() changed
           ^^^^^^
  write FUNCTION(VALUE); conditions come after 'if'`},
	{body, "assert y foo changed", `
f:4:10: 'changed' is about one value, and this spec has all of the function
  assert y foo changed
           ^^^^
  write FUNCTION(VALUE); conditions come after 'if'`},
	{body, "assert y foo(a, b) unchanged", `
f:4:10: 'unchanged' is about one value, and this spec has 2
  assert y foo(a, b) unchanged
           ^^^^^^^^^^
  write FUNCTION(VALUE); conditions come after 'if'`},
	{body, "assert y foo(return) changed", `
f:4:14: 'return' has no value at entry, so that it could change
  assert y foo(return) changed
               ^^^^^^`},
	{body, "assert y tp:foo(a) changed", `
f:4:10: 'changed' compares a value at entry and at return, and this has one of them
  assert y tp:foo(a) changed
           ^^^^^^^^^^
  write a spec: FUNCTION(VALUE)`},
	{body, `assert y "p foo $arg1" changed`, `
f:4:10: 'changed' compares a value at entry and at return, and this has one of them
  assert y "p foo $arg1" changed
           ^^^^^^^^^^^^^
  write a spec: FUNCTION(VALUE)`},
	{body, "assert y foo() difference <= 10", `
f:4:10: 'difference' compares two specs, and this is one
  assert y foo() difference <= 10
           ^^^^^^
  write SPEC ~ SPEC difference <= 10`},
	{body, "assert y foo() ~ bar() never", `
f:4:10: 'never' is about one spec, and these are two
  assert y foo() ~ bar() never
           ^^^^^^^^^^^^^^
  two are compared with 'difference' or 'ratio'`},
	{body, "assert y foo() ~ difference <= 10", `
f:4:18: expected a spec after '~', not 'difference'
  assert y foo() ~ difference <= 10
                   ^^^^^^^^^^`},
	{body, "assert y foo() ~ bar() difference 10", `
f:4:35: expected a comparison, not '10'
  assert y foo() ~ bar() difference 10
                                    ^^
  the comparisons are == != < <= > >=`},
	{body, "assert y foo() ~ bar() difference >= 0", `
f:4:24: 'difference >= 0' always holds
  assert y foo() ~ bar() difference >= 0
                         ^^^^^^^^^^^^^^^`},
	{body, "assert y foo() ~ bar() difference <= 18446744073709551615", `
f:4:24: 'difference <= 18446744073709551615' always holds
  assert y foo() ~ bar() difference <= 18446744073709551615
                         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^`},
	{body, "assert y foo() ~ bar() difference > 18446744073709551615", `
f:4:24: 'difference > 18446744073709551615' can never hold
  assert y foo() ~ bar() difference > 18446744073709551615
                         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^`},
	{body, "assert y foo() ~ bar() difference < 0", `
f:4:24: 'difference < 0' can never hold
  assert y foo() ~ bar() difference < 0
                         ^^^^^^^^^^^^^^`},
	{body, "assert y foo() ~ bar() ratio > 0.1234567891", `
f:4:32: '0.1234567891' is not a ratio
  assert y foo() ~ bar() ratio > 0.1234567891
                                 ^^^^^^^^^^^^
  write a number such as 2 or 0.95, of at most 9 digits`},
	{body, "assert y foo() ~ bar() ratio >", `
f:4:31: a number is missing
  assert y foo() ~ bar() ratio >
                                ^`},
	{body, "assert y foo() ~ bar() ~ h() difference == 0", `
f:4:24: two specs are compared, and this is a third
  assert y foo() ~ bar() ~ h() difference == 0
                         ^`},
	{body, "assert y -s foo at-least 1", `
f:4:10: a chain has 2 to 64 functions, not 1
  assert y -s foo at-least 1
           ^^`},
	{body, "assert y -s at-least 1", `
f:4:10: a chain has 2 to 64 functions, not 0
  assert y -s at-least 1
           ^^`},
	{body, "assert y -s foo bar", `
f:4:20: a condition is missing
  assert y -s foo bar
                     ^
  the conditions are never, at-least, at-most, exactly, count, p50, p90, p95, p99, p99.9, max, changed, unchanged, difference, ratio, each`},
	{body, "assert y -s foo bar max < 1ms", `
f:4:10: 'max' is not for a chain
  assert y -s foo bar max < 1ms
           ^^^^^^^^^^^
  complete chains can be counted: never, at-least, at-most, exactly, count`},
	{body, "assert y -s foo bar ~ h difference <= 1", `
f:4:21: a chain is not compared with another spec
  assert y -s foo bar ~ h difference <= 1
                      ^`},
	{body, "assert y -s foo bar* never", `
f:4:17: a chain is made of single functions, and 'bar*' means many
  assert y -s foo bar* never
                  ^^^^`},
	{body, "assert y iter:task never", `
f:4:15: task is an iterator, and a probe file is about calls
  assert y iter:task never
                ^^^^
  read it in the command of the test: ksnoop -o json 'iter:...'`},
	{body, `assert y -s foo "p g" never`, `
f:4:20: a chain is made of specs, and this is a kprobe_events line
  assert y -s foo "p g" never
                     ^
  write g`},
	{body, "assert y -x foo never", `
f:4:10: expected a function name, not '-'
  assert y -x foo never
           ^`},
	{body, "assert y any-of never", `
f:4:17: expected '{' after 'any-of', not 'never'
  assert y any-of never
                  ^^^^^
  write any-of {tcp_sendmsg tcp_sendmsg_locked}`},
	{body, "assert y any-of {foo} never", `
f:4:10: 'any-of' has 2 names or more
  assert y any-of {foo} never
           ^^^^^^
  without a choice, write only the name`},
	{body, "assert y any-of {foo g never", `
f:4:10: 'any-of' has no closing '}'
  assert y any-of {foo g never
           ^^^^^^`},
	{body, "assert y any-of {foo foo} never", `
f:4:22: 'foo' is there twice
  assert y any-of {foo foo} never
                       ^^^`},
	{body, "assert y any-of {foo, g} never", `
f:4:18: 'foo,' is not a name of a function
  assert y any-of {foo, g} never
                   ^^^^
  names are separated by blanks, and values come after the '}'`},
	{body, "assert y any-of {foo g(a)} never", `
f:4:22: 'g(a)' is not a name of a function
  assert y any-of {foo g(a)} never
                       ^^^^
  names are separated by blanks, and values come after the '}'`},
	{body, "assert y any-of {foo: g} never", `
f:4:18: 'foo:' is not a name of a function
  assert y any-of {foo: g} never
                   ^^^^
  names are separated by blanks, and values come after the '}'`},
	{body, "assert y any-of {foo g;h} never", `
f:4:22: 'g;h' is not a name of a function
  assert y any-of {foo g;h} never
                       ^^^
  names are separated by blanks, and values come after the '}'`},
	{body, "assert y any-of {foo g}(a = 1) never", `
f:4:27: '=' is not a comparison
  assert y any-of {foo g}(a = 1) never
                            ^
  did you mean '=='?`},
	{body, "metric", `
f:4:7: the name of the metric is missing
  metric
        ^`},
	{body, "metric m foo(a)", `
f:4:16: a kind of metric is missing
  metric m foo(a)
                 ^
  write one of sum, count, histogram, table`},
	{body, "metric m foo(a) avg", `
f:4:17: 'avg' is not a kind of metric
  metric m foo(a) avg
                  ^^^
  write one of sum, count, histogram, table`},
	{body, "metric m foo() sum", `
f:4:10: 'sum' is of one value, and this spec has none
  metric m foo() sum
           ^^^^^^
  of durations, write foo($duration)`},
	{body, "metric m tp:foo() sum", `
f:4:10: 'sum' is of one value, and this spec has none
  metric m tp:foo() sum
           ^^^^^^^^^
  write FUNCTION(VALUE); conditions come after 'if'`},
	{body, "metric m foo sum", `
f:4:10: 'sum' is of one value, and this spec has all of the function
  metric m foo sum
           ^^^^
  write FUNCTION(VALUE); conditions come after 'if'`},
	{body, "metric m foo(a, b) histogram", `
f:4:10: 'histogram' is of one value, and this spec has 2
  metric m foo(a, b) histogram
           ^^^^^^^^^^
  write FUNCTION(VALUE); conditions come after 'if'`},
	{body, `metric m "p foo $arg*" sum`, `
f:4:10: 'sum' is of one value, and this spec has all of the function
  metric m "p foo $arg*" sum
           ^^^^^^^^^^^^^
  write FUNCTION(VALUE); conditions come after 'if'`},
	{body, "metric m -s foo bar sum", `
f:4:10: 'sum' is not for a chain
  metric m -s foo bar sum
           ^^^^^^^^^^^
  complete chains can be counted: count`},
	{body, "metric m foo(a) sum allow-unreached", `
f:4:21: 'allow-unreached' behind the metric
  metric m foo(a) sum allow-unreached
                      ^^^^^^^^^^^^^^^`},
	{body, "metric m foo() count scope tsk", `
f:4:28: 'tsk' is not a scope
  metric m foo() count scope tsk
                             ^^^
  did you mean 'task'?`},
	{body, "metric x foo() count", `
f:4:8: the name 'x' is taken by line 3
  metric x foo() count
         ^`},
	{body, "evidence", `
f:4:9: the name of an assertion or a metric is missing
  evidence
          ^`},
	{body, "evidence z foo last 5", `
f:4:10: there is no assertion or metric 'z'
  evidence z foo last 5
           ^`},
	{body, "evidence xx foo last 5", `
f:4:10: there is no assertion or metric 'xx'
  evidence xx foo last 5
           ^^
  did you mean 'x'?`},
	{body, "evidence x foo", `
f:4:15: 'last' is missing
  evidence x foo
                ^
  write 'last'`},
	{body, "evidence x foo last", `
f:4:20: a number after 'last' is missing
  evidence x foo last
                     ^`},
	{body, "evidence x foo last 0", `
f:4:21: 0 events: the limits are 1 and 10000
  evidence x foo last 0
                      ^`},
	{body, "evidence x foo last 5 6", `
f:4:23: '6' behind the number of events
  evidence x foo last 5 6
                        ^`},
	{body, "xfail", `
f:4:6: the name of an assertion is missing
  xfail
       ^`},
	{body, "xfail x", `
f:4:8: 'on' is missing
  xfail x
         ^
  write xfail x on qemu "why"`},
	{body, "xfail x on", `
f:4:11: a place is missing
  xfail x on
            ^
  write one of always, qemu, kernel`},
	{body, `xfail x on quemu "why"`, `
f:4:12: 'quemu' is not a place
  xfail x on quemu "why"
             ^^^^^
  did you mean 'qemu'?`},
	{body, "xfail x on qemu", `
f:4:16: the reason is missing
  xfail x on qemu
                 ^
  put it in quotes: "emulated clock"`},
	{body, "xfail x on qemu why", `
f:4:17: the reason is not in quotes
  xfail x on qemu why
                  ^^^
  write "why"`},
	{body, `xfail x on qemu ""`, `
f:4:17: the reason is empty
  xfail x on qemu ""
                  ^^`},
	{body, `xfail x on qemu "why" now`, `
f:4:23: 'now' behind the reason
  xfail x on qemu "why" now
                        ^^^`},
	{body, `xfail x on kernel 6.1 "why"`, `
f:4:19: expected a comparison, not '6.1'
  xfail x on kernel 6.1 "why"
                    ^^^
  the comparisons are == != < <= > >=`},
	{body, `xfail y on always "why"`, `
f:4:7: there is no assertion 'y'
  xfail y on always "why"
        ^`},
	{body, "metric m foo() count\nxfail m on always \"why\"", `
f:5:7: 'm' is a metric, which cannot fail
  xfail m on always "why"
        ^`},
	{body, "assert y foo() never — now", `
f:4:22: U+2014 at position 22: a spec is plain ASCII text
  assert y foo() never ? now
                       ^
  write -`},
	{body, "asert y foo never\nassert z g nevr\nxfail w on always \"x\"\nsettle 5", `
f:4:1: 'asert' is not a statement
  asert y foo never
  ^^^^^
  did you mean 'assert'?
f:5:12: 'nevr' is not a condition
  assert z g nevr
             ^^^^
  did you mean 'never'?
f:6:7: there is no assertion 'w'
  xfail w on always "x"
        ^
f:7:8: '5' is not a duration
  settle 5
         ^
  a duration has a unit: 10ms, 1.5s`},
}

func TestRefuse(t *testing.T) {
	for _, test := range refused {
		s, err := Parse("f", test.before+test.text)
		require.EqualError(t, err, test.want[1:], test.text)
		require.Nil(t, s)
		var refusal *spec.Error
		require.ErrorAs(t, err, &refusal)
	}
}

// TestManyErrors checks that a file with an error in every line gives about a hundred
// errors.
func TestManyErrors(t *testing.T) {
	_, err := Parse("f", body+strings.Repeat("asert\n", 1000))
	var all interface{ Unwrap() []error }
	require.True(t, errors.As(err, &all))
	require.Len(t, all.Unwrap(), mostErrors+1)
	require.EqualError(t, all.Unwrap()[mostErrors], "f:103:1: what follows is not looked at: there are 100 errors")
}

// TestLongLine checks that lines that are too long are refused.
func TestLongLine(t *testing.T) {
	_, err := Parse("f", body+"# "+strings.Repeat("x", longest))
	require.ErrorContains(t, err, "f:4:65537: the line has 65538 bytes, the limit is 65536\n")
}
