// Package spec is the syntax of trace specs: text to tree and back. It knows
// no kernel and no types, so that every spec parses the same everywhere; what
// the names mean is for package compiler to find out.
//
//	trace, err := spec.Parse("ip_send_skb(skb->len > 100, return)")
//
// The language:
//
//	SPEC     = FUNC [ "(" ITEM { "," ITEM } ")" ]
//	ITEM     = VALUE [ OP CONSTANT ]
//	VALUE    = ( arg | "return" ) { "->" member }
//	OP       = "==" | "!=" | "<" | "<=" | ">" | ">="
//	CONSTANT = [ "-" | "+" ] ( decimal | "0" octal | "0x" hexadecimal )
//
// FUNC and the other names are C identifiers; FUNC may carry the suffixes that
// compilers give to clones, as in copy_process.isra.0. Blanks may stand
// between any two tokens, and nowhere else.
//
// A spec that does not parse gives an [*Error], which shows the place:
//
//	'=' is not a comparison
//	  vfs_read(count = 5)
//	                 ^
//	  did you mean '=='?
package spec
