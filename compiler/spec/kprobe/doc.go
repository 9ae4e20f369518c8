// Package kprobe is the syntax of kprobe_events lines, the kernel's own
// language for dynamic events, as it was in 2009 and as it is today. A line
// becomes the same tree as a spec:
//
//	trace, err := kprobe.Parse("p:open do_sys_openat2 dfd=$arg1 name=+0($arg2):ustring if dfd >= 0")
//
// The language:
//
//	LINE   = HEAD PLACE { ARG } [ "if" FILTER ]
//	HEAD   = ( "p" | "r" [ MAXACTIVE ] | "f" | "t" ) [ ":" NAME ]
//	NAME   = [ GROUP ( "/" | "." ) ] EVENT | GROUP "/"
//	PLACE  = [ MODULE ":" ] SYMBOL [ "+" OFFSET ] [ "%return" ] | ADDRESS [ "%return" ]
//
//	ARG    = [ NAME "=" ] VALUE [ ":" TYPE ] | "$arg*"
//	VALUE  = "%" REGISTER | "$stack" [ N ] | "$argN" | "$retval" | "$comm"
//	       | "@" ADDRESS | "@" SYMBOL [ ( "+" | "-" ) N ]
//	       | ( "+" | "-" ) [ "u" ] N "(" VALUE ")"
//	       | "\" INTEGER | "\" STRING
//	       | argument | VALUE ( "->" | "." ) member
//	       | "aN" | "sN" | "sa" | "rv" | "ra"
//	TYPE   = BASE [ "[" N "]" ]
//	BASE   = one of [spec.FetchTypes] | "b" WIDTH "@" OFFSET "/" CONTAINER
//
//	FILTER = ALL { "||" ALL }
//	ALL    = TEST { "&&" TEST }
//	TEST   = "!" TEST | "(" FILTER ")" | FIELD [ ".function" | ".ustring" ] OP CONSTANT
//	OP     = "==" | "!=" | "<" | "<=" | ">" | ">=" | "&" | "~"
//	CONSTANT = [ "-" ] integer | STRING | word | "CPUS{" N [ "-" N ] { "," ... } "}"
//
// Blanks separate the parts of a line and stand nowhere else but in strings;
// in a FILTER they are free. A string has no escapes. A ! belongs to the whole
// comparison behind it, other than in a spec.
//
// In a file, which may have specs between the lines, -:[GROUP/]EVENT takes an
// earlier line back, see [ParseFile].
package kprobe
