package complete

import (
	"strings"
	"unicode/utf8"
)

// completeBash completes the end of a line in bash. Where bash has split a word, the
// answer has only the last piece, in bash's own quoting.
func (c *Completer) completeBash(breaks, line string) answer {
	words := splitShell(line)
	if len(words) < 2 {
		return answer{}
	}
	var texts []string
	for _, w := range words[1:] {
		texts = append(texts, w.text)
	}
	a := c.complete(texts)
	last := words[len(words)-1]
	if begun := common(a.candidates); last.bare() && len(begun) > len(last.text) && !strings.ContainsAny(begun, special) {
		a.candidates = []*candidate{{text: begun}} // without quotes as long as possible
	}
	kept := a.candidates[:0]
	for _, found := range a.candidates {
		if found.text == last.text && last.bare() && len(a.candidates) > 1 {
			continue // otherwise it would have nothing in common with the quoted ones
		}
		if text, ok := last.replacement(found.text, breaks); ok {
			kept = append(kept, &candidate{text: text})
		}
	}
	a.candidates = kept
	return a
}

// shellWord is a word as the shell would read it, up to the cursor.
type shellWord struct {
	raw, text string
	quote     byte  // the open quote, or 0
	opened    int   // index in raw behind it
	places    []int // index in text of each byte of raw
	plain     []bool
}

// splitShell splits a line into words. The last one, which may be empty, is the word
// being typed.
func splitShell(line string) (words []*shellWord) {
	var w *shellWord
	for i := 0; i < len(line); i++ {
		c := line[i]
		if w == nil {
			if c == ' ' || c == '\t' {
				continue
			}
			w = &shellWord{}
			words = append(words, w)
		}
		if w.quote == 0 && (c == ' ' || c == '\t') {
			w = nil
			continue
		}
		escaped := c == '\\' && w.quote != '\'' && i+1 < len(line) && (w.quote == 0 || strings.IndexByte(specialInQuotes, line[i+1]) >= 0)
		w.see(c, escaped)
		if escaped {
			i++
			w.keep(line[i], false)
		}
	}
	if w == nil {
		words = append(words, &shellWord{})
	}
	return words
}

// see reads a byte of the line: a quote, a backslash or a byte of the word.
func (w *shellWord) see(c byte, escapes bool) {
	switch {
	case escapes:
		w.note(c, false)
	case w.quote == 0 && (c == '\'' || c == '"'):
		w.quote = c
		w.note(c, false)
		w.opened = len(w.raw)
	case w.quote != 0 && c == w.quote:
		w.quote = 0
		w.note(c, false)
	default:
		w.keep(c, w.quote == 0)
	}
}

func (w *shellWord) note(c byte, plain bool) {
	w.raw += string([]byte{c})
	w.places = append(w.places, len(w.text))
	w.plain = append(w.plain, plain)
}

func (w *shellWord) keep(c byte, plain bool) {
	w.note(c, plain)
	w.text += string([]byte{c})
}

// bare reports whether a word has no quotes.
func (w *shellWord) bare() bool { return w.quote == 0 && w.raw == w.text }

// common returns the longest common prefix of all candidates.
func common(all []*candidate) string {
	if len(all) == 0 {
		return ""
	}
	begun := all[0].text
	for _, c := range all {
		for !strings.HasPrefix(c.text, begun) {
			begun = begun[:len(begun)-1]
		}
	}
	for begun != "" && !utf8.ValidString(begun) { // the candidates differ within a character
		begun = begun[:len(begun)-1]
	}
	return begun
}

// special are the characters with a meaning to a shell.
const special = " \t|&;()<>*?[]!{}$\"'`\\#~"

// specialInQuotes are those with a meaning in double quotes.
const specialInQuotes = "$`\"\\"

// replacement returns the text by which bash must replace the piece of the word that
// it completes, or false if that is impossible.
func (w *shellWord) replacement(text, breaks string) (string, bool) {
	from := w.from(breaks)
	at := len(w.text)
	if from < len(w.places) {
		at = w.places[from]
	}
	switch rest := text[at:]; {
	case !strings.HasPrefix(text, w.text):
		return "", false
	case w.quote == '\'':
		return rest, !strings.Contains(rest, "'")
	case w.quote != 0:
		return escapeShell(rest, specialInQuotes), true
	case from == 0 && w.bare() && strings.ContainsAny(rest, special):
		return "'" + rest, true // quoted from here on
	default:
		return escapeShell(rest, special), true
	}
}

// from returns the index in raw of the piece of the word that bash replaces.
func (w *shellWord) from(breaks string) (at int) {
	if w.quote != 0 {
		return w.opened
	}
	for i := range len(w.raw) {
		if w.plain[i] && strings.IndexByte(breaks, w.raw[i]) >= 0 {
			at = i + 1
		}
	}
	return at
}

// escapeShell puts a backslash before each special character.
func escapeShell(text, special string) string {
	var out []byte
	for i := range len(text) {
		if strings.IndexByte(special, text[i]) >= 0 {
			out = append(out, '\\')
		}
		out = append(out, text[i])
	}
	return string(out)
}
