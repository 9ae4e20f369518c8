package suite

import "strings"

// String returns s as a probe file, without comments, and with its statements in
// the order of the reference.
func (s *Suite) String() string {
	lines := []string{header + " " + version, "suite " + s.Name}
	for _, r := range s.Requires {
		lines = append(lines, r.String())
	}
	if s.Run != nil {
		lines = append(lines, s.Run.String())
	}
	if s.Settle > 0 {
		lines = append(lines, "settle "+duration(s.Settle))
	}
	for _, a := range s.Asserts {
		lines = append(lines, a.String())
	}
	for _, m := range s.Metrics {
		lines = append(lines, m.String())
	}
	for _, e := range s.Evidence {
		lines = append(lines, e.String())
	}
	for _, x := range s.XFails {
		lines = append(lines, x.String())
	}
	return strings.Join(lines, "\n") + "\n"
}

// String returns the line of the requirement.
func (r *Require) String() string {
	switch r.Kind {
	case RequireFunc:
		return "require func " + r.Name
	case RequireBTF:
		return "require btf " + r.Record + " " + r.Name
	default:
		return "require kernel " + r.Op.String() + " " + r.Version.String()
	}
}
