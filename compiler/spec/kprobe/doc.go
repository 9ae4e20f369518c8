// Package kprobe parses kprobe_events lines, the kernel's own language for dynamic
// events, in the form of 2009 and in that of today. It returns the same tree as for
// a spec:
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
//	ALL    = COND { "&&" COND }
//	COND   = "!" COND | "(" FILTER ")" | FIELD [ ".function" | ".ustring" ] OP CONSTANT
//	OP     = "==" | "!=" | "<" | "<=" | ">" | ">=" | "&" | "~"
//	CONSTANT = [ "-" ] integer | STRING | word | "CPUS{" N [ "-" N ] { "," ... } "}"
//
// Blanks separate the parts of a line. Within a part they are allowed only in
// strings and in the FILTER. A string has no escapes. A ! negates the whole
// comparison after it, unlike in a spec.
//
// A file may have specs between the lines. In a file, -:[GROUP/]EVENT deletes an
// earlier line, see [ParseFile].
package kprobe
