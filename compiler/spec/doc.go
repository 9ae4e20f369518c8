// Package spec is the syntax of trace specs: text to tree and back. It knows
// no kernel and no types, so that every spec parses the same everywhere; what
// the names mean is for package compiler to find out.
//
//	trace, err := spec.Parse("ip_send_skb(skb->len > 100, return)")
//
// The language:
//
//	SPEC     = TARGET [ "(" ITEM { "," ITEM } ")" ] [ "if" COND ]
//	TARGET   = [ MODULE ":" ] FUNC | "tp" ":" TRACEPOINT
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
// other names are C identifiers, but for a MODULE that begins with a digit.
// [Formats] and [Builtins] list what may stand for FORMAT and BUILTIN. The
// constant behind a ~ is a string, and a pattern with the same wildcards.
// Characters and strings have the escapes \n \t \0 \\ \' \" and \xNN. Blanks
// may stand between any two tokens, and nowhere else; const and volatile
// anywhere in a type.
//
// Operators bind as in C: * and casts weaker than what stands behind a value,
// && tighter than ||. Where C would surprise, as in !a == 5 and a & 4 == 4, a
// spec is refused. What follows a parenthesis tells (T)x from (x): it is a
// cast if it begins with a keyword of C, if a star ends it, or if it holds a
// name and a value stands behind it.
//
// A spec that does not parse gives an [*Error], which shows the place:
//
//	'=' is not a comparison
//	  vfs_read(count = 5)
//	                 ^
//	  did you mean '=='?
package spec
