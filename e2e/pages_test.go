package e2e

import (
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// readPages returns the README and the pages of docs, with their index, by their paths.
func readPages(t *testing.T) map[string]string {
	paths, err := filepath.Glob("../docs/*.md")
	require.NoError(t, err)
	texts := map[string]string{}
	for _, path := range append(paths, "../README.md") {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		texts[path] = string(text)
	}
	return texts
}

// TestLinks checks that every link to a page leads to one, and to a heading of it.
func TestLinks(t *testing.T) {
	links := 0
	pages := readPages(t)
	for path, text := range pages {
		for _, link := range regexp.MustCompile(`\]\(([^)#:]*)(?:#([^)]*))?\)`).FindAllStringSubmatch(text, -1) {
			links++
			to := path
			if link[1] != "" {
				to = filepath.Join(filepath.Dir(path), link[1])
				require.FileExists(t, to, path)
			}
			if link[2] != "" {
				require.Contains(t, anchors(pages[to]), link[2], "%s: %s", path, link[0])
			}
		}
	}
	require.Greater(t, links, 20)
}

// anchors returns what links to the headings of a page end in: small letters, digits and
// dashes for blanks.
func anchors(page string) (all []string) {
	for _, heading := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(fence.ReplaceAllString(page, ""), -1) {
		name := regexp.MustCompile(`[^a-z0-9 _-]`).ReplaceAllString(strings.ToLower(heading[1]), "")
		all = append(all, strings.ReplaceAll(name, " ", "-"))
	}
	return all
}

// opening matches the title of a page, its badges, and the first paragraph.
var opening = regexp.MustCompile("^# ([A-Za-z].*)\n\n(?:\\[!\\[(?:.+\n)+\n)?([A-Z`a-z](?:.+\n)+)\n")

// TestPagesBegin checks that each page begins with a title and a short paragraph, which
// says what the page answers: one or two sentences.
func TestPagesBegin(t *testing.T) {
	for path, text := range readPages(t) {
		found := opening.FindStringSubmatch(text)
		require.NotNil(t, found, path)
		first := strings.TrimSpace(found[2])
		require.Greater(t, len(first), 30, "%s: %s", path, first)
		require.LessOrEqual(t, len(first), 200, "%s: %s", path, first)
		require.Regexp(t, `\.$`, first, path)
		require.LessOrEqual(t, len(regexp.MustCompile(`[.?!](\s|$)`).FindAllString(first, -1)), 2, "%s: %s", path, first)
	}
}

// TestGlossary checks that the words of the glossary are in order, that it has no word
// twice, and that it has the columns of --summary and the counts of the vocabulary.
func TestGlossary(t *testing.T) {
	var words []string
	for _, row := range regexp.MustCompile(`(?m)^\| ([^|]+) \| [^|]+ \| [^|]*\|$`).FindAllStringSubmatch(readPages(t)["../docs/glossary.md"], -1) {
		words = append(words, strings.ToLower(row[1]))
	}
	require.Equal(t, "word", words[0])
	words = words[1:]
	require.Greater(t, len(words), 30)
	require.True(t, slices.IsSorted(words), words)
	require.Len(t, slices.Compact(slices.Clone(words)), len(words))
	has := func(name string) bool {
		return slices.ContainsFunc(strings.Split(strings.Join(words, ", "), ", "), func(word string) bool {
			return word == name || word+"s" == name || strings.HasPrefix(word, name+" ")
		})
	}
	summary, err := os.ReadFile("../runtime/render/summary.go")
	require.NoError(t, err)
	columns := regexp.MustCompile(`"([A-Z][A-Z ]+)"[,})]`).FindAllStringSubmatch(string(summary), -1)
	require.Len(t, columns, 15)
	for _, column := range columns {
		require.True(t, has(strings.ToLower(column[1])), "the glossary lacks the column %s", column[1])
	}
	_, counts, ok := strings.Cut(readPages(t)["../docs/architecture.md"], "\n| **what is counted** ")
	require.True(t, ok)
	counts, _, ok = strings.Cut(counts, "\n| loss |")
	require.True(t, ok)
	_, counts, ok = strings.Cut(counts, "\n| counts |")
	require.True(t, ok)
	names := regexp.MustCompile(`(?m)^\| ([a-z ]+) \|`).FindAllStringSubmatch(counts, -1)
	require.Greater(t, len(names), 10)
	for _, name := range names {
		require.True(t, has(name[1]), "the glossary lacks %s", name[1])
	}
}

// fence matches the fences of a page: the text after the opening quotes, and
// the content.
var fence = regexp.MustCompile("(?ms)^```([^\n]*)\n(.*?)^```$")

// notInGuest lists what the commands of a page need that TestDocs does not run.
// TestCheck and TestVirtualMachineRunner run them.
var notInGuest = map[string]string{"check.md": "with=kernels", "ci.md": "with=qemu"}

// TestFences checks that commands with their output are in fences that a test
// runs.
func TestFences(t *testing.T) {
	// The fences of json.md begin with jq, and TestJQExamples runs them.
	prompt := regexp.MustCompile(`(?m)^(\$ |# ksnoop )`)
	elsewhere := regexp.MustCompile(`with=\S+`)
	for path, text := range readPages(t) {
		for _, f := range fence.FindAllStringSubmatch(text, -1) {
			if with := elsewhere.FindString(f[1]); with != "" {
				require.Equal(t, notInGuest[filepath.Base(path)], with, path)
			}
			if slices.Contains(strings.Fields(f[1]), "console") || filepath.Base(path) == "json.md" && strings.HasPrefix(f[2], "$ jq ") {
				continue
			}
			require.NotRegexp(t, prompt, f[2], path)
		}
	}
}

// inOrder checks that a text contains parts one after the other.
func inOrder(t *testing.T, text string, parts ...string) {
	for _, part := range parts {
		_, rest, ok := strings.Cut(text, part)
		require.True(t, ok, part)
		text = rest
	}
}

// TestIndex checks that the index of the pages names every page once, in the order in which
// to read them, and that names which are hard to guess are found in it. The README leads to
// the index, and is short.
func TestIndex(t *testing.T) {
	all := readPages(t)
	index, names, ok := strings.Cut(all["../docs/README.md"], "\n## By name\n")
	require.True(t, ok)
	for path := range all {
		if name := filepath.Base(path); name != "README.md" {
			require.Equal(t, 1, strings.Count(index, "\n| ["+name+"]("+name+") |"), path)
		}
	}
	for _, name := range []string{"--prom-textfile", "is-err", "regs->si:ustring", "$cgroup", "$container"} {
		require.Contains(t, names, name)
	}
	inOrder(t, index, "\n## Begin\n", "[tutorial.md](", "[cookbook.md](", "\n## More recipes\n", "\n## Reference\n", "[spec.md](", "[run.md](", "[architecture.md](")
	require.Equal(t, "Controlling a run", opening.FindStringSubmatch(all["../docs/run.md"])[1])
	readme := all["../README.md"]
	require.Contains(t, readme, "(docs/README.md)")
	require.LessOrEqual(t, strings.Count(readme, "\n"), 170, "the README is short")
}

// TestBadges checks what the README's badges say, and that their pictures say the same.
func TestBadges(t *testing.T) {
	read := func(name string) string {
		text, err := os.ReadFile("../" + name)
		require.NoError(t, err)
		return string(text)
	}
	facts := map[string]string{
		"license": firstMatch(t, read("LICENSE"), `^(.*) License\n`),
		"Linux":   firstMatch(t, read("e2e/vm/suite.go"), `"(5\.10)", a}`) + " or later",
		"Go":      firstMatch(t, read("go.mod"), `\ngo (\d+\.\d+)`),

		"one static binary": firstMatch(t, read("e2e/binary_test.go"), `int64\((\d+)_000_000\)`) + " MB",
	}
	for _, page := range []string{"README.md", "docs/install.md"} {
		require.Contains(t, read(page), " golang:"+facts["Go"]+" make`", page)
	}
	badges := regexp.MustCompile(`\[!\[([^:\]]+): ([^\]]+)\]\(https://img\.shields\.io/badge/([^)]+)-blue\)\]`).FindAllStringSubmatch(read("README.md"), -1)
	require.Len(t, badges, len(facts))
	for _, badge := range badges {
		require.Equal(t, facts[badge[1]], badge[2], badge[1])
		text, err := url.PathUnescape(badge[3])
		require.NoError(t, err)
		require.Equal(t, badge[1]+"-"+badge[2], text)
	}
}

func firstMatch(t *testing.T, text, pattern string) string {
	t.Helper()
	found := regexp.MustCompile(pattern).FindStringSubmatch(text)
	require.NotNil(t, found, pattern)
	return found[1]
}

// TestRoomTable checks that the table of rooms in docs/architecture.md has those of rooms,
// in their order.
func TestRoomTable(t *testing.T) {
	_, table, ok := strings.Cut(readPages(t)["../docs/architecture.md"], "\n| room | contents |\n|---|---|\n")
	require.True(t, ok)
	table, _, _ = strings.Cut(table, "\n\n")
	var lines [][]string
	for line := range strings.Lines(table) {
		cell, _, _ := strings.Cut(strings.TrimPrefix(line, "| "), " |")
		lines = append(lines, strings.Split(strings.ReplaceAll(cell, "`", ""), ", "))
	}
	require.Equal(t, rooms, lines)
}

// TestWalks checks that the walks in docs/architecture.md are those of the code: each visits
// a room once, which makes the calls, and which a room before it imports.
func TestWalks(t *testing.T) {
	_, table, ok := strings.Cut(readPages(t)["../docs/architecture.md"], "\n| walk | room | calls | what happens |\n|---|---|---|---|\n")
	require.True(t, ok)
	table, _, _ = strings.Cut(table, "\n\n")
	walks, sources := 0, ""
	var visited []string
	for line := range strings.Lines(table) {
		cells := strings.Split(line, " | ")
		require.Len(t, cells, 4, line)
		room := strings.Trim(cells[1], "`")
		dir := "../" + room
		if !strings.Contains(room, "/") && room != "runtime" {
			dir = "../cmd/ksnoop/internal/" + room
		}
		if first := strings.TrimPrefix(cells[0], "|") != ""; first {
			walks, visited, sources = walks+1, nil, ""
		} else {
			require.True(t, strings.Contains(sources, strings.TrimPrefix(dir, "..")+`"`), "%s: no room before it imports it", line)
		}
		require.NotContains(t, visited, room, "%s: a second visit", line)
		visited = append(visited, room)
		own := readSources(t, dir)
		calls := regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[2], -1)
		require.NotEmpty(t, calls, line)
		for _, call := range calls {
			require.True(t, strings.Contains(own, call[1]+"("), "%s is not called: %s", call[1], line)
		}
		sources += own
	}
	require.Equal(t, 3, walks)
}
