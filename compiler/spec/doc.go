// Package spec parses and prints trace specs. It does not depend on a kernel or on
// types, so a spec parses the same everywhere. Package resolve binds the names in it
// to a kernel.
//
//	trace, err := spec.Parse("ip_send_skb(skb->len > 100, return)")
//
// docs/spec.md describes the language and has its grammar, which TestGrammar checks.
//
// The names of functions, tracepoints and iterators may have the wildcards
// * ? [a-z] [!a-z], and dots for the suffixes that compilers give to clones, as in
// copy_process.isra.0. The other names are C identifiers, except that the name of
// a module may begin with a digit. [Formats] and [Builtins] list the formats and
// the names after a $. The constant after a ~ is a string: a pattern with the same
// wildcards. Characters and strings have the escapes \n \t \0 \\ \' \" and \xNN.
// Blanks are allowed between any two tokens, and nowhere else; const and volatile
// are allowed anywhere in a type.
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
