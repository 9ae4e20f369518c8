package suite

import (
	"slices"

	"github.com/ksnoop/ksnoop/compiler/spec"
)

// onWords has the word for each XFailOn.
var onWords = []string{Always: "always", OnQEMU: "qemu", OnKernel: "kernel"}

// xfail parses a line that says where an assertion is expected to fail.
func (p *parser) xfail(l *line) (err error) {
	x := &XFail{From: l.from}
	if x.Name, err = p.use(l, true); err != nil {
		return err
	}
	if w := l.token(); w.text != "on" {
		return l.missing("'on'", w).WithHint(`write xfail %s on qemu "why"`, x.Name)
	}
	on, err := l.oneOf("a place", onWords)
	if err != nil {
		return err
	}
	switch on {
	case "qemu":
		x.On = OnQEMU
	case "kernel":
		x.On = OnKernel
		if x.Op, x.Version, err = l.kernel(); err != nil {
			return err
		}
	}
	if x.Reason, err = l.reason(); err != nil {
		return err
	}
	p.suite.XFails = append(p.suite.XFails, x)
	return l.rest("the reason")
}

// reason parses the reason, a string.
func (l *line) reason() (string, error) {
	if l.end() {
		return "", l.missing("the reason", word{}).WithHint(`put it in quotes: "emulated clock"`)
	}
	start := l.pos
	if l.text[start] != '"' && l.text[start] != '\'' {
		return "", l.errorf(l.word().at, "the reason is not in quotes").WithHint("write %s", quote(l.text[start:]))
	}
	w, _, err := l.unquoted()
	if err != nil {
		return "", err
	}
	if w.text == "" {
		return "", l.errorf(w.at, "the reason is empty")
	}
	return w.text, nil
}

// String returns the line of x.
func (x *XFail) String() string {
	text := "xfail " + x.Name + " on " + onWords[x.On]
	if x.On == OnKernel {
		text += " " + x.Op.String() + " " + x.Version.String()
	}
	return text + " " + quote(x.Reason)
}

// Machine describes the machine that a suite runs on.
type Machine struct {
	Release  string // of the kernel, such as 6.12.3-cloud-amd64
	Emulated bool   // whether its CPU is emulated
}

// holds reports whether x applies to a machine.
func (x *XFail) holds(m Machine) bool {
	switch x.On {
	case OnQEMU:
		return m.Emulated
	case OnKernel:
		return x.Version.Holds(x.Op, m.Release)
	default:
		return true
	}
}

// Expected reports whether an assertion is expected to fail on a machine, and
// returns the reason.
func (s *Suite) Expected(name string, m Machine) (reason string, ok bool) {
	for _, x := range s.XFails {
		if x.Name == name && x.holds(m) {
			return x.Reason, true
		}
	}
	return "", false
}

// HasAssert reports whether there is an assertion called name. If not, near is a
// similar name of an assertion, or empty.
func (s *Suite) HasAssert(name string) (near string, ok bool) {
	var names []string
	for _, a := range s.Asserts {
		names = append(names, a.Name)
	}
	near, _ = spec.Nearest(name, slices.Values(names))
	return near, slices.Contains(names, name)
}
