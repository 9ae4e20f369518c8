package runtime

import "github.com/ksnoop/ksnoop/compiler"

// Objects returns the number of objects that the spec has chosen so far, and the
// number of all those followed that have not ended. It makes no system call.
func (s *Session) Objects() (begun, live int, err error) {
	if s.objects == nil {
		return 0, 0, nil
	}
	err = s.objects.use(func(load func(off int) uint64) {
		begun = int(load(compiler.ObjectStarted))
		for i := range compiler.MostObjects {
			if load(compiler.ObjectAddrs+8*i) != 0 {
				live++
			}
		}
	})
	return begun, live, err
}
