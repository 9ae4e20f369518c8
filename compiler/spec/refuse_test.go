package spec

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// refused is every way to get a spec wrong that people are known to find, with
// all that they are told.
var refused = []struct{ spec, want string }{
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
	{"->a", `
expected a function name, not '->'
  ->a
  ^^`},
	{"*foo", `
expected a function name, not '*'
  *foo
  ^`},
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
  values belong in parentheses, for example vfs_read(count > 5)`},
	{"f+g", `
expected '(', not '+'
  f+g
   ^`},
	{"f > 5", `
expected '(', not '>'
  f > 5
    ^
  values belong in parentheses, for example vfs_read(count > 5)`},
	{"f->a", `
expected '(', not '->'
  f->a
   ^^
  values belong in parentheses, for example vfs_read(count > 5)`},

	// Parentheses and commas. The first ksnoop takes f(a and f(a,,b).
	{"f()", `
the list of values is empty
  f()
   ^^
  leave out the parentheses to record every argument and the return value, or name values inside them`},
	{"f( )", `
the list of values is empty
  f( )
   ^^^
  leave out the parentheses to record every argument and the return value, or name values inside them`},
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
'(' inside the list of values
  f((a)
    ^
  leave out the inner parentheses`},
	{"f(a(", `
'(' inside the list of values
  f(a(
     ^
  leave out the inner parentheses`},
	{"f(a)(b)", `
'(' after the closing ')'
  f(a)(b)
      ^
  a spec ends with its list of values`},
	{"f(a)x", `
'x' after the closing ')'
  f(a)x
      ^
  a spec ends with its list of values`},
	{"f(a), b", `
',' after the closing ')'
  f(a), b
      ^
  a spec ends with its list of values`},
	{"f(a) 5", `
'5' after the closing ')'
  f(a) 5
       ^
  a spec ends with its list of values`},
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
expected an argument or 'return', not '5'
  f(5)
    ^
  a constant stands behind an operator: count > 5`},
	{"f(5 < a)", `
expected an argument or 'return', not '5'
  f(5 < a)
    ^
  a constant stands behind an operator: count > 5`},
	{"f(> 5)", `
a value is missing before '>'
  f(> 5)
    ^`},
	{"f(!a)", `
expected an argument or 'return', not '!'
  f(!a)
    ^`},
	{"f(= 5)", `
expected an argument or 'return', not '='
  f(= 5)
    ^`},
	{"f(-a)", `
expected an argument or 'return', not '-'
  f(-a)
    ^`},
	{"f(a - 5)", `
expected ',' or ')', not '-'
  f(a - 5)
      ^
  there is no arithmetic; a member is reached with '->'`},
	{"f(a- >b)", `
expected ',' or ')', not '-'
  f(a- >b)
     ^
  there is no arithmetic; a member is reached with '->'`},
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

	// Operators. To the first ksnoop a lone = or ! is no predicate at all, and
	// it stops reading an operator after two characters.
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
	{"f(a << 5)", `
'<<' is not a comparison
  f(a << 5)
      ^^
  the comparisons are == != < <= > >=`},
	{"f(a ==! 5)", `
'==!' is not a comparison
  f(a ==! 5)
      ^^^
  the comparisons are == != < <= > >=`},
	{"f(a > = 5)", `
expected a number after '>', not '='
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
expected a number after '<', not '>'
  f(a < > 5)
        ^`},
	{"f(a > 5 < 9)", `
a second comparison of one value
  f(a > 5 < 9)
          ^
  repeat the value: a > 5, a < ...`},

	// Numbers. The first ksnoop ignores what follows one, joins those with a
	// blank in between, and saturates beyond 63 bits.
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
	{"f(a == 1e3)", `
'1e3' is not a number
  f(a == 1e3)
         ^^^
  hexadecimal is written 0x1e3`},
	{"f(a == 0b101)", `
'0b101' is not a number
  f(a == 0b101)
         ^^^^^`},
	{"f(a == 0o17)", `
'0o17' is not a number
  f(a == 0o17)
         ^^^^`},
	{"f(a == 1_000)", `
'1_000' is not a number
  f(a == 1_000)
         ^^^^^`},
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

	// Constants that are missing or no numbers.
	{"f(a ==", `
a number is missing after '=='
  f(a ==
        ^`},
	{"f(a ==)", `
a number is missing after '=='
  f(a ==)
        ^`},
	{"f(a == , b)", `
a number is missing after '=='
  f(a == , b)
         ^`},
	{"f(a == -)", `
a number is missing after '-'
  f(a == -)
          ^`},
	{"f(a == --5)", `
expected a number after '-', not '-'
  f(a == --5)
          ^`},
	{"f(a == +-5)", `
expected a number after '+', not '-'
  f(a == +-5)
          ^`},
	{"f(a == NULL)", `
expected a number after '==', not 'NULL'
  f(a == NULL)
         ^^^^
  write 0`},
	{"f(a == true)", `
expected a number after '==', not 'true'
  f(a == true)
         ^^^^
  write 1`},
	{"f(a == TWA_RESUME)", `
expected a number after '==', not 'TWA_RESUME'
  f(a == TWA_RESUME)
         ^^^^^^^^^^
  constants are integers: 10, -1, 0xff or, in octal, 0644`},
	{"f(a == -EAGAIN)", `
expected a number after '-', not 'EAGAIN'
  f(a == -EAGAIN)
          ^^^^^^
  constants are integers: 10, -1, 0xff or, in octal, 0644`},
	{"f(a == (5))", `
expected a number after '==', not '('
  f(a == (5))
         ^`},
	{`f(a == "lo")`, `
'"' is not part of the spec language
  f(a == "lo")
         ^
  constants are integers`},
	{"f(a == 'x')", `
''' is not part of the spec language
  f(a == 'x')
         ^
  constants are integers`},

	// Not in the language.
	{"f(a.b)", `
'.' is not part of the spec language
  f(a.b)
     ^
  a member of what a pointer points to is reached with '->'`},
	{"f(file->f_path.dentry)", `
'.' is not part of the spec language
  f(file->f_path.dentry)
                ^
  a member of what a pointer points to is reached with '->'`},
	{"f(a[3])", `
'[' is not part of the spec language
  f(a[3])
     ^`},
	{"f(a & 5)", `
'&' is not part of the spec language
  f(a & 5)
      ^`},
	{"f(a == 5 && b)", `
'&&' is not part of the spec language
  f(a == 5 && b)
           ^^
  separate comparisons with ','; all of them must hold`},
	{"f(a || b)", `
'||' is not part of the spec language
  f(a || b)
      ^^`},
	{"f(a); g", `
';' after the closing ')'
  f(a); g
      ^
  a spec ends with its list of values`},
	{"f(a; b)", `
';' is not part of the spec language
  f(a; b)
     ^
  separate values with ',', and quote each function with its values`},
	{"f(a) if a > 5", `
'if' is not part of the spec language
  f(a) if a > 5
       ^^
  compare inside the parentheses: vfs_read(count > 5)`},
	{"f if a", `
'if' is not part of the spec language
  f if a
    ^^
  compare inside the parentheses: vfs_read(count > 5)`},
	{"f(a:x)", `
':' is not part of the spec language
  f(a:x)
     ^`},
	{"m:f", `
':' is not part of the spec language
  m:f
   ^`},
	{"tcp_*", `
'*' is not part of the spec language
  tcp_*
      ^`},
	{"f(*a)", `
'*' is not part of the spec language
  f(*a)
    ^`},
	{"f(&a)", `
'&' is not part of the spec language
  f(&a)
    ^`},
	{"f($comm)", `
'$' is not part of the spec language
  f($comm)
    ^`},
	{"f(@jiffies)", `
'@' is not part of the spec language
  f(@jiffies)
    ^`},
	{"f(a ~ b)", `
'~' is not part of the spec language
  f(a ~ b)
      ^`},
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
'%' is not part of the spec language
  f(a % 2)
      ^`},
	{"f(a ? b)", `
'?' is not part of the spec language
  f(a ? b)
      ^`},

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

	// White space of any kind is one blank in print.
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
