package main

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

// described matches the output of git describe: a tag and the commits since.
var described = regexp.MustCompile(`^v?(\d+(?:\.\d+)+)(?:-([a-z][a-z0-9.]*))??(?:-(\d+)-(g[0-9a-f]+))?(-dirty)?$`)

// packageVersion returns a version that package managers can compare: a pre-release
// comes before its release, commits after a tag come after it, and without a tag
// the commit's day decides.
func packageVersion(version string, at time.Time) string {
	m := described.FindStringSubmatch(version)
	if m == nil {
		commit, dirty := strings.CutSuffix(version, "-dirty")
		v := fmt.Sprintf("0~%s.%s", at.Format("20060102"), strings.ReplaceAll(commit, "-", "."))
		if dirty {
			v += "+dirty"
		}
		return v
	}
	v := m[1]
	if m[2] != "" {
		v += "~" + m[2]
	}
	if m[3] != "" {
		v += "+" + m[3] + "." + m[4]
	}
	return v + strings.Replace(m[5], "-", "+", 1)
}
