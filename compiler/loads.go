package compiler

// Loads tells which values the program of a side reads by plain loads. It reads the
// others by a helper, which can fail.
type Loads struct {
	// Arguments is set for paths that begin with an argument or the result.
	Arguments bool
	// Kept is set for paths that begin with a word of the entry: the program has the
	// arguments itself, and takes nothing from a stash. See [Base].Kept.
	Kept bool
}

// Read reports whether a value is read by plain loads.
func (l Loads) Read(v *Value) bool {
	switch {
	case v.Base.Builtin == Task: // in any program
	case v.Base.Kept != nil && !l.Kept, !l.Arguments:
		return false
	}
	return v.direct()
}

// direct reports whether plain loads can read all of the path: from an argument, in a
// trampoline program; from the thread's task_struct, in any program; from a base that
// is kept, in a fexit program that has the arguments itself. The verifier trusts the
// pointer to the task_struct, but treats some pointers in it as possibly NULL, so only
// one load is plain there.
func (v *Value) direct() bool {
	switch {
	case len(v.Path) == 0:
		return false
	case v.Base.Builtin == Task:
		return len(v.Path) == 1 && v.Path[0].Direct
	}
	param := v.Base.Param
	if v.Base.Kept != nil {
		param = v.Base.Kept.Base.Param
	}
	if param == nil || !param.Typed {
		return false
	}
	for _, a := range v.Path {
		if !a.Direct {
			return false
		}
	}
	return true
}

// mayFault reports whether reading a value may fail. Words that are passed can always be
// read, and so can the thread's task_struct.
func (v *Value) mayFault() bool {
	for o := range v.Values {
		reads := len(o.Path)
		if reads > 0 && o.Path[reads-1].Addr {
			reads--
		}
		if reads > 1 || reads == 1 && o.Base.Builtin != Task {
			return true
		}
	}
	return false
}
