package render

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ksnoop/ksnoop/btfdump"
	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/runtime"
)

// Table adds the rows as lines in columns.
func (p *printer) Table(t *runtime.Table) error {
	text, err := p.tables.text(t, p.look.Width, p.until(t.Time))
	p.text = append(p.text, text...)
	return err
}

// Table adds a line for each row.
func (p *compactPrinter) Table(t *runtime.Table) error {
	tt, err := p.tables.cells(t, 0)
	if err != nil {
		return err
	}
	for _, row := range tt.rows {
		start := len(p.text)
		p.time(t.Time, 16)
		p.text = append(p.text, PlainName(t.Label)...)
		for i, cell := range row.cells {
			p.text = append(append(append(append(p.text, ' '), tt.names[i]...), '='), cell...)
		}
		for _, line := range row.below {
			p.text = append(append(p.text, ' '), strings.Join(strings.Fields(line), " ")...)
		}
		p.text = append(wrapValues(p.text, start, p.look.Width), '\n')
	}
	for _, note := range tt.notes {
		p.text = append(append(append(p.text, "# "...), note...), '\n')
	}
	return nil
}

// tablePrinter prints tables as text.
type tablePrinter struct {
	values  *compactPrinter // prints the parts of keys
	arrange Arrangement
}

func newTablePrinter(o Options) *tablePrinter {
	options := o.Values
	options.Compact, options.IndentLevel, options.SkipNames = true, 0, false
	return &tablePrinter{values: &compactPrinter{forms: newForms(options), names: o.names()}, arrange: o.Arrange}
}

// until returns the time of day of a table, if it is asked for.
func (p *page) until(at time.Duration) string {
	if p.look.Time != Wall {
		return ""
	}
	return " until " + string(appendClock(nil, p.wallTime(at)))
}

// text returns a table for a terminal of width columns, or of any width if that is 0.
// until is the text after the time that it took.
func (p *tablePrinter) text(t *runtime.Table, width int, until string) ([]byte, error) {
	tt, err := p.cells(t, width)
	if err != nil {
		return nil, err
	}
	var text []byte
	text = fmt.Appendf(text, "%s in %s%s:\n", PlainName(t.Label), timeText(float64(t.Time-t.Since)), until)
	return append(tt.append(text, width), '\n'), nil
}

// cells returns the columns of a table and what is below its rows.
func (p *tablePrinter) cells(t *runtime.Table, width int) (*tableText, error) {
	tt := &tableText{}
	if t.ByFunction {
		tt.column(functionColumn, false)
	}
	for _, v := range t.Key {
		if !isStack(v) {
			tt.column(v.Name, isNumber(v))
		}
	}
	tt.keys = len(tt.names)
	for _, a := range t.Aggregates {
		if a.Kind != compiler.Hist && a.Kind != compiler.Linear {
			tt.column(a.Name, true)
		}
	}
	rows, more := p.arrange.arrange(t, &p.values.names)
	for _, row := range rows {
		r, err := p.row(t, row, width)
		if err != nil {
			return nil, err
		}
		tt.rows = append(tt.rows, r)
	}
	of := counted(t)
	if len(rows) == 0 {
		tt.notes = append(tt.notes, "no "+of)
	}
	if more > 0 {
		tt.notes = append(tt.notes, moreRows(more))
	}
	if t.Full > 0 {
		tt.notes = append(tt.notes, inNoRow(t.Full, of, "there was no room for its key; --keys makes more", "there was no room for their keys; --keys makes more"))
	}
	if t.Faulted > 0 {
		tt.notes = append(tt.notes, inNoRow(t.Faulted, of, "a value of it could not be read", "a value of theirs could not be read"))
	}
	return tt, nil
}

// counted returns what a table counts: calls, or the objects of an iterator.
func counted(t *runtime.Table) string {
	if strings.HasPrefix(t.Label, "iter:") {
		return "objects"
	}
	return "calls"
}

// inNoRow returns a note about n calls, or objects, with the reason for one or for many.
func inNoRow(n uint64, what, one, many string) string {
	if n == 1 {
		return "1 " + strings.TrimSuffix(what, "s") + " is in no row: " + one
	}
	return fmt.Sprintf("%d %s are in no row: %s", n, what, many)
}

func moreRows(n int) string {
	if n == 1 {
		return "1 more row"
	}
	return fmt.Sprintf("%d more rows", n)
}

func (tt *tableText) column(name string, right bool) {
	tt.names = append(tt.names, PlainName(name))
	tt.right = append(tt.right, right)
}

func (p *tablePrinter) row(t *runtime.Table, row *runtime.Row, width int) (r textRow, err error) {
	if t.ByFunction {
		r.cells = append(r.cells, PlainName(row.Func))
	}
	for i := range row.Key {
		if isStack(row.Key[i].Value) {
			lines, err := p.stack(&row.Key[i])
			if err != nil {
				return r, err
			}
			r.below = append(r.below, lines...)
			continue
		}
		text, err := p.key(&row.Key[i])
		if err != nil {
			return r, err
		}
		r.cells = append(r.cells, text)
	}
	for i, a := range t.Aggregates {
		if a.Kind != compiler.Hist && a.Kind != compiler.Linear {
			r.cells = append(r.cells, numberText(a, row, i))
			continue
		}
		r.blocks = true
		r.below = append(r.below, PlainName(a.Name)+":")
		for _, line := range histogram(a, row.Cells[i].Buckets, max(0, width-len(belowIndent)-2)) {
			r.below = append(r.below, "  "+line)
		}
	}
	return r, nil
}

// key returns a part of a key on one line, without its type.
func (p *tablePrinter) key(v *runtime.Value) (string, error) {
	p.values.text = p.values.text[:0]
	if err := p.values.value(v, process{}); err != nil {
		return "", err
	}
	return string(p.values.text), nil
}

// stack returns the lines of a stack, as compact output has them between brackets.
func (p *tablePrinter) stack(v *runtime.Value) ([]string, error) {
	text, err := p.key(v)
	if err != nil || !strings.HasPrefix(text, "[") {
		return []string{text}, err
	}
	if text = text[1 : len(text)-1]; text == "" { // the last frame may end with that of a module
		text = "no frames"
	}
	return strings.Split(text, ", "), nil
}

func isStack(v *compiler.Value) bool { return v.Base.Builtin == compiler.KernelStack }

// isNumber reports whether a part of a key is shown as a number.
func isNumber(v *compiler.Value) bool {
	return v.Scalar != nil && v.Text == compiler.NoText && (v.Format == "" || v.Format == "d" || v.Format == "u" || v.Format == "x")
}

// numberText returns an aggregate that is a number. Times are in their units.
func numberText(a *compiler.Aggregate, row *runtime.Row, i int) string {
	n := row.Cells[i].Number
	switch {
	case a.Kind == compiler.Avg && a.Unit() == "ns":
		return timeText(row.Mean(n))
	case a.Kind == compiler.Avg:
		return strconv.FormatFloat(row.Mean(n), 'f', 1, 64)
	case a.Kind != compiler.Count && a.Unit() == "ns":
		return timeText(n.Float64())
	}
	return n.String()
}

// belowIndent is before the lines below a row.
const belowIndent = "      "

// Table adds a line with all rows.
func (p *jsonPrinter) Table(t *runtime.Table) error {
	p.clock()
	p.text = btfdump.AppendJSONString(append(p.text, `{"type":"table","func":`...), []byte(t.Label))
	p.text = strconv.AppendInt(append(p.text, `,"since":`...), t.Since.Nanoseconds(), 10)
	p.when(`,"time":`, t.Time)
	p.text = append(p.text, `,"rows":[`...)
	rows, more := p.arrange.arrange(t, &p.names)
	var taken []string
	if t.ByFunction {
		taken = []string{"function"}
	}
	key := newJSONItems(t.Key, taken...)
	for i, row := range rows {
		if i > 0 {
			p.text = append(p.text, ',')
		}
		if err := p.row(t, row, key); err != nil {
			return err
		}
	}
	p.text = append(p.text, ']')
	for _, n := range []struct {
		name  string
		count uint64
	}{{"more", uint64(more)}, {"full", t.Full}, {"faulted", t.Faulted}} {
		if n.count > 0 {
			p.text = strconv.AppendUint(append(append(append(p.text, `,"`...), n.name...), `":`...), n.count, 10)
		}
	}
	p.text = append(p.text, "}\n"...)
	return nil
}

// row adds an object with the key of a row and its aggregates.
func (p *jsonPrinter) row(t *runtime.Table, row *runtime.Row, key []jsonItem) error {
	p.text = append(p.text, `{"key":{`...)
	if t.ByFunction {
		p.text = btfdump.AppendJSONString(append(p.text, `"function":`...), []byte(row.Func))
	}
	for i := range row.Key {
		p.key(jsonName(key[i].name))
		if err := p.value(&row.Key[i], process{}); err != nil {
			return err
		}
	}
	p.text = append(p.text, '}')
	for i, a := range t.Aggregates {
		p.key(jsonName(aggregateName(t, a)))
		p.cell(a, row, i)
	}
	start := p.open(`,"truncated":{`)
	for i := range row.Key {
		if v := &row.Key[i]; v.Cut {
			p.key(jsonName(key[i].name))
			p.truncated(v)
		}
	}
	p.close(start)
	p.text = append(p.text, '}')
	return nil
}

func jsonName(name string) string { return string(quoteJSON(nil, name)) }

// aggregateName returns the member of a row for an aggregate: its kind, or all of it
// if the spec has several of the kind.
func aggregateName(t *runtime.Table, a *compiler.Aggregate) string {
	for _, other := range t.Aggregates {
		if other != a && other.Kind == a.Kind {
			return a.Name
		}
	}
	return a.Kind.String()
}

func (p *jsonPrinter) cell(a *compiler.Aggregate, row *runtime.Row, i int) {
	c := &row.Cells[i]
	switch a.Kind {
	case compiler.Avg:
		p.text = strconv.AppendFloat(p.text, row.Mean(c.Number), 'f', -1, 64)
	case compiler.Hist, compiler.Linear:
		p.text = append(p.text, '[')
		for n, b := range c.Buckets {
			if n > 0 {
				p.text = append(p.text, ',')
			}
			p.text = fmt.Appendf(p.text, `{"from":%s,"to":%s,"count":%d}`, b.From, b.To, b.Count)
		}
		p.text = append(p.text, ']')
	default:
		p.text = append(p.text, c.Number.String()...)
	}
}
