package kprobe

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler/spec"
)

// refused has invalid lines with the whole error message.
var refused = []struct{ line, want string }{
	// The kind of probe or the place is missing.
	{``, `
the line is empty
  name a place, for example p vfs_read`},
	{`   `, `
the line is empty
  name a place, for example p vfs_read`},
	{`x vfs_read`, `
'x' is not a kind of probe
  x vfs_read
  ^
  a line begins with p, r, f or t, and ':' and a name for the event: p:name`},
	{`vfs_read`, `
'vfs_read' is not a kind of probe
  vfs_read
  ^^^^^^^^
  a line begins with p, r, f or t, and ':' and a name for the event: p:name`},
	{`-:ev`, `
there is nothing to delete on a command line
  -:ev
  ^^^^
  -:EVENT removes an earlier line of a file`},
	{`e:x sched.sched_switch`, `
probes on events of other probes are not supported
  e:x sched.sched_switch
  ^^^
  trace the tracepoint or function itself: t:name sched_switch`},
	{`e sched/sched_switch`, `
probes on events of other probes are not supported
  e sched/sched_switch
  ^
  trace the tracepoint or function itself: t:name sched_switch`},
	{`p`, `
the place of the probe is missing
  p
   ^
  name a function: p vfs_read`},
	{`p:`, `
the name of an event is missing
  p:
    ^`},
	{`r8`, `
the place of the probe is missing
  r8
    ^
  name a function: r8 vfs_read`},
	{`p:x`, `
the place of the probe is missing
  p:x
     ^
  name a function: p:x vfs_read`},
	{`p if x == 5`, `
the place of the probe is missing
  p if x == 5
   ^
  name a function: p vfs_read`},
	{`t:x`, `
the place of the probe is missing
  t:x
     ^
  name a tracepoint: t:x sched_switch`},

	// The words before the place.
	{`pp vfs_read`, `
expected ':' and the event's name after 'p', not 'p'
  pp vfs_read
   ^`},
	{`p8 vfs_read`, `
only r has a number of calls at once: r8
  p8 vfs_read
   ^`},
	{`f8:x vfs_read`, `
only r has a number of calls at once: r8
  f8:x vfs_read
   ^`},
	{`r4097 vfs_read`, `
4097 calls at once are more than the limit (4096)
  r4097 vfs_read
   ^^^^`},
	{`r99999999999999999999 vfs_read`, `
99999999999999999999 calls at once are more than the limit (4096)
  r99999999999999999999 vfs_read
   ^^^^^^^^^^^^^^^^^^^^`},
	{`r0 vfs_read`, `
0 is not a number of calls at once: from 1 to 4096, as in r8
  r0 vfs_read
   ^`},
	{`r08 vfs_read`, `
08 is not a number of calls at once: from 1 to 4096, as in r8
  r08 vfs_read
   ^^`},
	{`r0x vfs_read`, `
0x is not a number of calls at once: from 1 to 4096, as in r8
  r0x vfs_read
   ^^`},
	{`r0x1001 vfs_read`, `
0x1001 calls at once are more than the limit (4096)
  r0x1001 vfs_read
   ^^^^^^`},
	{`p:1x vfs_read`, `
'1x' is not a name for an event
  p:1x vfs_read
    ^^
  a name has letters, digits and '_', and does not begin with a digit`},
	{`p:a-b vfs_read`, `
'a-b' is not a name for an event
  p:a-b vfs_read
    ^^^
  a name has letters, digits and '_', and does not begin with a digit`},
	{`p:a/b/c vfs_read`, `
'b/c' is not a name for an event
  p:a/b/c vfs_read
      ^^^
  a name has letters, digits and '_', and does not begin with a digit`},
	{`p:/x vfs_read`, `
the name of a group is missing
  p:/x vfs_read
    ^`},
	{`p:1g/x vfs_read`, `
'1g' is not a name for a group
  p:1g/x vfs_read
    ^^
  a name has letters, digits and '_', and does not begin with a digit`},
	{`p:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa vfs_read`, `
a name of 64 characters is longer than that of an event in the kernel (63)
  p:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa vfs_read
    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^`},

	// The place.
	{`p:x %return`, `
a function is missing before '%return'
  p:x %return
      ^`},
	{`p:x vfs_read%retrun`, `
'%retrun' after the place
  p:x vfs_read%retrun
              ^^^^^^^
  did you mean '%return'?`},
	{`p:x vfs_read%`, `
'%' after the place
  p:x vfs_read%
              ^
  did you mean '%return'?`},
	{`p:x /bin/bash:0x4245c0`, `
probes in programs are not supported
  p:x /bin/bash:0x4245c0
      ^^^^^^^^^^^^^^^^^^
  a place is a function of the kernel, for example vfs_read`},
	{`p:x vfs_read+`, `
a number is missing after '+'
  p:x vfs_read+
               ^`},
	{`p:x vfs_read+x`, `
'x' is not a number
  p:x vfs_read+x
               ^
  a number is decimal, or hexadecimal with 0x`},
	{`p:x vfs_read+08`, `
'08' is not a number
  p:x vfs_read+08
               ^^
  a leading 0 means octal; the decimal number is 8`},
	{`p:x vfs_read+ff`, `
'ff' is not a number
  p:x vfs_read+ff
               ^^
  hexadecimal is written 0xff`},
	{`p:x vfs_read+0x1ffffffff`, `
the offset 0x1ffffffff is longer than any function
  p:x vfs_read+0x1ffffffff
               ^^^^^^^^^^^`},
	{`p:x vfs_read+99999999999999999999`, `
'99999999999999999999' is out of range
  p:x vfs_read+99999999999999999999
               ^^^^^^^^^^^^^^^^^^^^
  numbers go up to 18446744073709551615 (2^64-1)`},
	{`p:x vfs_read-4`, `
a place before 'vfs_read'
  p:x vfs_read-4
              ^^
  count from the function that the instruction is in: vfs_read+16`},
	{`p:x vfs_read+4%return`, `
the return of a function has no offset
  p:x vfs_read+4%return
              ^^
  leave out '+4'`},
	{`r:x vfs_read+4`, `
the return of a function has no offset
  r:x vfs_read+4
              ^^
  leave out '+4'`},
	{`f:x vfs_read+4`, `
f is only where a function begins
  f:x vfs_read+4
              ^^
  write p:NAME vfs_read+4`},
	{`t:x sched_switch+4`, `
a tracepoint has no offset
  t:x sched_switch+4
                  ^^
  leave out '+4'`},
	{`t:x sched_switch%return`, `
a tracepoint returns nothing
  t:x sched_switch%return
                  ^^^^^^^`},
	{`t:x sched:sched_switch`, `
a tracepoint is named without its group
  t:x sched:sched_switch
      ^^^^^
  leave out 'sched:'`},
	{`t:x sched.sched_switch`, `
'sched.sched_switch' is not a name of a tracepoint
  t:x sched.sched_switch
      ^^^^^^^^^^^^^^^^^^
  a tracepoint is named without its group`},
	{`t sched/sched_switch`, `
a tracepoint is named without its group
  t sched/sched_switch
    ^^^^^
  leave out 'sched/'`},
	{`f:x 0xffffffff81000000`, `
f has a name, not an address
  f:x 0xffffffff81000000
      ^^^^^^^^^^^^^^^^^^
  write p:NAME 0xffffffff81000000`},
	{`p:x 0`, `
no function is at address 0
  p:x 0
      ^`},
	{`p:x 0xfffx`, `
'0xfffx' is not a number
  p:x 0xfffx
      ^^^^^^
  a number is decimal, or hexadecimal with 0x`},
	{`p:x 0xffffffff81000000+4`, `
an offset from an address
  p:x 0xffffffff81000000+4
                        ^^
  write the sum`},
	{`p:x ext4:`, `
a function is missing after ':'
  p:x ext4:
           ^`},
	{`p:x :ext4_sync_file`, `
a module is missing before ':'
  p:x :ext4_sync_file
      ^`},
	{`p:x ext4:a:b`, `
':' after the function
  p:x ext4:a:b
            ^
  a place is a function, perhaps with its module: ext4:ext4_sync_file`},
	{`p:x ext.4:a`, `
'ext.4' is not the name of a module
  p:x ext.4:a
      ^^^^^`},
	{`p:x ext4:9a`, `
'9a' is not a name of a function
  p:x ext4:9a
           ^^
  a name does not begin with a digit`},
	{`p:x vfs_*`, `
a probe is at one place
  p:x vfs_*
          ^
  f takes patterns: f:NAME vfs_*`},
	{`t:x sched_* $arg1`, `
a probe is at one place
  t:x sched_* $arg1
            ^
  a spec takes patterns: tp:sched_*`},
	{`p:x vfs_read(count)`, `
'(' after the place
  p:x vfs_read(count)
              ^
  arguments come after the place: p vfs_read count=$arg3`},
	{`p:x vfs_read;`, `
';' is not a part of a place
  p:x vfs_read;
              ^`},
	{`p:x @x`, `
expected a function, not '@x'
  p:x @x
      ^^`},
	{`f:x vfs_[`, `
the '[' has no closing ']'
  f:x vfs_[
          ^`},
	{`f:x vfs_[z-a]`, `
the range z-a is backwards
  f:x vfs_[z-a]
          ^^^^^`},

	// Names of arguments.
	{`p:x f =%di`, `
a name is missing before '='
  p:x f =%di
        ^`},
	{`p:x f 1a=%di`, `
'1a' is not a name for an argument
  p:x f 1a=%di
        ^^
  a name has letters, digits and '_', and does not begin with a digit`},
	{`p:x f a-b=%di`, `
'a-b' is not a name for an argument
  p:x f a-b=%di
        ^^^
  a name has letters, digits and '_', and does not begin with a digit`},
	{`p:x f a= %di`, `
a value is missing after '='
  p:x f a= %di
          ^
  there are no blanks in an argument`},
	{`p:x f common_pid=%di`, `
all events have a field 'common_pid' already
  p:x f common_pid=%di
        ^^^^^^^^^^`},
	{`p:x f a=%di a=%si`, `
a second argument with the name 'a'
  p:x f a=%di a=%si
              ^
  give it another one: NAME=%si`},
	{`p:x f count $arg1 count`, `
a second argument with the name 'count'
  p:x f count $arg1 count
                    ^^^^^
  give it another one: NAME=count`},
	{`p:x f arg2=%di %si`, `
a second argument with the name 'arg2'
  p:x f arg2=%di %si
                 ^^^
  give it another one: NAME=%si`},
	{`p:x f aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa=%di`, `
a name of 33 characters is longer than that of any argument in the kernel (32)
  p:x f aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa=%di
        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^`},

	// Registers and variables.
	{`p:x f %`, `
expected the name of a register after '%', not the end
  p:x f %
         ^`},
	{`p:x f %di,%si`, `
',' after the value
  p:x f %di,%si
           ^
  a type comes after ':', the next argument after a blank`},
	{`p:x f $`, `
a name is missing after '$'
  p:x f $
        ^
  there are $arg1 $arg* $stack $stack0 $retval $comm`},
	{`p:x f $arg`, `
$arg without a number
  p:x f $arg
        ^^^^
  the first argument is $arg1, all of them are $arg*`},
	{`p:x f $arg0`, `
arguments are counted from 1
  p:x f $arg0
        ^^^^^
  the first argument is $arg1`},
	{`p:x f $arg256`, `
$arg256 is out of range
  p:x f $arg256
        ^^^^^^^
  arguments are $arg1 to $arg255`},
	{`p:x f $ar1`, `
'$ar1' is not known
  p:x f $ar1
        ^^^^
  did you mean '$arg1'?`},
	{`p:x f $pid`, `
'$pid' is not known
  p:x f $pid
        ^^^^
  there are $arg1 $arg* $stack $stack0 $retval $comm`},
	{`p:x f $stak`, `
'$stak' is not known
  p:x f $stak
        ^^^^^
  did you mean '$stack'?`},
	{`p:x f $stack2049`, `
$stack2049 is out of range
  p:x f $stack2049
        ^^^^^^^^^^
  the words of the stack are $stack0 to $stack2048`},
	{`p:x f $retval`, `
a function has returned nothing where it begins
  p:x f $retval
        ^^^^^^^
  write r instead of p, or '%return' after the place`},
	{`t:x sched_switch $retval`, `
a tracepoint returns nothing
  t:x sched_switch $retval
                   ^^^^^^^`},
	{`t:x sched_switch %di`, `
a tracepoint has no registers
  t:x sched_switch %di
                   ^^^
  name its arguments: $arg1`},
	{`t:x sched_switch $stack0`, `
a tracepoint has no stack of its own
  t:x sched_switch $stack0
                   ^^^^^^^
  name its arguments: $arg1`},
	{`f:x vfs_read %di`, `
f has no registers
  f:x vfs_read %di
               ^^^
  write p, or name arguments: $arg1`},
	{`p:x f+4 $arg1`, `
arguments are known where a function begins, not after it
  p:x f+4 $arg1
          ^^^^^
  name the register that has the value here, or leave out '+4'`},
	{`p:x f+4 count`, `
arguments are known where a function begins, not after it
  p:x f+4 count
          ^^^^^
  name the register that has the value here, or leave out '+4'`},
	{`p:x f+4 a0`, `
arguments are known where a function begins, not after it
  p:x f+4 a0
          ^^
  name the register that has the value here, or leave out '+4'`},
	{`p:x f $arg* $arg*`, `
a second '$arg*'
  p:x f $arg* $arg*
              ^^^^^`},
	{`p:x f a=$arg*`, `
'$arg*' stands for several arguments
  p:x f a=$arg*
          ^^^^^
  name one of them: $arg1`},
	{`p:x f +0($arg*)`, `
'$arg*' stands for several arguments
  p:x f +0($arg*)
           ^^^^^
  name one of them: $arg1`},
	{`p:x f $arg*:u8`, `
'$arg*' has no type
  p:x f $arg*:u8
              ^^
  the arguments have their own`},
	{`p:x f $arg**`, `
'*' after '$arg*'
  p:x f $arg**
             ^
  it is written alone: the arguments have their own types`},

	// Memory.
	{`p:x f @`, `
expected a variable or an address after '@', not the end
  p:x f @
         ^`},
	{`p:x f @+4`, `
an offset in a file
  p:x f @+4
         ^^
  name a variable of the kernel: @jiffies`},
	{`p:x f @x+`, `
expected a number after '+', not the end
  p:x f @x+
           ^`},
	{`p:x f @0x`, `
'0x' is not a number
  p:x f @0x
         ^^
  a number is decimal, or hexadecimal with 0x`},
	{`p:x f @x+99999999999999999999`, `
'99999999999999999999' is out of range
  p:x f @x+99999999999999999999
           ^^^^^^^^^^^^^^^^^^^^
  numbers go up to 18446744073709551615 (2^64-1)`},
	{`p:x f +(%di)`, `
expected an offset after '+', not '('
  p:x f +(%di)
         ^`},
	{`p:x f +8%di`, `
expected '(' after the offset, not '%di'
  p:x f +8%di
          ^^^
  what the offset is added to is in parentheses: +8(%di)`},
	{`p:x f +8`, `
expected '(' after the offset, not the end
  p:x f +8
          ^
  write +8(%di), or \+8 for the number`},
	{`p:x f +x(%di)`, `
'x' is not a number
  p:x f +x(%di)
         ^
  a number is decimal, or hexadecimal with 0x`},
	{`p:x f +8(%di`, `
')' is missing
  p:x f +8(%di
              ^`},
	{`p:x f +8()`, `
a value is missing after '('
  p:x f +8()
           ^`},
	{`p:x f +8(%di))`, `
')' without a '(' before it
  p:x f +8(%di))
               ^`},
	{`p:x f +8(%di:u8)`, `
a type inside a value
  p:x f +8(%di:u8)
              ^
  it comes after the last ')'`},
	{`p:x f +8(%di+4)`, `
there is no arithmetic
  p:x f +8(%di+4)
              ^
  an offset comes before '(': +8(%di)`},
	{`p:x f +9223372036854775808(%di)`, `
'9223372036854775808' is out of range
  p:x f +9223372036854775808(%di)
         ^^^^^^^^^^^^^^^^^^^
  offsets go from -2^63 to 2^63-1`},
	{`p:x f +8($comm)`, `
'$comm' is a string, not an address
  p:x f +8($comm)
           ^^^^^`},
	{`p:x f +8(\"x")`, `
'\"x"' is a string, not an address
  p:x f +8(\"x")
           ^^^^`},

	// Constants, and words that are not values.
	{`p:x f \`, `
expected a number or a string after '\', not the end
  p:x f \
         ^`},
	{`p:x f \x`, `
'x' is not a number
  p:x f \x
         ^
  a number is decimal, or hexadecimal with 0x`},
	{`p:x f \"x`, `
the string has no closing "
  p:x f \"x
        ^^`},
	{`p:x f \99999999999999999999`, `
'99999999999999999999' is out of range
  p:x f \99999999999999999999
         ^^^^^^^^^^^^^^^^^^^^
  numbers go up to 18446744073709551615 (2^64-1)`},
	{`p:x f \-9223372036854775809`, `
'-9223372036854775809' is out of range
  p:x f \-9223372036854775809
         ^^^^^^^^^^^^^^^^^^^^
  numbers with a sign go from -2^63 to 2^63-1`},
	{`p:x f 5`, `
'5' is only a number
  p:x f 5
        ^
  a constant is written \5, what is in memory @5`},
	{`p:x f "x"`, `
a string without '\' before it
  p:x f "x"
        ^
  write \"text"`},
	{`p:x f *p`, `
expected a value, not '*'
  p:x f *p
        ^
  what a pointer points to is written +0($arg1)`},
	{`p:x f (struct sock *)sk`, `
expected a value, not '('
  p:x f (struct sock *)sk
        ^
  an offset comes before '(': +0($arg1)`},
	{`p:x f a == 5`, `
a name is missing before '='
  p:x f a == 5
          ^`},
	{`p:x f a==5`, `
expected a value, not '='
  p:x f a==5
          ^
  a condition comes after 'if': p vfs_read count=$arg3 if count > 4096`},
	{`p:x f a && b`, `
expected a value, not '&&'
  p:x f a && b
          ^^
  a condition comes after 'if': p vfs_read count=$arg3 if count > 4096`},
	{`p:x f a, b`, `
',' after the value
  p:x f a, b
         ^
  a type comes after ':', the next argument after a blank`},
	{`p:x f a+4`, `
there is no arithmetic
  p:x f a+4
         ^
  memory at an offset is written +8(%di)`},
	{`p:x f a[1]`, `
there is no index
  p:x f a[1]
         ^
  an array has a type with its length: +0($arg1):u8[4]`},

	// Members.
	{`p:x f a->`, `
expected a member after '->', not the end
  p:x f a->
           ^`},
	{`p:x f a.`, `
expected a member after '.', not the end
  p:x f a.
          ^`},
	{`p:x f a-b`, `
there is no arithmetic
  p:x f a-b
         ^
  memory at an offset is written +8(%di)`},
	{`p:x f %di->x`, `
'%di' has no type, and so no members
  p:x f %di->x
           ^^
  members are those of an argument, skb->len, or of $retval; other memory has an offset: +8(%di)`},
	{`p:x f +0(%di)->x`, `
'+0(%di)' has no type, and so no members
  p:x f +0(%di)->x
               ^^
  members are those of an argument, skb->len, or of $retval; other memory has an offset: +8(+0(%di))`},
	{`p:x f $comm->x`, `
'$comm' is a string and has no members
  p:x f $comm->x
             ^^`},

	// Types.
	{`p:x f :u8`, `
a value is missing before ':'
  p:x f :u8
        ^
  there are no blanks in an argument`},
	{`p:x f %di:`, `
a type is missing after ':'
  p:x f %di:
            ^
  the types are u8 u16 u32 u64 s8 s16 s32 s64 x8 x16 x32 x64 char string ustring symbol symstr %pd %pD`},
	{`p:x f %di:u9`, `
'u9' is not a type
  p:x f %di:u9
            ^^
  did you mean 'u8'?`},
	{`p:x f %di:int`, `
'int' is not a type
  p:x f %di:int
            ^^^
  did you mean 's32'?`},
	{`p:x f %di:sting`, `
'sting' is not a type
  p:x f %di:sting
            ^^^^^
  did you mean 'string'?`},
	{`p:x f %di:quux`, `
'quux' is not a type
  p:x f %di:quux
            ^^^^
  the types are u8 u16 u32 u64 s8 s16 s32 s64 x8 x16 x32 x64 char string ustring symbol symstr %pd %pD, and bWIDTH@OFFSET/CONTAINER`},
	{`p:x f %di:*`, `
expected a type after ':', not '*'
  p:x f %di:*
            ^
  the types are u8 u16 u32 u64 s8 s16 s32 s64 x8 x16 x32 x64 char string ustring symbol symstr %pd %pD`},
	{`p:x f %di:u8:u8`, `
':' after the type
  p:x f %di:u8:u8
              ^`},
	{`p:x f %di:u8x[2]`, `
'u8x' is not a type
  p:x f %di:u8x[2]
            ^^^
  did you mean 'u8'?`},
	{`p:x f %di:string`, `
'%di' is a number, not a string
  p:x f %di:string
            ^^^^^^
  the string that it points to is +0(%di):string`},
	{`p:x f $stack1:ustring`, `
'$stack1' is a number, not a string
  p:x f $stack1:ustring
                ^^^^^^^
  the string that it points to is +0($stack1):ustring`},
	{`p:x f \1:symstr`, `
'\1' is not the address of a symbol
  p:x f \1:symstr
           ^^^^^^`},
	{`p:x f $comm:u8`, `
'$comm' is a string, not u8
  p:x f $comm:u8
              ^^
  its type is string, and can be left out`},
	{`p:x f \"x":string[2]`, `
'\"x"' is a string, not string[2]
  p:x f \"x":string[2]
             ^^^^^^^^^
  its type is string, and can be left out`},
	{`p:x f %di:u8[4]`, `
'%di' is not in memory, and so no array
  p:x f %di:u8[4]
            ^^^^^
  what it points to is +0(%di)`},
	{`p:x f $arg1:u8[4]`, `
'$arg1' is not in memory, and so no array
  p:x f $arg1:u8[4]
              ^^^^^
  what it points to is +0($arg1)`},
	{`p:x f +0(%di):u8[0]`, `
an array of no elements
  p:x f +0(%di):u8[0]
                   ^`},
	{`p:x f +0(%di):u8[65]`, `
an array of 65 elements is longer than the limit (64)
  p:x f +0(%di):u8[65]
                   ^^`},
	{`p:x f +0(%di):u8[`, `
expected the length of the array after '[', not the end
  p:x f +0(%di):u8[
                   ^`},
	{`p:x f +0(%di):u8[4`, `
expected ']', not the end
  p:x f +0(%di):u8[4
                    ^`},
	{`p:x f +0(%di):u8[4]x`, `
'x' after the type
  p:x f +0(%di):u8[4]x
                     ^`},
	{`p:x f +0(%di):symstr[4]`, `
there are no arrays of symstr
  p:x f +0(%di):symstr[4]
                ^^^^^^^^^`},
	{`p:x f +0(%di):%pd[4]`, `
there are no arrays of %pd
  p:x f +0(%di):%pd[4]
                ^^^^^^`},
	{`p:x f +0(%di):%px`, `
'%px' is not a type
  p:x f +0(%di):%px
                ^^^
  did you mean '%pD'?`},
	{`p:x f +0(%di):b4`, `
expected '@', not the end
  p:x f +0(%di):b4
                  ^
  a bitfield is bWIDTH@OFFSET/CONTAINER, all of them bits: b4@2/8`},
	{`p:x f +0(%di):b4@`, `
expected the offset of the bitfield after '@', not the end
  p:x f +0(%di):b4@
                   ^`},
	{`p:x f +0(%di):b4@2`, `
expected '/', not the end
  p:x f +0(%di):b4@2
                    ^
  a bitfield is bWIDTH@OFFSET/CONTAINER, all of them bits: b4@2/8`},
	{`p:x f +0(%di):b4@2/`, `
expected the container of the bitfield after '/', not the end
  p:x f +0(%di):b4@2/
                     ^`},
	{`p:x f +0(%di):b4@2/7`, `
a bitfield in a number of 7 bits
  p:x f +0(%di):b4@2/7
                ^^^^^^
  there are numbers of 8, 16, 32 and 64 bits`},
	{`p:x f +0(%di):b0@0/8`, `
a bitfield of no bits
  p:x f +0(%di):b0@0/8
                ^^^^^^`},
	{`p:x f +0(%di):b4@5/8`, `
a bitfield of 4 bits from bit 5 does not fit into 8
  p:x f +0(%di):b4@5/8
                ^^^^^^`},
	{`p:x f +0(%di):b@0/8`, `
expected the width of the bitfield, not '@0'
  p:x f +0(%di):b@0/8
                 ^^`},
	{`p:x f # x`, `
expected a value, not '#'
  p:x f # x
        ^
  comments are for files`},

	// Filters.
	{`p:x f a=$arg1 if`, `
a condition is missing after 'if'
  p:x f a=$arg1 if
                  ^`},
	{`p:x f a=$arg1 if a`, `
a comparison is missing after 'a'
  p:x f a=$arg1 if a
                    ^
  write a != 0`},
	{`p:x f a=$arg1 if a == `, `
a constant is missing after '=='
  p:x f a=$arg1 if a ==
                        ^`},
	{`p:x f a=$arg1 if a = 5`, `
expected a comparison after 'a', not '='
  p:x f a=$arg1 if a = 5
                     ^
  did you mean '=='?`},
	{`p:x f a=$arg1 if a =~ "x"`, `
expected a comparison after 'a', not '='
  p:x f a=$arg1 if a =~ "x"
                     ^
  write a ~ "x*", or !(a ~ "x*")`},
	{`p:x f a=$arg1 if a != 5 and a != 6`, `
expected '&&', '||' or the end, not 'and'
  p:x f a=$arg1 if a != 5 and a != 6
                          ^^^
  did you mean '&&'?`},
	{`p:x f a=$arg1 if a != 5 & a != 6`, `
expected '&&', '||' or the end, not '&'
  p:x f a=$arg1 if a != 5 & a != 6
                          ^
  did you mean '&&'?`},
	{`p:x f a=$arg1 if a != 5 | a != 6`, `
expected '&&', '||' or the end, not '|'
  p:x f a=$arg1 if a != 5 | a != 6
                          ^
  did you mean '||'?`},
	{`p:x f a=$arg1 if a & 4 == 4`, `
expected '&&', '||' or the end, not '=='
  p:x f a=$arg1 if a & 4 == 4
                         ^^
  there is one comparison in a condition: (flags & 4) == 4 is flags & 4`},
	{`p:x f a=$arg1 if (a == 4`, `
')' is missing
  p:x f a=$arg1 if (a == 4
                          ^`},
	{`p:x f a=$arg1 if a == 4)`, `
')' without a '(' before it
  p:x f a=$arg1 if a == 4)
                         ^`},
	{`p:x f a=$arg1 if (a == 4 b == 5)`, `
expected '&&', '||' or ')', not 'b'
  p:x f a=$arg1 if (a == 4 b == 5)
                           ^`},
	{`p:x f a=$arg1 if && a == 4`, `
a condition is missing after 'if'
  p:x f a=$arg1 if && a == 4
                   ^^`},
	{`p:x f a=$arg1 if a == 4 ||`, `
a condition is missing after '||'
  p:x f a=$arg1 if a == 4 ||
                            ^`},
	{`p:x f a=$arg1 if ()`, `
a condition is missing after '('
  p:x f a=$arg1 if ()
                    ^`},
	{`p:x f a=$arg1 if !`, `
a condition is missing after '!'
  p:x f a=$arg1 if !
                    ^`},
	{`p:x f a=$arg1 if b == 4`, `
the event has no field 'b'
  p:x f a=$arg1 if b == 4
                   ^
  it has a COMM CPU comm common_cpu common_pid cpu`},
	{`p:x f count=$arg1 if cuont == 4`, `
the event has no field 'cuont'
  p:x f count=$arg1 if cuont == 4
                       ^^^^^
  did you mean 'count'?`},
	{`p:x f a=$arg1 if 4 == a`, `
a constant where a field belongs
  p:x f a=$arg1 if 4 == a
                   ^
  the constant comes after the operator: count > 5`},
	{`p:x f a=$arg1 if "x" == a`, `
a constant where a field belongs
  p:x f a=$arg1 if "x" == a
                   ^
  the constant comes after the operator: count > 5`},
	{`p:x f a=$arg1 if $arg1 == 5`, `
a filter tests the fields of the event, not '$arg1'
  p:x f a=$arg1 if $arg1 == 5
                   ^^^^^
  give the value a name and test this: p vfs_read len=$arg3 if len > 4096`},
	{`p:x f a=$arg1 if a->b == 5`, `
expected a comparison after 'a', not '->'
  p:x f a=$arg1 if a->b == 5
                    ^^
  give the value a name and test this: p vfs_read flags=file->f_flags if flags & 2`},
	{`p:x f a=$arg1 if a.b == 5`, `
a field has no members
  p:x f a=$arg1 if a.b == 5
                     ^
  give the member a name and test this: p vfs_read flags=file->f_flags if flags & 2`},
	{`p:x f a=$arg1 if a[0] == 5`, `
expected a comparison after 'a', not '['
  p:x f a=$arg1 if a[0] == 5
                    ^
  give the value a name and test this: p vfs_read flags=file->f_flags if flags & 2`},
	{`p:x f a=$arg1 b=$arg2 if a == b`, `
a field is compared with a constant, not with another field
  p:x f a=$arg1 b=$arg2 if a == b
                                ^`},
	{`p:x f a=$arg1 if a == foo`, `
'foo' is not a number
  p:x f a=$arg1 if a == foo
                        ^^^
  put strings in quotes: "foo"`},
	{`p:x f a=$arg1 if a == *`, `
expected a constant, not '*'
  p:x f a=$arg1 if a == *
                        ^`},
	{`p:x f a=$arg1 if a == 08`, `
'08' is not a number
  p:x f a=$arg1 if a == 08
                        ^^
  a leading 0 means octal; the decimal number is 8`},
	{`p:x f a=$arg1 if a == -`, `
expected a number after '-', not the end
  p:x f a=$arg1 if a == -
                         ^`},
	{`p:x f a=$arg1 if a == 99999999999999999999`, `
'99999999999999999999' is out of range
  p:x f a=$arg1 if a == 99999999999999999999
                        ^^^^^^^^^^^^^^^^^^^^
  numbers go up to 18446744073709551615 (2^64-1)`},
	{`p:x f a=$arg1 if a == -9223372036854775809`, `
'-9223372036854775809' is out of range
  p:x f a=$arg1 if a == -9223372036854775809
                        ^^^^^^^^^^^^^^^^^^^^
  constants go from -2^63 to 2^64-1`},
	{`p:x f a=$arg1 if a == "x`, `
the string has no closing "
  p:x f a=$arg1 if a == "x
                        ^`},

	// Constants that do not fit.
	{`p:x f a=$arg1:u8 if a == 263`, `
263 does not fit 'a', which is u8 and holds 0 to 255
  p:x f a=$arg1:u8 if a == 263
                           ^^^`},
	{`p:x f a=$arg1:u8 if a == -1`, `
-1 does not fit 'a', which is u8 and holds 0 to 255
  p:x f a=$arg1:u8 if a == -1
                           ^^
  a number with a sign has the type s8`},
	{`p:x f a=$arg1:s8 if a == 255`, `
255 does not fit 'a', which is s8 and holds -128 to 127
  p:x f a=$arg1:s8 if a == 255
                           ^^^
  did you mean -1?`},
	{`p:x f a=$arg1:s8 if a == -129`, `
-129 does not fit 'a', which is s8 and holds -128 to 127
  p:x f a=$arg1:s8 if a == -129
                           ^^^^`},
	{`p:x f a=%di if a > -1`, `
-1 does not fit 'a', which is x64 and holds 0 to 18446744073709551615
  p:x f a=%di if a > -1
                     ^^
  a number with a sign has the type s64, or s32 if it is an int`},
	{`p:x f a=+0(%di):u32 if a & 0x100000000`, `
0x100000000 does not fit 'a', which is u32 and holds 0 to 4294967295
  p:x f a=+0(%di):u32 if a & 0x100000000
                             ^^^^^^^^^^^`},
	{`p:x f a=%di:u8 if a & 0`, `
no bit is set in 0, so the condition never holds
  p:x f a=%di:u8 if a & 0
                        ^`},
	{`p:x f a=%di:b4@0/8 if a == -1`, `
-1 does not fit 'a', which is b4@0/8 and holds 0 to 15
  p:x f a=%di:b4@0/8 if a == -1
                             ^^`},
	{`p:x f a=%di if a == "x"`, `
'a' is a number, and "x" a string
  p:x f a=%di if a == "x"
                      ^^^`},
	{`p:x f a=%di if a ~ "x"`, `
'a' is a number, and '~' is for strings
  p:x f a=%di if a ~ "x"
                   ^`},
	{`p:x f a=+0(%di):string if a == 5`, `
'a' is a string, and 5 is none
  p:x f a=+0(%di):string if a == 5
                                 ^
  put strings in quotes: a == "5"`},
	{`p:x f a=+0(%di):string if a > "x"`, `
'a' is a string, which has no order and no bits
  p:x f a=+0(%di):string if a > "x"
                              ^
  strings are compared with == != ~`},
	{`p:x f a=+0(%di):string if a ~ "[z-a]"`, `
the range z-a is backwards
  p:x f a=+0(%di):string if a ~ "[z-a]"
                                 ^^^^^`},
	{`p:x f a=+0(%di):string if a ~ "a["`, `
the '[' has no closing ']'
  p:x f a=+0(%di):string if a ~ "a["
                                  ^`},
	{`p:x f a=+0(%di):u8[4] if a == 5`, `
'a' is an array, which cannot be compared
  p:x f a=+0(%di):u8[4] if a == 5
                           ^
  fetch one element: its offset comes before '('`},
	{`p:x f a=+0(%di):symbol if a.function > vfs_read`, `
a function is only compared with == and !=
  p:x f a=+0(%di):symbol if a.function > vfs_read
                                       ^`},
	{`p:x f a=+0(%di):u8 if a.function == vfs_read`, `
'a' is not an address of 64 bits
  p:x f a=+0(%di):u8 if a.function == vfs_read
                        ^^^^^^^^^^`},
	{`p:x f a=+0(%di):symbol if a.function == "vfs_read"`, `
a function is a name or an address, not "vfs_read"
  p:x f a=+0(%di):symbol if a.function == "vfs_read"
                                          ^^^^^^^^^^`},
	{`p:x f a=+0(%di):symbol if a.function == vfs+read`, `
'vfs+read' is not a name of a function
  p:x f a=+0(%di):symbol if a.function == vfs+read
                                          ^^^^^^^^`},
	{`p:x f a=+0(%di):string if a.ustring == "x"`, `
'a' is not a pointer of 64 bits
  p:x f a=+0(%di):string if a.ustring == "x"
                            ^^^^^^^^^`},
	{`p:x f a=$arg1 if a.ustring == 5`, `
'a.ustring' is a string, and 5 is none
  p:x f a=$arg1 if a.ustring == 5
                                ^
  put strings in quotes: a.ustring == "5"`},

	// Processors, and fields of all events.
	{`p:x f if cpu & CPUS{}`, `
expected the number of a processor, not '}'
  p:x f if cpu & CPUS{}
                      ^`},
	{`p:x f if cpu & CPUS{1-}`, `
expected the number of a processor, not '}'
  p:x f if cpu & CPUS{1-}
                        ^`},
	{`p:x f if cpu & CPUS{3-1}`, `
the range 3-1 is backwards
  p:x f if cpu & CPUS{3-1}
                      ^^^`},
	{`p:x f if cpu & CPUS{1`, `
expected ',' or '}', not the end
  p:x f if cpu & CPUS{1
                       ^`},
	{`p:x f if cpu & CPUS{99999}`, `
no kernel has a processor 99999
  p:x f if cpu & CPUS{99999}
                      ^^^^^`},
	{`p:x f a=%di if a > CPUS{1}`, `
processors have no order and no pattern
  p:x f a=%di if a > CPUS{1}
                   ^
  use '&' to ask whether the field is one of them`},
	{`p:x f if common_type == 5`, `
'common_type' is not recorded
  p:x f if common_type == 5
           ^^^^^^^^^^^`},
	{`p:x f if __probe_ip == 5`, `
'__probe_ip' is the same in all events of a probe
  p:x f if __probe_ip == 5
           ^^^^^^^^^^`},
	{`p:x f if __probe_ret_ip == 5`, `
'__probe_ret_ip' is a field of return probes
  p:x f if __probe_ret_ip == 5
           ^^^^^^^^^^^^^^`},
	{`p:x f if common_pd == 5`, `
the event has no field 'common_pd'
  p:x f if common_pd == 5
           ^^^^^^^^^
  did you mean 'common_pid'?`},
	{`p:x f a=$arg1 if a == 5 # comment`, `
expected '&&', '||' or the end, not '#'
  p:x f a=$arg1 if a == 5 # comment
                          ^
  comments are for files`},
	{`p:x vfs_réad`, `
U+00E9 at position 10: a spec is plain ASCII text
  p:x vfs_r?ad
           ^`},
	{`p:x f a=$arg1 if a – 5`, `
U+2013 at position 20: a spec is plain ASCII text
  p:x f a=$arg1 if a ? 5
                     ^
  write -`},
	{`p:x f @x->y`, `
'@x' has no type, and so no members
  p:x f @x->y
          ^^
  members are those of an argument, skb->len, or of $retval; other memory has an offset: +8(@x)`},
	{`p:x f \5->y`, `
there is no arithmetic
  p:x f \5->y
          ^^
  memory at an offset is written +8(%di)`},
	{`p:x f a=$arg1 if %di == 5`, `
a filter tests the fields of the event, not '%di'
  p:x f a=$arg1 if %di == 5
                   ^^^
  give the value a name and test this: p vfs_read len=$arg3 if len > 4096`},

	// Other words at wrong places.
	{`p:x f a=$arg1 if a == [x]`, `
expected a constant, not '['
  p:x f a=$arg1 if a == [x]
                        ^`},
	{`p:x f a=%di if a == foo`, `
'foo' is not a number, and 'a' is not a string
  p:x f a=%di if a == foo
                      ^^^`},
	{`p:x f $arg* if a == foo`, `
'foo' is not a number
  p:x f $arg* if a == foo
                      ^^^
  put strings in quotes: "foo"`},
	{`p:x f if cpu ~ CPUS{1}`, `
'cpu' is a number, and '~' is for strings
  p:x f if cpu ~ CPUS{1}
               ^`},
	{`p:x f a=%di if a & CPUS{x}`, `
expected the number of a processor, not 'x'
  p:x f a=%di if a & CPUS{x}
                          ^`},
	{`p:x f if comm == &&`, `
a constant is missing after '=='
  p:x f if comm == &&
                   ^`},
	{`p:x f if comm == (`, `
expected a constant, not '('
  p:x f if comm == (
                   ^`},
	{`p:x f if comm == "a	b"`, `
a string has no other blanks than ' '
  p:x f if comm == "a b"
                    ^^^`},
	{`p:x f if a && b`, `
the event has no field 'a'
  p:x f if a && b
           ^
  it has COMM CPU comm common_cpu common_pid cpu`},
	{`p:x f if common_pid && cpu == 1`, `
a comparison is missing after 'common_pid'
  p:x f if common_pid && cpu == 1
                      ^^
  write common_pid != 0`},
	{`p:x f if common_pid * 4`, `
expected a comparison after 'common_pid', not '*'
  p:x f if common_pid * 4
                      ^
  the comparisons are == != < <= > >= & ~`},
	{`p:x f if cpu == *`, `
expected a constant, not '*'
  p:x f if cpu == *
                  ^`},
	{`p:x f if == 5`, `
expected a field, not '=='
  p:x f if == 5
           ^^`},
	{`p:x f \"a	b"`, `
a string has no other blanks than ' '
  p:x f \"a b"
          ^^^`},
	{`p:x f +8(%di x)`, `
')' is missing
  p:x f +8(%di x)
              ^`},
	{`p:x f +8(%di[2])`, `
expected ')', not '['
  p:x f +8(%di[2])
              ^`},
	{`p:x f , a`, `
expected a value, not ','
  p:x f , a
        ^
  blanks separate the arguments`},
	{`p:x f &x`, `
expected a value, not '&'
  p:x f &x
        ^`},
	{`p:x f !x`, `
expected a value, not '!'
  p:x f !x
        ^
  a condition comes after 'if': p vfs_read count=$arg3 if count > 4096`},
	{`p:x f 'x'`, `
a string without '\' before it
  p:x f 'x'
        ^
  write \"text"`},
	{`p:x f +0(:u8)`, `
a value is missing after '('
  p:x f +0(:u8)
           ^`},
	{`p:x f +0((x))`, `
expected a value, not '('
  p:x f +0((x))
           ^
  an offset comes before '(': +0($arg1)`},
	{`p:x f+4:x`, `
':' after the function
  p:x f+4:x
         ^
  a place is a function, perhaps with its module: ext4:ext4_sync_file`},
	{`p:x ext4:*`, `
expected a function, not '*'
  p:x ext4:*
           ^`},
	{`p:x ext4:+4`, `
expected a function, not '+'
  p:x ext4:+4
           ^`},
	{`p:x f if (cpu == 1 # x`, `
expected '&&', '||' or ')', not '#'
  p:x f if (cpu == 1 # x
                     ^
  comments are for files`},
	{`p:x f a=\5 if a == -1`, `
-1 does not fit 'a', which is x64 and holds 0 to 18446744073709551615
  p:x f a=\5 if a == -1
                     ^^
  a number with a sign has the type s64, or s32 if it is an int`},
	{`p:x f a=$stack if a == -1`, `
-1 does not fit 'a', which is x64 and holds 0 to 18446744073709551615
  p:x f a=$stack if a == -1
                         ^^
  a number with a sign has the type s64, or s32 if it is an int`},
	{`p:x f if comm.function == x`, `
'comm' is not an address of 64 bits
  p:x f if comm.function == x
           ^^^^^^^^^^^^^`},
	{`p:x f if comm.ustring == x`, `
'comm' is not a pointer of 64 bits
  p:x f if comm.ustring == x
           ^^^^^^^^^^^^`},
	{`p:x f if cpu ~ x`, `
'cpu' is a number, and '~' is for strings
  p:x f if cpu ~ x
               ^`},
	{`p:x f if cpu == -1`, `
-1 does not fit 'cpu', which is u32 and holds 0 to 4294967295
  p:x f if cpu == -1
                  ^^`},
	{`p:x f if common_pid == 0xffffffff`, `
0xffffffff does not fit 'common_pid', which is s32 and holds -2147483648 to 2147483647
  p:x f if common_pid == 0xffffffff
                         ^^^^^^^^^^
  did you mean -1?`},
	{`p:x f if common_pid == "1"`, `
'common_pid' is a number, and "1" a string
  p:x f if common_pid == "1"
                         ^^^`},
}

func TestRefuse(t *testing.T) {
	for _, test := range refused {
		trace, err := Parse(test.line)
		require.Nil(t, trace, test.line)
		require.IsType(t, (*spec.Error)(nil), err, test.line)
		require.Equal(t, test.want[1:], err.Error(), test.line)
	}
}
