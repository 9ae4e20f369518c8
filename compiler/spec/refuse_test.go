package spec

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// refused has the mistakes that people are known to make in specs, with the whole
// error message.
var refused = []struct{ spec, want string }{
	// Words and functions of other languages.
	{"f(count() by comm)", `
expected ',' or ')', not 'by'
  f(count() by comm)
            ^^
  what calls are counted by comes before the aggregate: vfs_read($comm, count())`},
	{"f if a by b", `
expected '&&', '||' or the end of the spec, not 'by'
  f if a by b
         ^^`},
	{"f(a where b)", `
expected ',' or ')', not 'where'
  f(a where b)
      ^^^^^
  a condition comes after the closing ')': vfs_read(count) if count > 5`},
	{"f(a->b in (1, 2))", `
expected ',' or ')', not 'in'
  f(a->b in (1, 2))
         ^^
  write a->b >= 1, a->b <= 5, or, after 'if', a->b == 1 || a->b == 5`},
	{"f if a in 1..5", `
expected '&&', '||' or the end of the spec, not 'in'
  f if a in 1..5
         ^^
  write a >= 1 && a <= 5, or, after 'if', a == 1 || a == 5`},
	{"f(p as sock *)", `
expected ',' or ')', not 'as'
  f(p as sock *)
      ^^
  a cast comes before the value: (struct sock *)sk`},
	{"f(a == 1..5)", `
'1..5' is not a number
  f(a == 1..5)
         ^^^^
  a range is two comparisons: count >= 1, count <= 5`},
	{"f(top(5, a))", `
expected ',' or ')', not '('
  f(top(5, a))
       ^
  there are no functions but the aggregates count sum avg min max hist lhist`},
	{"f(cuont())", `
expected ',' or ')', not '('
  f(cuont())
         ^
  did you mean 'count'?`},
	{"f if top(a)", `
expected '&&', '||' or the end of the spec, not '('
  f if top(a)
          ^
  there are no functions`},
	// Spans.
	{"f => g", `
a span needs 'on' and a key
  f => g
        ^
  the key is a value that both points have: tp:block_rq_issue() => tp:block_rq_complete() on rq`},
	{"f(a) => g(b) if c", `
a span needs 'on' and a key
  f(a) => g(b) if c
                   ^
  the key is a value that both points have: tp:block_rq_issue() => tp:block_rq_complete() on rq`},
	{"f on a => g", `
expected '(', not 'on'
  f on a => g
    ^^
  'on' belongs to a span: A => B on KEY`},
	{"f => g on", `
a key is missing after 'on'
  f => g on
           ^`},
	{"f(a) => g(b) on a +", `
a value is missing after '+'
  f(a) => g(b) on a +
                     ^`},
	{"f => g if b on (", `
a value is missing after '('
  f => g if b on (
                  ^`},
	{"f => g on a ==", `
a key is missing after '=='
  f => g on a ==
                ^`},
	{"f => g => h on a", `
a span has two points, and this is a third
  f => g => h on a
         ^^
  write a span for each pair: A => B on KEY`},
	{"f => g on a if b", `
'if' after the key
  f => g on a if b
              ^^
  a condition comes before 'on', behind the point that it is about`},
	{"f => g on a, b", `
',' after the key
  f => g on a, b
             ^
  there is one key; join two numbers to one: ($cpu << 8 | nr)`},
	{"f => g on a != b", `
'!=' after the key
  f => g on a != b
              ^^
  the keys of both points are compared with '=='`},
	{"f => ", `
a function is missing after '=>'
  f =>
      ^`},
	{"f if a => 5", `
'=>' is not a comparison
  f if a => 5
         ^^
  did you mean '>='?`},
	{"f if a => limit", `
a span needs 'on' and a key
  f if a => limit
                 ^
  the key is a value that both points have; a comparison is written '>='`},
	{"f(a) on b", `
'on' after the closing ')'
  f(a) on b
       ^^
  'on' belongs to a span: A => B on KEY`},

	// Error pointers.
	{"f(return is)", `
'is' is not a comparison
  f(return is)
           ^^
  did you mean 'is-err'? it is written without blanks`},
	{"f(a is - err)", `
'is' is not a comparison
  f(a is - err)
      ^^
  did you mean 'is-err'? it is written without blanks`},
	{"f(a is-error)", `
'is-error' is not a comparison
  f(a is-error)
      ^^^^^^^^
  did you mean 'is-err'? it is written without blanks`},
	{"f(a IS_ERR)", `
expected an operator, ',' or ')', not 'IS_ERR'
  f(a IS_ERR)
      ^^^^^^
  did you mean 'is-err'?`},
	{"f if a is-err == 5", `
a second comparison of one value
  f if a is-err == 5
                ^^
  repeat the value: a is-err && a == ...`},
	{"f if !a is-err", `
in C this '!' belongs to 'a' alone
  f if !a is-err
       ^
  write !(a is-err)`},
	{"f(a is-err 5)", `
expected ',' or ')', not '5'
  f(a is-err 5)
             ^`},

	// Values at return.
	{"f(after())", `
a value is missing after '('
  f(after())
          ^`},
	{"f(after(after(a->b)))", `
'after' inside of 'after'
  f(after(after(a->b)))
          ^^^^^^^^^^^
  leave out the 'after'`},
	{"f(diff(a->b + after(a->c)))", `
'after' inside of 'diff'
  f(diff(a->b + after(a->c)))
                ^^^^^^^^^^^
  diff(V) reads V at entry and at return: leave out the 'after'`},
	{"f(after(a)->b)", `
'->' after 'after(a)': members belong inside the parentheses
  f(after(a)->b)
            ^^
  for example after(file->f_pos)`},
	{"f(a == 1) if *after(a) == 3", `
'*' and casts belong inside of 'after'
  f(a == 1) if *after(a) == 3
               ^^^^^^^^^
  for example after(*pos); this is after(a)`},
	{"f(diff(a) == 3)", `
'diff(a)' is what has changed, and cannot be compared
  f(diff(a) == 3)
            ^^
  it holds if anything has changed; compare the value at return: after(a)`},
	{"f(a) if a == diff(*a)", `
'diff(*a)' is a whole item, and no part of a value
  f(a) if a == diff(*a)
               ^^^^^^^^
  after(*a) is a value`},

	// No function, or more than one.
	{"", `
the spec is empty
  name a function, for example vfs_read`},
	{" \t\n", `
the spec is empty
  name a function, for example vfs_read`},
	{"(a)", `
expected a function name, not '('
  (a)
  ^`},
	{")", `
expected a function name, not ')'
  )
  ^`},
	{"5", `
a function name cannot begin with a digit
  5
  ^`},
	{"7zip(a)", `
a function name cannot begin with a digit
  7zip(a)
  ^^^^`},
	{"return", `
the function is missing
  return
  ^^^^^^
  'return' belongs in the parentheses after a function name: vfs_read(return)`},
	{"return(a)", `
the function is missing
  return(a)
  ^^^^^^
  'return' belongs in the parentheses after a function name: vfs_read(return)`},
	{"$task->comm", `
expected a function name, not '$'
  $task->comm
  ^
  ksnoop print shows values without a call, and ksnoop check --print checks them`},
	{"(int)@a", `
expected a function name, not '('
  (int)@a
  ^
  ksnoop print shows values without a call, and ksnoop check --print checks them`},
	{"->a", `
expected a function name, not '->'
  ->a
  ^^`},
	{".foo", `
expected a function name, not '.'
  .foo
  ^`},
	{"foo.", `
'foo.' has a dot too many
  foo.
  ^^^^`},
	{"foo..bar(a)", `
'foo..bar' has a dot too many
  foo..bar(a)
  ^^^^^^^^`},
	{"f,g", `
a spec names one function
  f,g
   ^
  write one spec for each function`},
	{"f g", `
expected '(', not 'g'
  f g
    ^
  values belong in parentheses, vfs_read(count > 5), or after 'if': vfs_read if count > 5`},
	{"f by $comm", `
expected '(', not 'by'
  f by $comm
    ^^
  what calls are counted by comes before the aggregate: vfs_read($comm, count())`},
	{"f(count()) by $comm", `
'by' after the closing ')'
  f(count()) by $comm
             ^^
  what calls are counted by comes before the aggregate: vfs_read($comm, count())`},
	{"f(a:hist)", `
'hist' is not a format
  f(a:hist)
      ^^^^
  it is an aggregate: write hist(VALUE)`},
	{"fexit/vfs_read", `
'/' is not part of the spec language
  fexit/vfs_read
       ^
  write vfs_read(return); --attach fentry forces that kind`},
	{"tp/sched/sched_switch", `
'/' is not part of the spec language
  tp/sched/sched_switch
    ^
  write tp:sched_switch`},
	{"raw_tp/sched_switch(prev)", `
'/' is not part of the spec language
  raw_tp/sched_switch(prev)
        ^
  write tp:sched_switch`},
	{"tp:sched/sched_switch(prev)", `
'/' is not part of the spec language
  tp:sched/sched_switch(prev)
          ^
  write tp:sched_switch`},
	{"tp:sys_enter/id == 1/", `
'/' is not part of the spec language
  tp:sys_enter/id == 1/
              ^
  a condition comes after 'if': vfs_read if $pid == 1`},
	{"iter/task", `
'/' is not part of the spec language
  iter/task
      ^
  write iter:task`},
	{"kretprobe.multi/vfs_read", `
'/' is not part of the spec language
  kretprobe.multi/vfs_read
                 ^
  write vfs_read(return); --attach kprobe.multi forces that kind`},
	{"watchpoint:0xffffffff82e3f3a0:4:w", `
'watchpoint' is not a module
  watchpoint:0xffffffff82e3f3a0:4:w
  ^^^^^^^^^^
  memory is watched by another command: ksnoop watch '(int)@panic_timeout'`},
	{"kprobe/", `
'/' is not part of the spec language
  kprobe/
        ^
  a condition comes after 'if': vfs_read if $pid == 1`},
	{"f+g", `
expected '(', not '+'
  f+g
   ^
  an offset and %return are parts of kprobe_events lines: 'p vfs_read+4'`},
	{"f > 5", `
expected '(', not '>'
  f > 5
    ^
  values belong in parentheses, vfs_read(count > 5), or after 'if': vfs_read if count > 5`},
	{"f->a", `
expected '(', not '->'
  f->a
   ^^
  values belong in parentheses, vfs_read(count > 5), or after 'if': vfs_read if count > 5`},

	// Parentheses and commas.
	{"f)", `
')' without a '(' before it
  f)
   ^`},
	{"f(", `
')' is missing
  f(
    ^
  close the list of values with ')'`},
	{"f(a", `
')' is missing
  f(a
     ^
  close the list of values with ')'`},
	{"f(a,", `
')' is missing
  f(a,
      ^
  close the list of values with ')'`},
	{"f(a > 5", `
')' is missing
  f(a > 5
         ^
  close the list of values with ')'`},
	{"f(a  ", `
')' is missing
  f(a
     ^
  close the list of values with ')'`},
	{"f(a))", `
')' without a '(' before it
  f(a))
      ^`},
	{"f((a)", `
')' is missing
  f((a)
       ^
  close the list of values with ')'`},
	{"f(a(", `
expected ',' or ')', not '('
  f(a(
     ^
  there are no functions but the aggregates count sum avg min max hist lhist`},
	{"f(a)(b)", `
'(' after the closing ')'
  f(a)(b)
      ^
  only 'if' and a condition may follow the list of values`},
	{"f(a)x", `
'x' after the closing ')'
  f(a)x
      ^
  only 'if' and a condition may follow the list of values`},
	{"f(a), b", `
',' after the closing ')'
  f(a), b
      ^
  write one spec for each function, each in quotes of its own`},
	{"f(a) 5", `
'5' after the closing ')'
  f(a) 5
       ^
  only 'if' and a condition may follow the list of values`},
	{"f(,a)", `
a value is missing before ','
  f(,a)
    ^
  leave out the ','`},
	{"f(a,,b)", `
a value is missing before ','
  f(a,,b)
      ^
  leave out the ','`},
	{"f(a,)", `
a value is missing before ')'
  f(a,)
      ^
  leave out the ',' before it`},
	{"f(,)", `
a value is missing before ','
  f(,)
    ^
  leave out the ','`},

	// Values and members.
	{"f(a b)", `
expected ',' or ')', not 'b'
  f(a b)
      ^`},
	{"f(a 5)", `
expected an operator, ',' or ')', not '5'
  f(a 5)
      ^`},
	{"f(5)", `
expected a value, not '5'
  f(5)
    ^
  a constant comes after an operator: count > 5`},
	{"f(5 < a)", `
expected a value, not '5'
  f(5 < a)
    ^
  a constant comes after an operator: count > 5`},
	{"f(> 5)", `
a value is missing before '>'
  f(> 5)
    ^`},
	{"f(!a)", `
expected a value, not '!'
  f(!a)
    ^
  conditions come after 'if': vfs_read(count) if !count`},
	{"f(= 5)", `
expected a value, not '='
  f(= 5)
    ^`},
	{"f(-a)", `
expected a value, not '-'
  f(-a)
    ^
  a value has no sign; write 0 - count`},
	{"f(a- >b)", `
a value is missing before '>'
  f(a- >b)
       ^`},
	{"f(a->)", `
a member is missing after '->'
  f(a->)
       ^`},
	{"f(a->,b)", `
a member is missing after '->'
  f(a->,b)
       ^`},
	{"f(a->", `
a member is missing after '->'
  f(a->
       ^`},
	{"f(a->5)", `
expected a member after '->', not '5'
  f(a->5)
       ^`},
	{"f(a->->b)", `
expected a member after '->', not '->'
  f(a->->b)
       ^^`},

	// Operators.
	{"f(a = 5)", `
'=' is not a comparison
  f(a = 5)
      ^
  did you mean '=='?`},
	{"f(a ! 5)", `
'!' is not a comparison
  f(a ! 5)
      ^
  did you mean '!='?`},
	{"f(a === 5)", `
'===' is not a comparison
  f(a === 5)
      ^^^
  did you mean '=='?`},
	{"f(a !== 5)", `
'!==' is not a comparison
  f(a !== 5)
      ^^^
  did you mean '!='?`},
	{"f(a >== 5)", `
'>==' is not a comparison
  f(a >== 5)
      ^^^
  did you mean '>='?`},
	{"f(a <== 5)", `
'<==' is not a comparison
  f(a <== 5)
      ^^^
  did you mean '<='?`},
	{"f(a <> 5)", `
'<>' is not a comparison
  f(a <> 5)
      ^^
  did you mean '!='?`},
	{"f(a =! 5)", `
'=!' is not a comparison
  f(a =! 5)
      ^^
  did you mean '!='?`},
	{"f(a => 5)", `
'=>' is not a comparison
  f(a => 5)
      ^^
  did you mean '>='?`},
	{"f(a =< 5)", `
'=<' is not a comparison
  f(a =< 5)
      ^^
  did you mean '<='?`},
	{"f(a ==! 5)", `
'==!' is not a comparison
  f(a ==! 5)
      ^^^
  the comparisons are == != < <= > >= & ~`},
	{"f(a > = 5)", `
expected a constant after '>', not '='
  f(a > = 5)
        ^
  write '>=' without a blank`},
	{"f(a = = 5)", `
'=' is not a comparison
  f(a = = 5)
      ^
  did you mean '=='?`},
	{"f(a ! = 5)", `
'!' is not a comparison
  f(a ! = 5)
      ^
  did you mean '!='?`},
	{"f(a < > 5)", `
expected a constant after '<', not '>'
  f(a < > 5)
        ^`},
	{"f(a > 5 < 9)", `
a second comparison of one value
  f(a > 5 < 9)
          ^
  repeat the value: a > 5, a < ...`},

	// Numbers.
	{"f(a == 5abc)", `
'5abc' is not a number
  f(a == 5abc)
         ^^^^
  hexadecimal is written 0x5abc`},
	{"f(a == 0x)", `
'0x' is not a number
  f(a == 0x)
         ^^
  hexadecimal digits belong after 0x`},
	{"f(a == 0xg)", `
'0xg' is not a number
  f(a == 0xg)
         ^^^`},
	{"f(a == 08)", `
'08' is not a number
  f(a == 08)
         ^^
  a leading 0 means octal; the decimal number is 8`},
	{"f(a == 0192)", `
'0192' is not a number
  f(a == 0192)
         ^^^^
  a leading 0 means octal; the decimal number is 192`},
	{"f(a == 5UL)", `
'5UL' is not a number
  f(a == 5UL)
         ^^^
  leave out the suffix 'UL'`},
	{"f(a == 010u)", `
'010u' is not a number
  f(a == 010u)
         ^^^^
  leave out the suffix 'u'`},
	{"f(a == 0xfful)", `
'0xfful' is not a number
  f(a == 0xfful)
         ^^^^^^
  leave out the suffix 'ul'`},
	{"f(a == 09u)", `
'09u' is not a number
  f(a == 09u)
         ^^^`},
	{"f(a == 5.5)", `
'5.5' is not a number
  f(a == 5.5)
         ^^^
  constants are integers`},
	{"f(a:ip4 == 10.0.0.1)", `
'10.0.0.1' is not a number
  f(a:ip4 == 10.0.0.1)
             ^^^^^^^^
  an address is in quotes: "10.0.0.1"`},
	{"f(a == 1e3)", `
'1e3' is not a number
  f(a == 1e3)
         ^^^
  there are no exponents: write 1000, or 0x1e3 if it is hexadecimal`},
	{"f(a == 0b101)", `
'0b101' is not a number
  f(a == 0b101)
         ^^^^^`},
	{"f(a == 1_000)", `
'1_000' is not a number
  f(a == 1_000)
         ^^^^^
  did you mean '1000'?`},
	{"f(a == 5 0)", `
expected ',' or ')', not '0'
  f(a == 5 0)
           ^
  there are no blanks in a number`},
	{"f(a == 0x 5)", `
'0x' is not a number
  f(a == 0x 5)
         ^^
  hexadecimal digits belong after 0x`},
	{"f(a == 18446744073709551616)", `
'18446744073709551616' is out of range
  f(a == 18446744073709551616)
         ^^^^^^^^^^^^^^^^^^^^
  constants go from -9223372036854775808 (-2^63) to 18446744073709551615 (2^64-1)`},
	{"f(a == 0x10000000000000000)", `
'0x10000000000000000' is out of range
  f(a == 0x10000000000000000)
         ^^^^^^^^^^^^^^^^^^^
  constants go from -9223372036854775808 (-2^63) to 18446744073709551615 (2^64-1)`},
	{"f(a == -9223372036854775809)", `
'-9223372036854775809' is out of range
  f(a == -9223372036854775809)
         ^^^^^^^^^^^^^^^^^^^^
  constants go from -9223372036854775808 (-2^63) to 18446744073709551615 (2^64-1)`},
	{"f(a == - 99999999999999999999)", `
'- 99999999999999999999' is out of range
  f(a == - 99999999999999999999)
         ^^^^^^^^^^^^^^^^^^^^^^
  constants go from -9223372036854775808 (-2^63) to 18446744073709551615 (2^64-1)`},

	// Constants that are missing or are not numbers.
	{"f(a ==", `
a constant is missing after '=='
  f(a ==
        ^`},
	{"f(a ==)", `
a constant is missing after '=='
  f(a ==)
        ^`},
	{"f(a == , b)", `
a constant is missing after '=='
  f(a == , b)
         ^`},
	{"f(a == -)", `
a constant is missing after '-'
  f(a == -)
          ^`},
	{"f(a == -return)", `
expected a number after '-', not 'return'
  f(a == -return)
          ^^^^^^
  a value has no sign; write 0 - count`},
	{"f(a == -(b))", `
expected a number after '-', not '('
  f(a == -(b))
          ^
  a value has no sign; write 0 - count`},
	{"f(a == -b->c)", `
expected ',' or ')', not '->'
  f(a == -b->c)
           ^^
  a value has no sign; write 0 - count`},
	{"f(a == str(b))", `
expected ',' or ')', not '('
  f(a == str(b))
            ^
  write name:string, or name:ustring for memory of the process`},
	{"f(a == max_of(b))", `
expected ',' or ')', not '('
  f(a == max_of(b))
               ^
  there are no functions`},
	{"f(a == --5)", `
expected a number after '-', not '-'
  f(a == --5)
          ^`},
	{"f(a == +-5)", `
expected a number after '+', not '-'
  f(a == +-5)
          ^`},
	{"f(a == (5))", `
expected a constant after '==', not '('
  f(a == (5))
         ^
  a constant is written without parentheses and casts`},

	// Not in the language.
	{"f(a == 5 && b)", `
expected ',' or ')', not '&&'
  f(a == 5 && b)
           ^^
  separate comparisons with ','; all of them must hold`},
	{"f(a || b)", `
expected ',' or ')', not '||'
  f(a || b)
      ^^
  conditions with '||' come after 'if': vfs_read(count) if count > 5 || count == 1`},
	{"f(a); g", `
';' after the closing ')'
  f(a); g
      ^
  write one spec for each function, each in quotes of its own`},
	{"f { print }", `
'{' is not part of the spec language
  f { print }
    ^
  there are no programs: name the values to show, as in vfs_read(count)`},
	{"f /pid == 5/", `
'/' is not part of the spec language
  f /pid == 5/
    ^
  a condition comes after 'if': vfs_read if $pid == 1`},
	{"f(str(a))", `
expected ',' or ')', not '('
  f(str(a))
       ^
  write name:string, or name:ustring for memory of the process`},
	{"f(ntohs(a))", `
expected ',' or ')', not '('
  f(ntohs(a))
         ^
  a format comes after the value: count:be`},
	{"f(histogram(a))", `
expected ',' or ')', not '('
  f(histogram(a))
             ^
  did you mean 'hist'?`},

	// Aggregates.
	{"f(count(a))", `
count() counts calls, and takes no value
  f(count(a))
          ^
  the sum of a value is sum(...)`},
	{"f(sum())", `
a value is missing after 'sum('
  f(sum())
        ^
  write sum(count)`},
	{"f(sum(a):x)", `
an aggregate has no format
  f(sum(a):x)
          ^`},
	{"f(count() > 5)", `
an aggregate is not compared: it is known when calls have been counted
  f(count() > 5)
            ^
  a condition is about one call: vfs_read(count()) if return > 0`},
	{"f(sum(a) * 2)", `
an aggregate is a whole item, not a part of a value
  f(sum(a) * 2)
           ^
  compute inside of it: sum(count * 2)`},
	{"f(2 * sum(a))", `
sum() is a whole item, not a part of a value
  f(2 * sum(a))
        ^^^
  compute inside of it: sum(count * 2)`},
	{"f(a) if count() > 5", `
count() is an aggregate, and a condition is about one call
  f(a) if count() > 5
          ^^^^^
  aggregates are items of the list: vfs_read(count()) if return > 0`},
	{"f(hist(a, 0, 5, 1))", `
hist has no bounds: its buckets are powers of two
  f(hist(a, 0, 5, 1))
          ^
  buckets of equal width: lhist(count, 0, 4096, 512)`},
	{"f(lhist(a, 0, 5))", `
the step of the histogram is missing
  f(lhist(a, 0, 5))
                 ^
  lhist takes a value, a lower bound, an upper bound and a step: lhist(count, 0, 4096, 512)`},
	{"f(lhist(a, 0, b))", `
the step of the histogram is missing
  f(lhist(a, 0, b))
                 ^
  lhist takes a value, a lower bound, an upper bound and a step: lhist(count, 0, 4096, 512)`},
	{"f(max(a:x))", `
a format inside an aggregate
  f(max(a:x))
         ^
  numbers of aggregates have none`},
	{"f(max(a > 5))", `
a comparison inside an aggregate
  f(max(a > 5))
          ^
  which calls are counted is written after 'if': vfs_read(count()) if return > 0`},
	{"f(max(a, b))", `
max takes no more than that
  f(max(a, b))
         ^
  write max(count)`},
	{"f(max(a", `
')' is missing
  f(max(a
         ^`},
	{"f(max(count()))", `
count() is a whole item, not a part of a value
  f(max(count()))
        ^^^^^
  compute inside of it: sum(count * 2)`},
	{"f(max(5))", `
expected a value, not '5'
  f(max(5))
        ^
  a constant comes after an operator: count > 5`},
	{"f(a; b)", `
';' is not part of the spec language
  f(a; b)
     ^
  separate values with ',', and quote each function with its values`},
	{"f(&a)", `
a value is missing before '&'
  f(&a)
    ^
  the address of something is not a value`},
	{"f(a ~ b)", `
expected a string after '~', not 'b'
  f(a ~ b)
        ^
  write "b"`},
	{"f(a{b})", `
'{' is not part of the spec language
  f(a{b})
     ^`},
	{"f(a # b)", `
'#' is not part of the spec language
  f(a # b)
      ^`},
	{`f(\a)`, `
'\' is not part of the spec language
  f(\a)
    ^`},
	{"f(a % 2)", `
expected ',' or ')', not '%'
  f(a % 2)
      ^
  the operators are + - * & | << >>, and x >> 10 is x / 1024`},
	{"f(a ? b)", `
'?' is not part of the spec language
  f(a ? b)
      ^
  there is no '?:'; a condition comes after 'if', as in vfs_read(count) if count > 5`},

	// Modules, tracepoints and wildcards.
	{"m:", `
a name is missing after ':'
  m:
    ^`},
	{"tp:", `
a name is missing after ':'
  tp:
     ^`},
	{":f", `
expected a function name, not ':'
  :f
  ^`},
	{"m:return", `
the function is missing
  m:return
    ^^^^^^
  'return' belongs in the parentheses after a function name: vfs_read(return)`},
	{"m:5f", `
a function name cannot begin with a digit
  m:5f
    ^^`},
	{"m:(a)", `
expected a function name, not '('
  m:(a)
    ^`},
	{"m:a:f", `
a second ':'
  m:a:f
     ^
  a spec is one function, perhaps with its module: ext4:ext4_sync_file`},
	{"a.b:f", `
'a.b' is not the name of a module
  a.b:f
  ^^^
  only the function may have wildcards and dots: ext4:ext4_*`},
	{"ext*:f", `
'ext*' is not the name of a module
  ext*:f
  ^^^^
  only the function may have wildcards and dots: ext4:ext4_*`},
	{"return:f", `
the function is missing
  return:f
  ^^^^^^
  'return' belongs in the parentheses after a function name: vfs_read(return)`},
	{"tp:sched:sched_switch", `
a tracepoint is named without its group
  tp:sched:sched_switch
     ^^^^^
  write tp:sched_switch`},
	{"tp:syscalls:sys_enter_openat", `
a tracepoint is named without its group
  tp:syscalls:sys_enter_openat
     ^^^^^^^^
  write tp:sys_enter(id == 257), which is openat on amd64, or 56 on arm64`},
	{"tp:a:", `
a second ':'
  tp:a:
      ^`},
	{"tcp_[a-z", `
the '[' has no closing ']'
  tcp_[a-z
      ^`},
	{"tcp_[ab c]*", `
the '[' has no closing ']'
  tcp_[ab c]*
      ^`},
	{"tcp_[a b[c]", `
the '[' has no closing ']'
  tcp_[a b[c]
      ^`},
	{"tcp_[\x00[c]", `
U+0000 at position 6: a spec is plain ASCII text
  tcp_[?[c]
       ^`},
	{"tcp_[]", `
nothing is between '[' and ']'
  tcp_[]
      ^^`},
	{"tcp_[!]*", `
nothing is between '[' and ']'
  tcp_[!]*
      ^^^`},
	{"tcp_[^a]*", `
a '^' after '['
  tcp_[^a]*
      ^^^^
  everything but some is written [!a]`},
	{"tcp_[z-a]*", `
the range z-a is backwards
  tcp_[z-a]*
      ^^^^^`},
	{"tcp_]", `
expected '(', not ']'
  tcp_]
      ^`},
	{"tcp_ *", `
expected '(', not '*'
  tcp_ *
       ^
  there are no blanks in a name with wildcards`},
	{"f .cold", `
expected '(', not '.'
  f .cold
    ^
  values belong in parentheses, vfs_read(count > 5), or after 'if': vfs_read if count > 5`},
	{"foo.*..", `
'foo.*..' has a dot too many
  foo.*..
  ^^^^^^^`},
	{"f IF a", `
expected '(', not 'IF'
  f IF a
    ^^
  did you mean 'if'?`},
	{"f \"a\"", `
expected '(', not "a"
  f "a"
    ^^^`},

	// Values.
	{"f(a..b)", `
expected a member after '.', not '.'
  f(a..b)
      ^`},
	{"f(a.)", `
a member is missing after '.'
  f(a.)
      ^`},
	{"f(a.5)", `
expected a member after '.', not '5'
  f(a.5)
      ^`},
	{"f(a->b.)", `
a member is missing after '.'
  f(a->b.)
         ^`},
	{"f(a->*b)", `
expected a member after '->', not '*'
  f(a->*b)
       ^`},
	{"f(a[])", `
a number is missing after '['
  f(a[])
      ^`},
	{"f(a[)", `
expected a number after '[', not ')'
  f(a[)
      ^
  an index is constant: name[0]`},
	{"f(a[", `
a number is missing after '['
  f(a[
      ^`},
	{"f(a[i])", `
expected a number after '[', not 'i'
  f(a[i])
      ^
  an index is constant: name[0]`},
	{"f(a[-1])", `
expected a number after '[', not '-'
  f(a[-1])
      ^
  an index goes from 0 to 2147483648 (2^31)`},
	{"f(a[1)", `
']' is missing
  f(a[1)
       ^`},
	{"f(a[1", `
']' is missing
  f(a[1
       ^`},
	{"f(a[1+2])", `
expected ']', not '+'
  f(a[1+2])
       ^
  an index is constant: name[0]`},
	{"f(a[12:14])", `
expected ']', not ':'
  f(a[12:14])
        ^
  a range has two numbers: name[0..7]`},
	{"f(a[1 .. 3])", `
expected ']', not '.'
  f(a[1 .. 3])
        ^
  a range has two numbers: name[0..7]`},
	{"f(a[1-3])", `
expected ']', not '-'
  f(a[1-3])
       ^
  a range has two numbers: name[0..7]`},
	{"f(a[:3])", `
expected a number after '[', not ':'
  f(a[:3])
      ^
  a range has two numbers: name[0..7]`},
	{"f(a->b@4)", `
expected ',' or ')', not '@'
  f(a->b@4)
        ^
  elements are a range: a->b[0..7]`},
	{"f(a->b == htons(5))", `
expected ',' or ')', not '('
  f(a->b == htons(5))
                 ^
  write a->b:be == NUMBER`},
	{"f(count) if a->b != cpu_to_be16(5)", `
expected '&&', '||' or the end of the spec, not '('
  f(count) if a->b != cpu_to_be16(5)
                                 ^
  write a->b:be != NUMBER`},
	{"f(htons(a))", `
expected ',' or ')', not '('
  f(htons(a))
         ^
  a format comes after the value: count:be`},
	{"f(tcp_sk(sk)->snd_cwnd)", `
expected ',' or ')', not '('
  f(tcp_sk(sk)->snd_cwnd)
          ^
  write a cast: ((struct TYPE *)sk)`},
	{"f(a[1][2)", `
']' is missing
  f(a[1][2)
          ^`},
	{"f(a[08])", `
'08' is not a number
  f(a[08])
      ^^
  a leading 0 means octal; the decimal number is 8`},
	{"f(a['x'])", `
expected a number after '[', not 'x'
  f(a['x'])
      ^^^
  an index is constant: name[0]`},
	{"f(a[1ms])", `
'1ms' is not a number
  f(a[1ms])
      ^^^
  only $duration is compared with a time`},
	{"f(a[2147483649])", `
the index 2147483649 is out of range
  f(a[2147483649])
      ^^^^^^^^^^
  an index goes from 0 to 2147483648 (2^31)`},
	{"f(a[18446744073709551616])", `
'18446744073709551616' is out of range
  f(a[18446744073709551616])
      ^^^^^^^^^^^^^^^^^^^^
  constants go from -9223372036854775808 (-2^63) to 18446744073709551615 (2^64-1)`},
	{"f(*)", `
a value is missing after '*'
  f(*)
     ^`},
	{"f(*, a)", `
a value is missing after '*'
  f(*, a)
     ^`},
	{"f(*5)", `
expected a value, not '5'
  f(*5)
     ^
  a constant comes after an operator: count > 5`},
	{"f(a*)", `
a value is missing after '*'
  f(a*)
      ^`},
	{"f(a / 2 > 5)", `
expected ',' or ')', not '/'
  f(a / 2 > 5)
      ^
  the operators are + - * & | << >>, and x >> 10 is x / 1024`},
	{"f(())", `
a value is missing after '('
  f(())
     ^`},
	{"f((a", `
')' is missing
  f((a
      ^`},
	{"f((a, b))", `
expected ')', not ','
  f((a, b))
      ^`},
	{"f((a > 5))", `
a comparison inside a value
  f((a > 5))
       ^
  leave out the parentheses around it, or write it after 'if'`},
	{"f((a:x))", `
a format inside a value
  f((a:x))
      ^
  it comes after the parentheses: (a):x`},
	{"f((5))", `
expected a value, not '5'
  f((5))
     ^
  a constant comes after an operator: count > 5`},
	{"f(a(b))", `
expected ',' or ')', not '('
  f(a(b))
     ^
  there are no functions but the aggregates count sum avg min max hist lhist`},
	{"f($)", `
a name is missing after '$'
  f($)
     ^
  there are $comm $pid $tid $cpu $uid $cgroup $container $arg1 $arg2 ... $retval $duration $kstack $ustack $task $ppid`},
	{"f($ )", `
a name is missing after '$'
  f($ )
      ^
  there are $comm $pid $tid $cpu $uid $cgroup $container $arg1 $arg2 ... $retval $duration $kstack $ustack $task $ppid`},
	{"f($com)", `
'$com' is not known
  f($com)
    ^^^^
  did you mean '$comm'?`},
	{"f($cpuid)", `
'$cpuid' is not known
  f($cpuid)
    ^^^^^^
  did you mean '$cpu'?`},
	{"f($nothing)", `
'$nothing' is not known
  f($nothing)
    ^^^^^^^^
  there are $comm $pid $tid $cpu $uid $cgroup $container $arg1 $arg2 ... $retval $duration $kstack $ustack $task $ppid`},
	{"f($arg)", `
$arg without a number
  f($arg)
    ^^^^
  the first argument is $arg1`},
	{"f($arg0)", `
arguments are counted from 1
  f($arg0)
    ^^^^^
  the first argument is $arg1`},
	{"f($arg01)", `
$arg01 is out of range
  f($arg01)
    ^^^^^^
  arguments are $arg1 to $arg255`},
	{"f($arg256)", `
$arg256 is out of range
  f($arg256)
    ^^^^^^^
  arguments are $arg1 to $arg255`},
	{"f($args)", `
'$args' is not known
  f($args)
    ^^^^^
  did you mean '$arg1'?`},
	{"f($5)", `
'$5' is not known
  f($5)
    ^^
  there are $comm $pid $tid $cpu $uid $cgroup $container $arg1 $arg2 ... $retval $duration $kstack $ustack $task $ppid`},
	{"f($$pid)", `
a name is missing after '$'
  f($$pid)
     ^
  there are $comm $pid $tid $cpu $uid $cgroup $container $arg1 $arg2 ... $retval $duration $kstack $ustack $task $ppid`},
	{"f($PID == 5)", `
'$PID' is not known
  f($PID == 5)
    ^^^^
  did you mean '$pid'?`},
	{"f(@)", `
the name of a variable is missing after '@'
  f(@)
     ^`},
	{"f(@5)", `
expected the name of a variable after '@', not '5'
  f(@5)
     ^
  an address has no type; name the variable: @jiffies`},
	{"f(@0xffffffff81000000)", `
expected the name of a variable after '@', not '0xffffffff81000000'
  f(@0xffffffff81000000)
     ^^^^^^^^^^^^^^^^^^
  an address has no type; name the variable: @jiffies`},
	{"f(@@a)", `
the name of a variable is missing after '@'
  f(@@a)
     ^`},
	{"f(if)", `
a value is missing before 'if'
  f(if)
    ^^`},
	{"f(a, if)", `
a value is missing before 'if'
  f(a, if)
       ^^`},
	{"f(int)", `
'int' begins a type
  f(int)
    ^^^
  an argument is named without its type; a cast has parentheses: (struct sock *)sk`},
	{"f(struct sock *sk)", `
'struct' begins a type
  f(struct sock *sk)
    ^^^^^^
  an argument is named without its type; a cast has parentheses: (struct sock *)sk`},
	{"f(const a)", `
'const' begins a type
  f(const a)
    ^^^^^
  an argument is named without its type; a cast has parentheses: (struct sock *)sk`},
	{"f(unsigned long a, b)", `
'unsigned' begins a type
  f(unsigned long a, b)
    ^^^^^^^^
  an argument is named without its type; a cast has parentheses: (struct sock *)sk`},

	// Casts.
	{"f((struct)a)", `
a name is missing after 'struct'
  f((struct)a)
           ^`},
	{"f((struct *)a)", `
a name is missing after 'struct'
  f((struct *)a)
            ^`},
	{"f((struct int *)a)", `
a name is missing after 'struct'
  f((struct int *)a)
            ^^^`},
	{"f((struct foo bar *)a)", `
'bar' after the type 'struct foo'
  f((struct foo bar *)a)
                ^^^`},
	{"f((const)a)", `
a type is missing after 'const'
  f((const)a)
          ^`},
	{"f((foo bar *)a)", `
'bar' after the type 'foo'
  f((foo bar *)a)
         ^^^`},
	{"f((foo bar)a)", `
'bar' after the type 'foo'
  f((foo bar)a)
         ^^^`},
	{"f((unsigned u32)a)", `
'u32' after the type 'unsigned'
  f((unsigned u32)a)
              ^^^`},
	{"f((struct foo *))", `
a value is missing after the cast '(struct foo *)'
  f((struct foo *))
                  ^`},
	{"f((struct foo *)", `
a value is missing after the cast '(struct foo *)'
  f((struct foo *)
                  ^`},
	{"f((struct foo *", `
')' is missing after the type
  f((struct foo *
                 ^`},
	{"f((struct foo *, a)", `
')' is missing after the type
  f((struct foo *, a)
                 ^`},
	{"f((struct foo *a))", `
expected ')' after the type, not 'a'
  f((struct foo *a))
                 ^`},
	{"f((struct foo[3)a)", `
']' is missing
  f((struct foo[3)a)
                 ^`},
	{"f((struct foo[0])a)", `
an array of no elements
  f((struct foo[0])a)
                ^`},
	{"f((struct foo[])a)", `
a number is missing after '['
  f((struct foo[])a)
                ^`},
	{"f(a[5..3])", `
the range 5..3 ends before it begins
  f(a[5..3])
      ^^^^`},
	{"f(a[5..])", `
'5..' is not a range
  f(a[5..])
      ^^^
  a range has two numbers: name[0..7]`},
	{"f(a[0..99999999999])", `
the index 99999999999 is out of range
  f(a[0..99999999999])
         ^^^^^^^^^^^
  an index goes from 0 to 2147483648 (2^31)`},
	{"f((int (*)(int))a)", `
expected ')' after the type, not '('
  f((int (*)(int))a)
         ^
  the type of a cast is a name, perhaps with '*' after it`},
	{"f((int)5)", `
a value is missing after the cast '(int)'
  f((int)5)
         ^
  a constant has no type of its own; it comes after an operator: count > 5`},
	{"f((u8)5 == a)", `
expected an operator, ',' or ')', not '5'
  f((u8)5 == a)
        ^`},
	{"f((int) > 5)", `
a value is missing after the cast '(int)'
  f((int) > 5)
          ^`},
	{"f(a == (u8)5)", `
expected a constant after '==', not '('
  f(a == (u8)5)
         ^
  a constant is written without parentheses and casts`},
	{"f((foo *))", `
a value is missing after the cast '(foo *)'
  f((foo *))
           ^`},

	// Formats.
	{"f(a:)", `
a format is missing after ':'
  f(a:)
      ^
  the formats are x d u c string ustring symbol path ip ip4 ip6 mac errno be x8 x16 x32 x64 u8 u16 u32 u64 s8 s16 s32 s64`},
	{"f(a:", `
a format is missing after ':'
  f(a:
      ^
  the formats are x d u c string ustring symbol path ip ip4 ip6 mac errno be x8 x16 x32 x64 u8 u16 u32 u64 s8 s16 s32 s64`},
	{"f(a:, b)", `
a format is missing after ':'
  f(a:, b)
      ^
  the formats are x d u c string ustring symbol path ip ip4 ip6 mac errno be x8 x16 x32 x64 u8 u16 u32 u64 s8 s16 s32 s64`},
	{"f(a: == 5)", `
a format is missing after ':'
  f(a: == 5)
       ^^
  the formats are x d u c string ustring symbol path ip ip4 ip6 mac errno be x8 x16 x32 x64 u8 u16 u32 u64 s8 s16 s32 s64`},
	{"f(a:hex)", `
'hex' is not a format
  f(a:hex)
      ^^^
  did you mean 'x'?`},
	{"f(a:p)", `
'p' is not a format
  f(a:p)
      ^
  did you mean 'x'?`},
	{"f(a:s)", `
's' is not a format
  f(a:s)
      ^
  did you mean 'string'?`},
	{"f(a:xyz9)", `
'xyz9' is not a format
  f(a:xyz9)
      ^^^^
  the formats are x d u c string ustring symbol path ip ip4 ip6 mac errno be x8 x16 x32 x64 u8 u16 u32 u64 s8 s16 s32 s64`},

	// Words of bpftrace and others.
	{"kprobe:vfs_read", `
'kprobe' is not a module: a function is named by itself, and ksnoop chooses how to attach to it
  kprobe:vfs_read
  ^^^^^^
  write vfs_read; --attach kprobe forces that kind`},
	{"kretprobe:vfs_read", `
'kretprobe' is not a module: a function is named by itself, and ksnoop chooses how to attach to it
  kretprobe:vfs_read
  ^^^^^^^^^
  write vfs_read(return); --attach kprobe forces that kind`},
	{"fentry:vfs_*(count > 5)", `
'fentry' is not a module: a function is named by itself, and ksnoop chooses how to attach to it
  fentry:vfs_*(count > 5)
  ^^^^^^
  write vfs_*; --attach fentry forces that kind`},
	{"kfunc:ext4:ext4_sync_file", `
'kfunc' is not a module: a function is named by itself, and ksnoop chooses how to attach to it
  kfunc:ext4:ext4_sync_file
  ^^^^^
  write ext4_sync_file; --attach fentry forces that kind`},
	{"tracepoint:sched:sched_switch", `
'tracepoint' is not a module: a tracepoint is named by itself after tp:
  tracepoint:sched:sched_switch
  ^^^^^^^^^^
  write tp:sched_switch`},
	{"rawtracepoint:sched_switch", `
'rawtracepoint' is not a module: a tracepoint is named by itself after tp:
  rawtracepoint:sched_switch
  ^^^^^^^^^^^^^
  write tp:sched_switch`},
	{"tracepoint:syscalls:sys_enter_openat", `
'tracepoint' is not a module: a tracepoint is named by itself after tp:
  tracepoint:syscalls:sys_enter_openat
  ^^^^^^^^^^
  write tp:sys_enter(id == 257), which is openat on amd64, or 56 on arm64`},
	{"t:syscalls:sys_enter_openat2", `
't' is not a module: a tracepoint is named by itself after tp:
  t:syscalls:sys_enter_openat2
  ^
  write tp:sys_enter(id == 437), which is openat2`},
	{"uprobe:main", `
'uprobe' is not a module
  uprobe:main
  ^^^^^^
  a spec names a function or a tracepoint of the kernel; nothing else is traced`},
	{"kprobe:", `
a name is missing after ':'
  kprobe:
         ^`},
	{"f(a | b == 3)", `
in C this '==' belongs to 'b' alone
  f(a | b == 3)
          ^^
  write (a | b) == ...`},
	{"f if !a + b", `
in C this '!' belongs to 'a' alone
  f if !a + b
       ^
  write !(a + b)`},
	{"f(a == b | c)", `
expected ',' or ')', not '|'
  f(a == b | c)
           ^
  conditions with '||' come after 'if': vfs_read(count) if count > 5 || count == 1`},
	{"f(a > 64KiB)", `
'64KiB' is not a number
  f(a > 64KiB)
        ^^^^^
  did you mean '64K'?`},
	{"f(a > 1.5M)", `
'1.5M' is not a number
  f(a > 1.5M)
        ^^^^
  a size is a whole number: 1536K is 1.5 times 1M`},
	{"f(a > 0o)", `
'0o' is not a number
  f(a > 0o)
        ^^
  octal digits belong after 0o`},
	{"f($duration > 2M)", `
'2M' is not a number
  f($duration > 2M)
                ^^
  did you mean '2m'?`},
	{"f(a > 17179869184G)", `
'17179869184G' is out of range
  f(a > 17179869184G)
        ^^^^^^^^^^^^
  constants go from -9223372036854775808 (-2^63) to 18446744073709551615 (2^64-1)`},
	{"f(a:strng)", `
'strng' is not a format
  f(a:strng)
      ^^^^^
  did you mean 'string'?`},
	{"f(a:x128)", `
'x128' is not a format
  f(a:x128)
      ^^^^
  did you mean 'x8'?`},
	{"f(a:ipv4)", `
'ipv4' is not a format
  f(a:ipv4)
      ^^^^
  did you mean 'ip4'?`},
	{"f(a:X)", `
'X' is not a format
  f(a:X)
      ^
  did you mean 'x'?`},
	{"f(a:16)", `
expected a format after ':', not '16'
  f(a:16)
      ^^
  the formats are x d u c string ustring symbol path ip ip4 ip6 mac errno be x8 x16 x32 x64 u8 u16 u32 u64 s8 s16 s32 s64`},
	{"f(a:%x)", `
expected a format after ':', not '%'
  f(a:%x)
      ^
  the formats are x d u c string ustring symbol path ip ip4 ip6 mac errno be x8 x16 x32 x64 u8 u16 u32 u64 s8 s16 s32 s64`},
	{"f(a:x:d)", `
expected ',' or ')', not ':'
  f(a:x:d)
       ^
  a value has one format`},
	{"f(a > 5:x)", `
expected ',' or ')', not ':'
  f(a > 5:x)
         ^
  a format comes after the value: count:x > 5`},
	{"f(:x)", `
expected a value, not ':'
  f(:x)
    ^`},

	// Strings, characters and patterns.
	{`f(a == "abc`, `
the string has no closing "
  f(a == "abc
         ^`},
	{`f(a == "abc)`, `
the string has no closing "
  f(a == "abc)
         ^`},
	{`f(a == "abc\")`, `
the string has no closing "
  f(a == "abc\")
         ^`},
	{`f(a == 'x)`, `
the character has no closing '
  f(a == 'x)
         ^`},
	{`f(a's)`, `
the character has no closing '
  f(a's)
     ^`},
	{`f(a == 'ab')`, `
'ab' is more than one character
  f(a == 'ab')
         ^^^^
  a string is written with double quotes: "ab"`},
	{`f(a == 'eth0')`, `
'eth0' is more than one character
  f(a == 'eth0')
         ^^^^^^
  a string is written with double quotes: "eth0"`},
	{`f(a == '')`, `
a character is missing between the quotes
  f(a == '')
         ^^
  the empty string is written ""`},
	{`f(a == '\')`, `
the character has no closing '
  f(a == '\')
         ^`},
	{`f(a == '\q')`, `
'\q' is not an escape
  f(a == '\q')
          ^^
  the escapes are \n \t \0 \\ \' \" and \xNN; a backslash is written \\`},
	{`f(a == '\012')`, `
'\012' is more than one character
  f(a == '\012')
         ^^^^^^
  a character is written by its number in hexadecimal: '\x0a'`},
	{`f(a == "\q")`, `
'\q' is not an escape
  f(a == "\q")
          ^^
  the escapes are \n \t \0 \\ \' \" and \xNN; a backslash is written \\`},
	{`f(a == "\x4")`, `
\x needs two hexadecimal digits
  f(a == "\x4")
          ^^^`},
	{`f(a == "\xzz")`, `
\x needs two hexadecimal digits
  f(a == "\xzz")
          ^^^^`},
	{`f(a == '\x')`, `
\x needs two hexadecimal digits
  f(a == '\x')
          ^^`},
	{`f(a == "a\0")`, `
a string in the kernel ends before its first zero byte
  f(a == "a\0")
           ^^`},
	{`f(a == "\tlo\x00b")`, `
a string in the kernel ends before its first zero byte
  f(a == "\tlo\x00b")
              ^^^^`},
	{"f(a == \"a\tb\")", `
U+0009 at position 10: a spec is plain ASCII text
  f(a == "a b")
           ^
  in quotes it is written \t`},
	{"f(a == \"a\nb\")", `
U+000A at position 10: a spec is plain ASCII text
  f(a == "a b")
           ^
  in quotes it is written \n`},
	{"f(a == \"\u00e9\")", `
U+00E9 at position 9: a spec is plain ASCII text
  f(a == "?")
          ^
  in quotes it is written \xc3\xa9`},
	{"f(a == \"\u2013\")", `
U+2013 at position 9: a spec is plain ASCII text
  f(a == "?")
          ^
  in quotes it is written \xe2\x80\x93`},
	{"f(a == \"\\\u00e9\")", `
U+00E9 at position 10: a spec is plain ASCII text
  f(a == "\?")
           ^
  in quotes it is written \xc3\xa9`},
	{"f(a == \u201clo\u201d)", `
U+201C at position 8: a spec is plain ASCII text
  f(a == ?lo?)
         ^
  write "`},
	{`f(a == -"lo")`, `
expected a number after '-', not "lo"
  f(a == -"lo")
          ^^^^`},
	{`f(a == -'x')`, `
expected a number after '-', not 'x'
  f(a == -'x')
          ^^^`},
	{`f(a == "a" "b")`, `
expected ',' or ')', not "b"
  f(a == "a" "b")
             ^^^`},
	{`f(a "b")`, `
expected an operator, ',' or ')', not "b"
  f(a "b")
      ^^^`},
	{`f("lo" == a)`, `
expected a value, not "lo"
  f("lo" == a)
    ^^^^
  a constant comes after an operator: count > 5`},
	{`f('x')`, `
expected a value, not 'x'
  f('x')
    ^^^
  a constant comes after an operator: count > 5`},
	{`f(a ~)`, `
a pattern is missing after '~'
  f(a ~)
       ^
  it is a string: name ~ "eth*"`},
	{`f(a ~`, `
a pattern is missing after '~'
  f(a ~
       ^
  it is a string: name ~ "eth*"`},
	{`f(a ~ eth*)`, `
expected a string after '~', not 'eth'
  f(a ~ eth*)
        ^^^
  write "eth*"`},
	{`f(a ~ 5)`, `
expected a string after '~', not '5'
  f(a ~ 5)
        ^
  write "5"`},
	{`f(a ~ 'e*')`, `
expected a string after '~', not 'e*'
  f(a ~ 'e*')
        ^^^^
  a pattern is a string: name ~ "eth*"`},
	{`f(a ~ /eth/)`, `
'/' is not part of the spec language
  f(a ~ /eth/)
        ^
  a pattern is a string: name ~ "eth*"`},
	{`f(a ~= "eth*")`, `
expected a string after '~', not '='
  f(a ~= "eth*")
       ^
  a pattern is a string: name ~ "eth*"`},
	{`f(a =~ "eth*")`, `
'=' is not a comparison
  f(a =~ "eth*")
      ^
  a string is matched with '~'`},
	{`f(a !~ "eth*")`, `
'!' is not a comparison
  f(a !~ "eth*")
      ^
  what does not match is written !(name ~ "eth*")`},
	{`f(a ~ "eth[0-9")`, `
the '[' has no closing ']'
  f(a ~ "eth[0-9")
            ^`},
	{`f(a ~ "\x41\n[")`, `
the '[' has no closing ']'
  f(a ~ "\x41\n[")
               ^`},
	{`f(a ~ "[]")`, `
nothing is between '[' and ']'
  f(a ~ "[]")
         ^^`},
	{`f(a ~ "[^0]")`, `
a '^' after '['
  f(a ~ "[^0]")
         ^^^^
  everything but some is written [!0]`},
	{`f(a ~ "x[9-0]")`, `
the range 9-0 is backwards
  f(a ~ "x[9-0]")
          ^^^^^`},
	{`f(a ~ "eth\\")`, `
nothing follows the last \ of the pattern
  f(a ~ "eth\\")
            ^^`},
	{`f(a ~ "0123456789012345678901234567890123456789012345678901234567890")`, `
a pattern of 61 elements is longer than the limit (60)
  f(a ~ "0123456789012345678901234567890123456789012345678901234567890")
        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^`},

	// Durations.
	{"f($duration > 10sec)", `
'10sec' is not a number
  f($duration > 10sec)
                ^^^^^
  did you mean '10s'?`},
	{"f($duration > 1.5seconds)", `
'1.5seconds' is not a number
  f($duration > 1.5seconds)
                ^^^^^^^^^^
  did you mean '1.5s'?`},
	{"f($duration > 10S)", `
'10S' is not a number
  f($duration > 10S)
                ^^^
  did you mean '10s'?`},
	{"f($duration > 5min)", `
'5min' is not a number
  f($duration > 5min)
                ^^^^
  did you mean '5m'?`},
	{"f($duration > 10 ms)", `
expected ',' or ')', not 'ms'
  f($duration > 10 ms)
                   ^^
  there is no blank before a unit: 10ms`},
	{"f($duration > 1h30m)", `
'1h30m' is not a number
  f($duration > 1h30m)
                ^^^^^
  a time has one number, perhaps with a fraction, and one unit: 1.5s`},
	{"f($duration > .5s)", `
expected a constant after '>', not '.'
  f($duration > .5s)
                ^
  a fraction begins with a digit: 0.5s`},
	{"f($duration > 1.s)", `
'1.s' is not a number
  f($duration > 1.s)
                ^^^
  a time has one number, perhaps with a fraction, and one unit: 1.5s`},
	{"f($duration > 1.2.3s)", `
'1.2.3s' is not a number
  f($duration > 1.2.3s)
                ^^^^^^
  a time has one number, perhaps with a fraction, and one unit: 1.5s`},
	{"f($duration > 0.5)", `
'0.5' is not a number
  f($duration > 0.5)
                ^^^
  constants are integers`},
	{"f($duration > 0x10ms)", `
'0x10ms' is not a number
  f($duration > 0x10ms)
                ^^^^^^`},
	{"f($duration > -5ms)", `
a duration has no sign
  f($duration > -5ms)
                ^^^^
  write 5ms`},
	{"f($duration > + 5ms)", `
a duration has no sign
  f($duration > + 5ms)
                ^^^^^
  write 5ms`},
	{"f($duration > 1.5ns)", `
'1.5ns' is not a whole number of nanoseconds
  f($duration > 1.5ns)
                ^^^^^`},
	{"f($duration > 0.0000000001s)", `
'0.0000000001s' is not a whole number of nanoseconds
  f($duration > 0.0000000001s)
                ^^^^^^^^^^^^^`},
	{"f($duration > 5200000h)", `
'5200000h' is out of range
  f($duration > 5200000h)
                ^^^^^^^^
  durations go up to 18446744073709551615 (2^64-1) nanoseconds, 584 years`},
	{"f($duration > 2d)", `
'2d' is not a number
  f($duration > 2d)
                ^^
  hexadecimal is written 0x2d`},
	{"f($duration > 10\u00b5s)", `
U+00B5 at position 17: a spec is plain ASCII text
  f($duration > 10?s)
                  ^
  write u`},

	// Conditions.
	{"vfs_read count > 5", `
expected '(', not 'count'
  vfs_read count > 5
           ^^^^^
  values belong in parentheses, vfs_read(count > 5), or after 'if': vfs_read if count > 5`},
	{"f(a) if", `
a condition is missing after 'if'
  f(a) if
         ^`},
	{"f if", `
a condition is missing after 'if'
  f if
      ^`},
	{"f if,", `
a condition is missing after 'if'
  f if,
      ^`},
	{"f if ()", `
a condition is missing after '('
  f if ()
        ^`},
	{"f if (a", `
')' is missing
  f if (a
         ^`},
	{"f if (", `
a condition is missing after '('
  f if (
        ^`},
	{"f if (a > 5", `
')' is missing
  f if (a > 5
             ^`},
	{"f if a)", `
')' without a '(' before it
  f if a)
        ^`},
	{"f if (a))", `
')' without a '(' before it
  f if (a))
          ^`},
	{"f if a &&", `
a condition is missing after '&&'
  f if a &&
           ^`},
	{"f if a && && b", `
a condition is missing after '&&'
  f if a && && b
            ^^`},
	{"f if (a ||)", `
a condition is missing after '||'
  f if (a ||)
            ^`},
	{"f if || a", `
a condition is missing after 'if'
  f if || a
       ^^`},
	{"f if !", `
a condition is missing after '!'
  f if !
        ^`},
	{"f if !)", `
a condition is missing after '!'
  f if !)
        ^`},
	{"f if a == ", `
a constant is missing after '=='
  f if a ==
           ^`},
	{"f if a == && b", `
a constant is missing after '=='
  f if a == && b
            ^^`},
	{"f if a = 5", `
'=' is not a comparison
  f if a = 5
         ^
  did you mean '=='?`},
	{"f if a == 5 y", `
expected '&&', '||' or the end of the spec, not 'y'
  f if a == 5 y
              ^`},
	{"f if a == 5 6", `
expected '&&', '||' or the end of the spec, not '6'
  f if a == 5 6
              ^
  there are no blanks in a number`},
	{"f if a == 5, b", `
expected '&&', '||' or the end of the spec, not ','
  f if a == 5, b
             ^
  did you mean '&&'?`},
	{"f if a == 5 == b", `
a second comparison of one value
  f if a == 5 == b
              ^^
  repeat the value: a == 5 && a == ...`},
	{"f if a == b == c", `
a second comparison of one value
  f if a == b == c
              ^^
  repeat the value: a == b && a == ...`},
	{"f if a < 5 < b", `
a second comparison of one value
  f if a < 5 < b
             ^
  repeat the value: a < 5 && a < ...`},
	{"f if a & 4 == 4", `
a second comparison of one value
  f if a & 4 == 4
             ^^
  a condition with '&' holds if both have a bit in common; it gives no value to compare`},
	{"f if a == 4 & 4", `
a second comparison of one value
  f if a == 4 & 4
              ^
  a condition with '&' holds if both have a bit in common; it gives no value to compare`},
	{"f if a == (5)", `
expected a constant after '==', not '('
  f if a == (5)
            ^
  a constant is written without parentheses and casts`},
	{"f if a == +EAGAIN", `
expected a number after '+', not 'EAGAIN'
  f if a == +EAGAIN
             ^^^^^^
  leave out the '+'`},
	{"f if a == 5 || 6", `
expected a value, not '6'
  f if a == 5 || 6
                 ^
  repeat the value: a == 5 || a == 6`},
	{"f if a == 5 || == 6", `
a value is missing before '=='
  f if a == 5 || == 6
                 ^^
  repeat the value: a == 5 || a == ...`},
	{"f if a > 5 && < 9", `
a value is missing before '<'
  f if a > 5 && < 9
                ^
  repeat the value: a > 5 && a < ...`},
	{"f if 5 < a", `
expected a value, not '5'
  f if 5 < a
       ^
  a constant comes after an operator: count > 5`},
	{"f if 5", `
expected a value, not '5'
  f if 5
       ^
  a constant comes after an operator: count > 5`},
	{"f if a and b", `
expected '&&', '||' or the end of the spec, not 'and'
  f if a and b
         ^^^
  did you mean '&&'?`},
	{"f if a > 5 AND b", `
expected '&&', '||' or the end of the spec, not 'AND'
  f if a > 5 AND b
             ^^^
  did you mean '&&'?`},
	{"f if a or b", `
expected '&&', '||' or the end of the spec, not 'or'
  f if a or b
         ^^
  did you mean '||'?`},
	{"f if not a", `
expected '&&', '||' or the end of the spec, not 'a'
  f if not a
           ^
  did you mean '!'? it comes before a condition: !(a == 5)`},
	{"f if not (a)", `
expected '&&', '||' or the end of the spec, not '('
  f if not (a)
           ^
  did you mean '!'? it comes before a condition: !(a == 5)`},
	{"f if a % 2 == 0", `
expected '&&', '||' or the end of the spec, not '%'
  f if a % 2 == 0
         ^
  the operators are + - * & | << >>, and x >> 10 is x / 1024`},
	{"f if a ^ b", `
expected '&&', '||' or the end of the spec, not '^'
  f if a ^ b
         ^
  the operators are + - * & | << >>, and x >> 10 is x / 1024`},
	{"f if a ? b", `
'?' is not part of the spec language
  f if a ? b
         ^
  there is no '?:'; a condition comes after 'if', as in vfs_read(count) if count > 5`},
	{"f if &a", `
a value is missing before '&'
  f if &a
       ^
  the address of something is not a value`},
	{"f if a &= 4", `
expected a constant after '&', not '='
  f if a &= 4
          ^
  there are no assignments`},
	{"f if a & == 4", `
expected a constant after '&', not '=='
  f if a & == 4
           ^^`},
	{"f if a &", `
a constant is missing after '&'
  f if a &
          ^`},
	{"f if !a == 5", `
in C this '!' belongs to 'a' alone
  f if !a == 5
       ^
  write !(a == 5)`},
	{"f if !(a) > 5", `
in C this '!' belongs to 'a' alone
  f if !(a) > 5
       ^
  write !(a > 5)`},
	{"f if !!a & 4", `
in C this '!' belongs to 'a' alone
  f if !!a & 4
        ^
  write !(a & 4)`},
	{`f if !a ~ "x"`, `
in C this '!' belongs to 'a' alone
  f if !a ~ "x"
       ^
  write !(a ~ "x")`},
	{"f if !=a", `
a value is missing before '!='
  f if !=a
       ^^`},
	{"f if a == !b", `
expected a constant after '==', not '!'
  f if a == !b
            ^`},
	{"f if a !", `
'!' is not a comparison
  f if a !
         ^
  did you mean '!='?`},
	{"f if -a", `
expected a value, not '-'
  f if -a
       ^
  a value has no sign; write 0 - count`},
	{"f if (a > 5)->b", `
'->' after a condition
  f if (a > 5)->b
              ^^
  a condition holds or not; only a value can be compared or have members`},
	{"f if (a && b) == 5", `
'==' after a condition
  f if (a && b) == 5
                ^^
  a condition holds or not; only a value can be compared or have members`},
	{"f if (a || b):x", `
':' after a condition
  f if (a || b):x
               ^
  a condition holds or not; only a value can be compared or have members`},
	{"f if (a:x) > 5", `
'>' after a condition
  f if (a:x) > 5
             ^
  a condition holds or not; only a value can be compared or have members`},
	{"f if *(a > 5)", `
a comparison where a value belongs
  f if *(a > 5)
           ^`},
	{"f if a b", `
expected '&&', '||' or the end of the spec, not 'b'
  f if a b
         ^`},
	{"f if a 5", `
expected an operator, '&&', '||' or the end of the spec, not '5'
  f if a 5
         ^`},
	{"f if a[0", `
']' is missing
  f if a[0
          ^`},
	{"f if a->", `
a member is missing after '->'
  f if a->
          ^`},
	{"f if a->b->&& c", `
a member is missing after '->'
  f if a->b->&& c
             ^^`},
	{"f if a if b", `
a second 'if'
  f if a if b
         ^^
  join the conditions with '&&'`},
	{"f if if", `
a condition is missing after 'if'
  f if if
       ^^`},
	{"f(a if a)", `
expected ',' or ')', not 'if'
  f(a if a)
      ^^
  'if' comes after the closing ')'`},
	{"f(a) where a > 5", `
'where' after the closing ')'
  f(a) where a > 5
       ^^^^^
  a condition begins with 'if': vfs_read(count) if count > 5`},
	{"f(a) && b", `
'&&' after the closing ')'
  f(a) && b
       ^^
  a condition begins with 'if': vfs_read(count) if count > 5`},
	{"f(a) and b", `
'and' after the closing ')'
  f(a) and b
       ^^^
  a condition begins with 'if': vfs_read(count) if count > 5`},
	{"f(a) If b", `
'If' after the closing ')'
  f(a) If b
       ^^
  a condition begins with 'if': vfs_read(count) if count > 5`},
	{"f if a; b", `
';' is not part of the spec language
  f if a; b
        ^
  separate values with ',', and quote each function with its values`},
	{"f if a:x:d", `
expected '&&', '||' or the end of the spec, not ':'
  f if a:x:d
          ^
  a value has one format`},
	{"f if a == 5:x", `
expected '&&', '||' or the end of the spec, not ':'
  f if a == 5:x
             ^
  a format comes after the value: count:x > 5`},
	{"f if a(b)", `
expected '&&', '||' or the end of the spec, not '('
  f if a(b)
        ^
  there are no functions`},
	{"f if (struct sock)", `
a value is missing after the cast '(struct sock)'
  f if (struct sock)
                    ^`},
	{"f if (a b) == 5", `
expected '&&', '||' or ')', not 'b'
  f if (a b) == 5
          ^`},
	{"f if a, b", `
expected '&&', '||' or the end of the spec, not ','
  f if a, b
        ^
  did you mean '&&'?`},
	{"f if a == 'xy'", `
'xy' is more than one character
  f if a == 'xy'
            ^^^^
  a string is written with double quotes: "xy"`},
	{"f if a == \"x", `
the string has no closing "
  f if a == "x
            ^`},
	{"f(a == 5 || b)", `
expected ',' or ')', not '||'
  f(a == 5 || b)
           ^^
  conditions with '||' come after 'if': vfs_read(count) if count > 5 || count == 1`},
	{"f(a and b)", `
expected ',' or ')', not 'and'
  f(a and b)
      ^^^
  separate comparisons with ','; all of them must hold`},
	{"f(a or b)", `
expected ',' or ')', not 'or'
  f(a or b)
      ^^
  conditions with '||' come after 'if': vfs_read(count) if count > 5 || count == 1`},
	{"f if *()", `
a value is missing after '('
  f if *()
         ^`},
	{"f if (u8)()", `
a value is missing after '('
  f if (u8)()
            ^`},
	{"f if $duration > 10 ms", `
expected '&&', '||' or the end of the spec, not 'ms'
  f if $duration > 10 ms
                      ^^
  there is no blank before a unit: 10ms`},
	{"f(a == \u2018x\u2019)", `
U+2018 at position 8: a spec is plain ASCII text
  f(a == ?x?)
         ^
  write '`},

	// Not plain text.
	{"f(a\x00)", `
U+0000 at position 4: a spec is plain ASCII text
  f(a?)
     ^`},
	{"f(\x1b[31ma)", `
U+001B at position 3: a spec is plain ASCII text
  f(?[31ma)
    ^`},
	{"f(a\x7f)", `
U+007F at position 4: a spec is plain ASCII text
  f(a?)
     ^`},
	{"f(a\xff)", `
byte 0xff at position 4: a spec is plain ASCII text
  f(a?)
     ^`},
	{"vfs_réad", `
U+00E9 at position 6: a spec is plain ASCII text
  vfs_r?ad
       ^`},
	{"f(世界, b)", `
U+4E16 at position 3: a spec is plain ASCII text
  f(??, b)
    ^`},
	{"f(a – 5)", `
U+2013 at position 5: a spec is plain ASCII text
  f(a ? 5)
      ^
  write -`},
	{"f(a ≥ 5)", `
U+2265 at position 5: a spec is plain ASCII text
  f(a ? 5)
      ^
  write >=`},
	{"f(a→b)", `
U+2192 at position 4: a spec is plain ASCII text
  f(a?b)
     ^
  write ->`},
	{"f(a\u00a0> 5)", `
U+00A0 at position 4: a spec is plain ASCII text
  f(a > 5)
     ^
  write a plain blank`},
	{"\ufefff(a)", `
U+FEFF at position 1: a spec is plain ASCII text
  ?f(a)
  ^`},
	{"f(\u202ea)", `
U+202E at position 3: a spec is plain ASCII text
  f(?a)
    ^`},

	// White space of any kind is printed as one blank.
	{"f(a\n\t= 5)", `
'=' is not a comparison
  f(a  = 5)
       ^
  did you mean '=='?`},
	{"f(a,\r\n\vb = 5)\n", `
'=' is not a comparison
  f(a,   b = 5)
           ^
  did you mean '=='?`},
}

func TestRefuse(t *testing.T) {
	for _, test := range refused {
		trace, err := Parse(test.spec)
		require.Nil(t, trace, test.spec)
		require.IsType(t, (*Error)(nil), err, test.spec)
		require.Equal(t, test.want[1:], err.Error(), test.spec)
	}
}
