package target

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/exit"
	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/term"
	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/runtime/render"
)

// quotes is how a spec is kept whole in a shell.
const quotes = "put each spec in single quotes, as in ksnoop 'vfs_read(count > 100, return)'"

// Parse parses one of the specs of a command line.
type Parse func(text string) (*spec.Trace, error)

// LostQuotes returns the error of a command line with specs, or what it means if a shell
// has cut them because they had no quotes. Where it has split them at their blanks, the
// error is that. Where it may have taken a ">" for a redirection, err gets a hint.
func LostQuotes(err error, specs []string, parse Parse, stdout io.Writer) error {
	if !exit.IsUsage(err) {
		return err
	}
	if split := SplitSpec(specs, parse); split != nil {
		return split
	}
	if file := redirectedTo(stdout); file != "" {
		hintRedirected(err, specs, file)
	}
	return err
}

// SplitSpec returns an error if a shell seems to have split one of these specs at its
// blanks, or nil.
func SplitSpec(specs []string, parse Parse) error {
	if parts := splitSpec(specs, parse); parts != nil {
		return exit.Usagef("the shell has split '%s' at its blanks: %s", strings.Join(parts, " "), quotes)
	}
	return nil
}

// hintRedirected adds a hint to the last of the errors that err joins whose spec a
// redirection to a file may have cut.
func hintRedirected(err error, specs []string, file string) {
	for _, e := range slices.Backward(exit.Split(err)) {
		if in := (*spec.Error)(nil); errors.As(e, &in) && isCut(in, specs, file) {
			in.AddHint("stdout is the file %s: if '> %s' was meant as a part of the spec, the shell took it for a redirection: %s", file, file, quotes)
			return
		}
	}
}

// isCut reports whether one of specs may be what a redirection to a file has left of
// a spec: it has no blanks, what is wrong is at its end, and it lacks a parenthesis, ends in a
// half of "->", or is compared with the file's name, as in ksnoop vfs_read count > 100.
func isCut(in *spec.Error, specs []string, file string) bool {
	at := slices.Index(specs, in.Text)
	if at < 0 || in.From.Line > 0 || in.At.End < len(in.Text) || strings.ContainsAny(in.Text, " \t\n") {
		return false
	}
	return isOpen(in.Text) || strings.HasSuffix(in.Text, "-") || at > 0 && looksCompared(file) && !strings.ContainsAny(in.Text, "()")
}

// mostPieces bounds the pieces that are joined to see whether they are a spec.
const mostPieces = 64

// splitSpec returns the adjacent pieces of a split spec, which are one that parse accepts
// if a blank joins them: they begin with a word with an open parenthesis, or a word before "if"
// or before one that begins with a parenthesis.
func splitSpec(specs []string, parse Parse) []string {
	for first, s := range specs {
		last := min(len(specs), first+mostPieces)
		if first+1 == last || !isOpen(s) && specs[first+1] != "if" && !(strings.HasPrefix(specs[first+1], "(") && isPlace(s)) { // a cast begins so, too
			continue
		}
		for ; last > first+1; last-- {
			if _, err := parse(strings.Join(specs[first:last], " ")); err == nil {
				return specs[first:last]
			}
		}
	}
	return nil
}

// isPlace reports whether a word may be a function, or another place to trace, alone.
func isPlace(s string) bool {
	return s != "" && (s[0] > '9' || s[0] == '*') && !strings.ContainsAny(s, ")@$>[]")
}

// isOpen reports whether a parenthesis is not closed. Those in strings and characters
// do not count.
func isOpen(s string) bool {
	open := 0
	quote := byte(0) // that ends the string or character at i, or 0 outside of them
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case quote != 0 && c == '\\':
			i++
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
		case c == '"' || c == '\'':
			quote = c
		case c == '(':
			open++
		case c == ')':
			open--
		}
	}
	return open > 0
}

// redirectedTo returns the name of the regular file that stdout is redirected to,
// without its directory, or "" if it is none.
func redirectedTo(stdout io.Writer) string {
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
	if file := redirectedTo(stdout); looksCompared(file) {
		fmt.Fprintf(stderr, "ksnoop: events go to the file %s: if '> %s' was meant as a condition, put the spec in single quotes\n", file, file)
	}
}
