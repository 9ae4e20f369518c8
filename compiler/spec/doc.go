// Package spec parses and prints trace specs. It does not depend on a kernel or on
// types, so a spec parses the same everywhere. Package compiler resolves the names
// in it.
//
//	trace, err := spec.Parse("ip_send_skb(skb->len > 100, return)")
//
// The language:
//
//	SPEC     = POINT [ "(" ITEM { "," ITEM } ")" ] [ "if" COND ]
//	POINT    = [ MODULE ":" ] FUNC | "tp" ":" TRACEPOINT
//	ITEM     = VALUE [ ":" FORMAT ] [ OP CONSTANT | "is-err" ]
//	OP       = "==" | "!=" | "<" | "<=" | ">" | ">=" | "&" | "~"
//
//	VALUE    = "*" VALUE | "(" TYPE ")" VALUE | PRIMARY { POSTFIX }
//	PRIMARY  = arg | "return" | "$" BUILTIN | "@" variable | "(" VALUE ")"
//	POSTFIX  = "->" member | "." member | "[" integer "]"
//	TYPE     = ( ( "struct" | "union" | "enum" ) name | typedef | WORD { WORD } ) { "*" }
//	WORD     = "unsigned" | "signed" | "long" | "short" | "int" | "char" | "void" | ...
//
//	COND     = ALL { "||" ALL }
//	ALL      = TEST { "&&" TEST }
//	TEST     = ITEM | "(" COND ")" | "!" ( VALUE [ ":" FORMAT ] | "(" COND ")" | "!" ... )
//
//	CONSTANT = [ "-" | "+" ] integer | [ "-" ] name | "'" char "'" | string | duration
//	integer  = decimal | "0" octal | "0x" hexadecimal
//	duration = digits [ "." digits ] ( "ns" | "us" | "ms" | "s" | "m" | "h" )
//
// FUNC and TRACEPOINT may have the wildcards * ? [a-z] [!a-z], and dots for
// the suffixes that compilers give to clones, as in copy_process.isra.0. The
// other names are C identifiers, except that a MODULE may begin with a digit.
// [Formats] and [Builtins] list the values of FORMAT and BUILTIN. The constant
// after a ~ is a string: a pattern with the same wildcards. Characters and
// strings have the escapes \n \t \0 \\ \' \" and \xNN. Blanks are allowed
// between any two tokens, and nowhere else; const and volatile are allowed
// anywhere in a type.
//
// Operators bind as in C: * and casts weaker than the operators after a value,
// && tighter than ||. Specs whose meaning in C is surprising, such as !a == 5
// and a & 4 == 4, are refused. A parenthesis is a cast if it begins with a
// keyword of C, if it ends with a star, or if it has only a name in it and a
// value follows; else it is a value, as in (x).
//
// If a spec does not parse, the error is an [*Error], which shows the place:
//
//	'=' is not a comparison
//	  vfs_read(count = 5)
//	                 ^
//	  did you mean '=='?
package spec
