// Package runtime runs compiled units on this machine's kernel: it describes
// the kernel as a [compiler.Target], loads and attaches a [compiler.Unit], and
// reads and decodes the records that its programs write.
//
//	kernel, err := runtime.OpenKernel()
//	target, err := kernel.Target(resolve.Symbols(traces))
//	// resolve and compile a unit against target
//	session, err := runtime.Load(unit, kernel)
//	defer session.Close()
//	_, err = session.Attach()
//	for ev := new(runtime.Event); session.Read(ev) == nil; {
//		// use ev before the next Read
//	}
package runtime
