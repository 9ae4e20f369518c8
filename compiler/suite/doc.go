// Package suite is the language of probe files, which say what a test expects of
// the kernel, and the judge that says whether it was so. It knows no kernel:
// what was counted while the test ran is handed to it.
//
//	s, err := suite.Parse("tcp.probes", text)
//	for _, a := range s.Asserts {
//		result := a.Judge(observed[a.Name]) // pass, fail, skip or error
//	}
//	status := suite.ExitStatus(results, false)
//
// docs/verdicts.md describes the language, and what a verdict rests on.
package suite
