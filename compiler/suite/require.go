package suite

import (
	"slices"
	"strings"

	"github.com/ksnoop/ksnoop/compiler/spec"
)

var (
	requireWords = []string{"kernel", "func", "btf"}
	typeWords    = []string{"struct", "union", "enum", "typedef"}
	comparisons  = []spec.Op{spec.Eq, spec.Ne, spec.Lt, spec.Le, spec.Gt, spec.Ge}
	orders       = comparisons[2:]
)

// require parses a requirement on the kernel.
func (p *parser) require(l *line) (err error) {
	r := &Require{From: l.from}
	what, err := l.oneOf("something to require", requireWords)
	if err != nil {
		return err
	}
	switch what {
	case "kernel":
		r.Op, r.Version, err = l.kernel()
	case "func":
		r.Kind = RequireFunc
		r.Name, err = l.symbol("the name of a function", true)
	case "btf":
		r.Kind = RequireBTF
		if r.Keyword, err = l.oneOf("a kind of type", typeWords); err == nil {
			r.Name, err = l.symbol("the name of a type", false)
		}
	}
	if err != nil {
		return err
	}
	p.suite.Requires = append(p.suite.Requires, r)
	return l.rest("what is required")
}

// kernel parses an operator and a version.
func (l *line) kernel() (op spec.Op, v Version, err error) {
	if op, err = l.operator(comparisons); err != nil {
		return op, v, err
	}
	w := l.token()
	v, ok := parseVersion(w.text)
	switch {
	case w.text == "":
		return op, v, l.missing("the version of the kernel", w)
	case !ok:
		return op, v, l.errorf(w.at, "%s is not a version of a kernel", spec.Quote(w.text)).WithHint("write 6.12 or 6.12.3")
	}
	return op, v, nil
}

// operator parses an operator that must be one of ops.
func (l *line) operator(ops []spec.Op) (spec.Op, error) {
	w := l.token()
	var words []string
	for _, op := range ops {
		if op.String() == w.text {
			return op, nil
		}
		words = append(words, op.String())
	}
	err := l.missing("a comparison", w)
	switch {
	case w.text == "=" && slices.Contains(ops, spec.Eq):
		return 0, err.WithMeant("==")
	case w.text == "=<" || w.text == "=>":
		return 0, err.WithMeant("%s=", w.text[1:])
	}
	return 0, err.WithHint("the comparisons are %s", strings.Join(words, " "))
}

// symbol parses the name of a type or of a function, which may have its module
// before it.
func (l *line) symbol(what string, function bool) (string, error) {
	w := l.word()
	module, name, qualified := strings.Cut(w.text, ":")
	if !qualified {
		module, name = "m", w.text
	}
	switch {
	case w.text == "":
		return "", l.missing(what, w)
	case !isSymbol(name, function), qualified && !function, !isSymbol("_"+module, false):
		return "", l.errorf(w.at, "%s is not %s", spec.Quote(w.text), what)
	}
	return w.text, nil
}

// isSymbol reports whether text is a C identifier. If dots is true it may have dots,
// as the names of compilers' clones do.
func isSymbol(text string, dots bool) bool {
	for i := range len(text) {
		c := text[i]
		if c == '-' || c == '.' && !dots || !isNameByte(c) || i == 0 && strings.IndexByte(digits+".", c) >= 0 {
			return false
		}
	}
	return text != ""
}

// String returns the line of the requirement.
func (r *Require) String() string {
	switch r.Kind {
	case RequireFunc:
		return "require func " + r.Name
	case RequireBTF:
		return "require btf " + r.Keyword + " " + r.Name
	default:
		return "require kernel " + r.Op.String() + " " + r.Version.String()
	}
}
