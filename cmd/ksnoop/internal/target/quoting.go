package target

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/exit"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/term"
	"github.com/ksnoop/ksnoop/runtime/render"
)

// LostQuotes returns an error about specs that the shell has split because they had
// no quotes: at their blanks, or at a ">" that became a redirection to a file. It
// returns nil if nothing looks like that.
func LostQuotes(specs []string, file string) error {
	const cure = "put each spec in single quotes, as in ksnoop 'vfs_read(count > 100, return)'"
	if parts := splitSpec(specs); len(parts) > 1 {
		return exit.Usagef("the shell has split '%s' at its blanks: %s", strings.Join(parts, " "), cure)
	}
	remains := ""
	for _, s := range specs {
		if strings.HasSuffix(s, "-") && s != "-" || isOpen(s) { // - alone is a file
			remains = s
		}
	}
	switch {
	case file != "" && isOpen(remains) && !strings.Contains(file, ")"):
		return exit.Usagef("'%s' lacks its ')', and stdout is the file %s: close the parenthesis, or if '> %s' was meant as a condition, %s", remains, file, file, cure)
	case file != "" && remains != "":
		return exit.Usagef("'%s' is the beginning of a spec, and stdout is the file %s: the shell took '>' for a redirection: %s", remains, file, cure)
	case looksCompared(file):
		return exit.Usagef("stdout is the file %s: if '> %s' was meant as a condition, the shell took it for a redirection: %s", file, file, cure)
	}
	return nil
}

// splitSpec returns the adjacent pieces of a split spec: a word with an open
// parenthesis and the next one, a word before one that begins with a parenthesis, and
// words around "if".
func splitSpec(specs []string) []string {
	for i, s := range specs {
		switch {
		case isOpen(s):
			for end := i + 1; end < len(specs); end++ {
				if !isOpen(strings.Join(specs[i:end+1], " ")) {
					return specs[i : end+1]
				}
			}
		case i > 0 && (s == "if" || strings.HasPrefix(s, "(") && isPlace(specs[i-1])): // a cast begins so, too
			return specs[i-1:]
		}
	}
	return nil
}

// isPlace reports whether a word may be a function, or another place to trace, alone.
func isPlace(s string) bool {
	return s != "" && (s[0] > '9' || s[0] == '*') && !strings.ContainsAny(s, ")@$>[]")
}

// isOpen reports whether a parenthesis is not closed.
func isOpen(s string) bool { return strings.Count(s, "(") > strings.Count(s, ")") }

// RedirectedTo returns the name of the regular file that stdout is redirected to,
// without its directory, or "" if it is none.
func RedirectedTo(stdout io.Writer) string {
	file, ok := term.FileOf(stdout).(*os.File)
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
	return render.PlainName(filepath.Base(name))
}

// looksCompared reports whether the name of a file looks like what follows ">" in a
// condition: a number, an error, or the rest of ">=".
func looksCompared(file string) bool {
	file = strings.TrimRight(file, ",)")
	_, err := strconv.ParseInt(file, 0, 64)
	return err == nil || strings.HasPrefix(file, "=") || strings.HasPrefix(file, "-E")
}

// WarnRedirect prints a warning if events go to a file whose name looks like a part
// of a condition.
func WarnRedirect(stdout, stderr io.Writer) {
	if file := RedirectedTo(stdout); looksCompared(file) {
		fmt.Fprintf(stderr, "ksnoop: events go to the file %s: if '> %s' was meant as a condition, put the spec in single quotes\n", file, file)
	}
}
