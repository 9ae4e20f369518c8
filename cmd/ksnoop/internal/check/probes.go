package check

import (
	"os"
	"path/filepath"

	"github.com/ksnoop/ksnoop/cmd/ksnoop/internal/target"
	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/suite"
	"github.com/ksnoop/ksnoop/compiler/suite/bind"
)

// probeFileSubjects reads a probe file. ok reports whether the name is that of a probe
// file; all others are specs.
func probeFileSubjects(name string) (subjects []*subject, ok bool, err error) {
	if !IsProbeFile(name) {
		return nil, false, nil
	}
	text, err := target.ReadSpecs(name, nil)
	if err != nil {
		return nil, true, err
	}
	probes, err := suite.Parse(name, text)
	if err != nil {
		return nil, true, err
	}
	for _, a := range probes.Asserts {
		parts := []part{partOf(a.Path, a.Kind.Measure())}
		text := suite.PathText(a.Path)
		if a.Row != nil {
			parts[0].row = a.Row.Item
		}
		if a.Other != nil {
			parts = append(parts, partOf([]*suite.Spec{a.Other}, compiler.Calls))
			text += " ~ " + a.Other.String()
		}
		subjects = append(subjects, &subject{name: a.Name, text: text, parts: parts, from: a.From})
	}
	for _, m := range probes.Metrics {
		subjects = append(subjects, &subject{name: m.Name, text: suite.PathText(m.Path), parts: []part{partOf(m.Path, m.Kind.Measure())}, from: m.From})
	}
	for _, e := range probes.Evidence {
		subjects = append(subjects, &subject{name: "evidence of " + e.Name, text: suite.PathText(e.Path), parts: []part{partOf(e.Path, compiler.NoMeasure)}, from: e.From})
	}
	for _, s := range subjects {
		s.unmet = func(kernel *compiler.Target, release string) string {
			return bind.Unmet(probes.Requires, kernel, release)
		}
	}
	return subjects, true, nil
}

// IsProbeFile reports whether name is the name of a probe file: it has their suffix,
// or the file begins as one.
func IsProbeFile(name string) bool {
	if filepath.Ext(name) == ".probes" {
		return true
	}
	info, err := os.Stat(name)
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	text, err := target.ReadSpecs(name, nil)
	return err == nil && target.IsProbeFile(text)
}

// partOf returns the functions of a spec, or of a chain, with what is measured of
// them.
func partOf(path []*suite.Spec, measure compiler.Measure) part {
	part := part{measure: measure, probes: true}
	for _, s := range path {
		part.functions = append(part.functions, s.AnyOf)
	}
	return part
}
