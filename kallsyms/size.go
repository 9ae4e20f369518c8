package kallsyms

// Size returns how many bytes there are from s to the next symbol of the kernel,
// or of the module that s is in; 0 if there is none near. The answer is right
// only if everything was kept.
func (t *Table) Size(s Symbol) uint64 {
	t.byAddr.once.Do(func() { t.byAddr.fill(t) })
	order := t.byAddr.order
	next := t.behind(s.Addr)
	if next == len(order) {
		return 0
	}
	after := t.symbol(order[next])
	if after.Module != s.Module || after.Addr-s.Addr > reach {
		return 0
	}
	return after.Addr - s.Addr
}
