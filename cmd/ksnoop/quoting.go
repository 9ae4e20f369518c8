package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// lostQuotes is about specs that the shell has taken apart, as they had no quotes:
// at their blanks, or with a ">" that became a redirection to a file. nil: nothing
// looks like it.
func lostQuotes(specs []string, file string) error {
	const cure = "put each spec in single quotes, as in ksnoop 'vfs_read(count > 100, return)'"
	if parts := splitSpec(specs); len(parts) > 1 {
		return usagef("the shell has split '%s' at its blanks: %s", strings.Join(parts, " "), cure)
	}
	remains := ""
	for _, s := range specs {
		if strings.HasSuffix(s, "-") || isOpen(s) {
			remains = s
		}
	}
	switch {
	case file != "" && remains != "":
		return usagef("'%s' is the beginning of a spec, and stdout is the file %s: the shell took '>' for a redirection: %s", remains, file, cure)
	case looksCompared(file):
		return usagef("stdout is the file %s: if '> %s' was to be a condition, the shell took it for a redirection: %s", file, file, cure)
	}
	return nil
}

// splitSpec is the pieces of a spec that stand side by side: behind one whose
// parenthesis is open, before one that begins with a parenthesis, and around "if".
func splitSpec(specs []string) []string {
	for i, s := range specs {
		switch {
		case isOpen(s):
			for end := i + 1; end < len(specs); end++ {
				if !isOpen(strings.Join(specs[i:end+1], " ")) {
					return specs[i : end+1]
				}
			}
		case i > 0 && (s == "if" || strings.HasPrefix(s, "(")):
			return specs[i-1:]
		}
	}
	return nil
}

// isOpen says whether a parenthesis is not closed.
func isOpen(s string) bool { return strings.Count(s, "(") > strings.Count(s, ")") }

// redirectedTo is the name of the regular file that stdout is, without its
// directory; "": it is none.
func redirectedTo(stdout io.Writer) string {
	file, ok := fileOf(stdout).(*os.File)
	if !ok {
		return ""
	}
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return ""
	}
	name, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", file.Fd()))
	if err != nil {
		return ""
	}
	return plainName(filepath.Base(name))
}

// looksCompared says whether a file is called like what stands behind ">" in a
// condition: a number, an error, or the rest of ">=".
func looksCompared(file string) bool {
	file = strings.TrimRight(file, ",)")
	_, err := strconv.ParseInt(file, 0, 64)
	return err == nil || strings.HasPrefix(file, "=") || strings.HasPrefix(file, "-E")
}

// warnRedirect says that events go to a file that looks like a part of a condition.
func warnRedirect(stdout, stderr io.Writer) {
	if file := redirectedTo(stdout); looksCompared(file) {
		fmt.Fprintf(stderr, "ksnoop: events go to the file %s: if '> %s' was to be a condition, put the spec in single quotes\n", file, file)
	}
}
