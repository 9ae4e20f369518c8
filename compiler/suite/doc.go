// Package suite parses probe files, which say what a test expects of the kernel,
// and judges their assertions. It does not depend on a kernel: the caller passes
// it what was counted while the test ran.
//
//	s, err := suite.Parse("tcp.probes", text)
//	for _, a := range s.Asserts {
//		result := a.Judge(observed[a.Name]) // pass, fail, skip or error
//	}
//	status := suite.ExitStatus(results, false)
//
// docs/verdicts.md describes the language and how verdicts are reached.
package suite
