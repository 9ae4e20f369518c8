package report

import (
	"fmt"
	"io"
	"strings"
)

// mostAnnotations is the largest number of errors that GitHub shows for a step.
const mostAnnotations = 10

// mostSummary is the largest size of the table in bytes: if a step's summary is
// larger than a megabyte, GitHub drops all of it.
const mostSummary = 512 << 10

// github prints results that are not ok as annotations, at the end, and a table of
// all results in the step's summary.
type github struct {
	w, summary io.Writer // summary may be nil
	suite      string
	results    []Result
	counts     Counts
}

func (g *github) Begin(s Suite) error {
	g.suite = s.Name
	return nil
}

func (g *github) Result(r Result) error {
	g.counts[r.Status]++
	g.results = append(g.results, r)
	return nil
}

func (g *github) End() error {
	if _, err := io.WriteString(g.w, g.annotations()); err != nil {
		return err
	}
	if g.summary == nil {
		return nil
	}
	_, err := io.WriteString(g.summary, g.table())
	return err
}

// annotations returns as many annotations as GitHub shows. The last one has the
// number of those left out.
func (g *github) annotations() string {
	var all []string
	for _, r := range g.results {
		if !r.Status.OK() {
			all = append(all, g.annotation(r))
		}
	}
	if more := len(all) - mostAnnotations + 1; more > 1 {
		all = append(all[:mostAnnotations-1], fmt.Sprintf("::error title=%s::%d more are not ok\n", property(g.suite), more))
	}
	return strings.Join(all, "")
}

func (g *github) annotation(r Result) string {
	properties := ""
	if r.File != "" {
		properties = "file=" + property(r.File) + ","
	}
	if r.File != "" && r.Line > 0 {
		properties += fmt.Sprintf("line=%d,", r.Line)
	}
	words := r.Text
	if r.Status != Fail || words == "" {
		words = strings.Join(nonEmpty(r.Status.String(), r.Text), ": ")
	}
	text := strings.Join(append([]string{line(words)}, noteLines(r.Notes)...), "\n")
	return fmt.Sprintf("::error %stitle=%s::%s\n", properties, property(g.suite+"."+r.Name), data.Replace(text))
}

// Escapes for the message of a GitHub command, and for its properties.
var (
	data       = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	properties = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)

func property(text string) string { return properties.Replace(line(text)) }

// table returns the results as a Markdown table.
func (g *github) table() string {
	var text strings.Builder
	fmt.Fprintf(&text, "### %s: %s\n\n| status | name | what |\n|---|---|---|\n", cell(g.suite), g.counted())
	for i, r := range g.results {
		row := fmt.Sprintf("| %s | %s | %s |\n", r.Status, cell(r.Name), cell(r.Text))
		if text.Len()+len(row) > mostSummary {
			fmt.Fprintf(&text, "\n%d more are left out.\n", len(g.results)-i)
			break
		}
		text.WriteString(row)
	}
	return text.String() + "\n"
}

// counted returns the number of results of each status as text.
func (g *github) counted() string {
	var parts []string
	for s, n := range g.counts {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, Status(s)))
		}
	}
	if parts == nil {
		return "no results"
	}
	return strings.Join(parts, ", ")
}

// markdown escapes characters that have a meaning in a cell.
var markdown = strings.NewReplacer(`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "~", `\~`, "[", `\[`, "]", `\]`,
	"<", `\<`, ">", `\>`, "|", `\|`, "&", `\&`, "@", `\@`, "#", `\#`, "$", `\$`, ":", `\:`)

func cell(text string) string { return markdown.Replace(line(text)) }
