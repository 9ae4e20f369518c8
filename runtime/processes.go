package runtime

import "fmt"

// Process finds the kernel's id of the process that goes by a number in
// ksnoop's pid namespace.
func (k *Kernel) Process(number uint32) (uint32, error) {
	tasks, err := k.Tasks()
	if err != nil {
		return 0, err
	}
	t, ok := findTask(tasks, number)
	switch {
	case !ok:
		return 0, fmt.Errorf("process %d does not exist: --comm NAME traces processes by their name, also those to come", number)
	case t.TID != t.PID:
		return 0, fmt.Errorf("%d is a thread, not a process: --tid traces it alone", number)
	}
	return t.PID, nil
}

// Thread finds the kernel's id of a thread, as [Kernel.Process] does.
func (k *Kernel) Thread(number uint32) (uint32, error) {
	tasks, err := k.Tasks()
	if err != nil {
		return 0, err
	}
	t, ok := findTask(tasks, number)
	if !ok {
		return 0, fmt.Errorf("thread %d does not exist: --comm NAME traces threads by their name, also those to come", number)
	}
	return t.TID, nil
}

func findTask(tasks []Task, number uint32) (Task, bool) {
	for _, t := range tasks {
		if t.Number == number {
			return t, true
		}
	}
	return Task{}, false
}

// family is a process and its descendants, of those that are not among known
// yet.
func family(tasks []Task, root uint32, known map[uint32]bool) []Task {
	children := map[uint32][]Task{}
	var found []Task
	for _, t := range tasks {
		switch {
		case t.TID != t.PID:
		case t.PID == root:
			found = append(found, t)
		default:
			children[t.Parent] = append(children[t.Parent], t)
		}
	}
	for i := 0; i < len(found); i++ { // it grows
		found = append(found, children[found[i].PID]...)
	}
	var unknown []Task
	for _, t := range found {
		if !known[t.PID] {
			unknown = append(unknown, t)
		}
	}
	return unknown
}
