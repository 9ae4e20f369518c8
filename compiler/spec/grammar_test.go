package spec_test

import (
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler/spec"
	"github.com/ksnoop/ksnoop/compiler/spec/spectest"
)

// samples are texts for the names of the grammar in docs/spec.md that it explains in
// words.
var samples = map[string][]string{
	"MODULE": {"ext4"}, "FUNC": {"vfs_read", "vfs_*"}, "TRACEPOINT": {"sched_switch"}, "ITERATOR": {"task"},
	"FORMAT": spec.Formats, "BUILTIN": {"pid", "comm", "task", "arg2"},
	"arg": {"count", "file"}, "variable": {"jiffies"}, "member": {"f_flags"}, "name": {"file"}, "typedef": {"u32", "pid_t"},
	"integer": {"1", "17", "64K", "0o17", "010", "0x1f"}, "range": {"0..3"}, "character": {"'a'"}, "string": {`"cat"`}, "duration": {"1.5ms"},
}

// grammar is a grammar in EBNF: for each name the tokens of its definition.
type grammar struct {
	rnd   *rand.Rand
	rules map[string][]string
	least map[string]int // the least number of levels in a sentence, by name
}

// newGrammar parses the grammar in a page.
func newGrammar(t *testing.T, page string) *grammar {
	g := &grammar{rnd: rand.New(rand.NewPCG(1, 1)), rules: map[string][]string{}}
	_, text, ok := strings.Cut(page, "## Grammar\n\n```\n")
	require.True(t, ok)
	text, _, _ = strings.Cut(text, "```")
	token, name := regexp.MustCompile(`"[^"]*"|[A-Za-z]+|[][(){}|]`), ""
	for line := range strings.Lines(text) {
		if head, rest, ok := strings.Cut(line, " = "); ok && strings.TrimSpace(head) != "" && !strings.Contains(head, `"`) {
			name, line = strings.TrimSpace(head), rest
		}
		if !strings.Contains(line, "one of the") {
			g.rules[name] = append(g.rules[name], token.FindAllString(line, -1)...)
		}
	}
	g.measure()
	return g
}

// alternatives splits tokens at each | outside of brackets.
func alternatives(tokens []string) (all [][]string) {
	depth, from := 0, 0
	for i, tok := range tokens {
		switch {
		case strings.Contains("([{", tok):
			depth++
		case strings.Contains(")]}", tok):
			depth--
		case tok == "|" && depth == 0:
			all, from = append(all, tokens[from:i]), i+1
		}
	}
	return append(all, tokens[from:])
}

// group returns the tokens in the brackets that begin at tokens[0], and those after
// the brackets.
func group(tokens []string) (in, rest []string) {
	depth := 0
	for i, tok := range tokens {
		switch {
		case strings.Contains("([{", tok):
			depth++
		case strings.Contains(")]}", tok):
			if depth--; depth == 0 {
				return tokens[1:i], tokens[i+1:]
			}
		}
	}
	return tokens[1:], nil
}

// depth returns the least number of levels in a sentence of the tokens, given the least
// number of each name in g.least.
func (g *grammar) depth(tokens []string) (most int) {
	for len(tokens) > 0 {
		in, rest := group(tokens)
		switch tok := tokens[0]; tok {
		case "(":
			least := 1 << 20
			for _, a := range alternatives(in) {
				least = min(least, g.depth(a))
			}
			most, tokens = max(most, least), rest
			continue
		case "[", "{":
			tokens = rest
			continue
		default:
			if g.rules[tok] != nil {
				most = max(most, g.least[tok])
			}
		}
		tokens = tokens[1:]
	}
	return most
}

// measure finds the least number of levels of each name.
func (g *grammar) measure() {
	g.least = map[string]int{}
	for name := range g.rules {
		g.least[name] = 1000
	}
	for range g.rules {
		for name, tokens := range g.rules {
			for _, a := range alternatives(tokens) {
				g.least[name] = min(g.least[name], 1+g.depth(a))
			}
		}
	}
}

// write writes a random sentence. Deep inside, it adds no more levels than it must.
func (g *grammar) write(b *strings.Builder, tokens []string, depth int) {
	all := alternatives(tokens)
	tokens = all[g.rnd.IntN(len(all))]
	if depth > 12 {
		tokens = slices.MinFunc(all, func(a, b []string) int { return g.depth(a) - g.depth(b) })
	}
	for len(tokens) > 0 {
		tok := tokens[0]
		switch in, rest := group(tokens); {
		case tok == "(":
			g.write(b, in, depth+1)
			tokens = rest
			continue
		case tok == "[" || tok == "{":
			if depth <= 12 && g.rnd.IntN(3) == 0 {
				g.write(b, in, depth+1)
			}
			tokens = rest
			continue
		}
		tokens = tokens[1:]
		switch words := samples[tok]; { // before the definitions of tokens, which have no blanks
		case tok[0] == '"':
			b.WriteString(strings.Trim(tok, `"`) + " ")
		case words != nil:
			b.WriteString(words[g.rnd.IntN(len(words))] + " ")
		default:
			g.write(b, g.rules[tok], depth+1)
		}
	}
}

// likeCast matches what is a cast in one place and a value in another.
var likeCast = regexp.MustCompile(`\( (count|file|u32|pid_t)( \[ \w+ \])? \)`)

// loneNumber matches a number that no operator joins to another value.
var loneNumber = regexp.MustCompile(`([(,!]|\bif|\bon|\bon .* ==|=>|&&|\|\|) (- )?(\d\w*|'a') ([),:~&]|&&|\|\||[=!<>]=|[<>]|is-err|if|on|=>|$)`)

// TestGrammar verifies that what the grammar in docs/spec.md allows can be parsed, with
// the exceptions in the text below it: a number alone is no value, a name alone in
// parentheses is a cast if a value may follow, and after does not nest. What is parsed
// prints as a spec of the same meaning.
func TestGrammar(t *testing.T) {
	page, err := os.ReadFile("../../docs/spec.md")
	require.NoError(t, err)
	g := newGrammar(t, string(page))
	parsed := 0
	for range 20_000 {
		var b strings.Builder
		g.write(&b, g.rules["SPEC"], 0)
		text := b.String()
		if trace, err := spec.Parse(text); err == nil {
			parsed++
			again, err := spec.Parse(trace.String())
			require.NoError(t, err, text)
			require.Equal(t, spectest.Bare(trace), spectest.Bare(again), text)
		} else if !likeCast.MatchString(text) && !loneNumber.MatchString(text) {
			require.ErrorContains(t, err, "'after' inside of", text)
		}
	}
	require.Greater(t, parsed, 10_000)
}
