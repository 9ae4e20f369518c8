package compiler

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"

	"github.com/ksnoop/ksnoop/compiler/spec"
)

// trial is a spec on one back end, with calls that a reference follows.
type trial struct {
	*rig
	ref   *reference
	rnd   *rand.Rand // the same for all back ends
	calls []plannedCall
	tally bool // calls are counted
	want  []expected
	err   error // of the programs, the first one
	// least and most bound the count of calls with unreadable values.
	least, most int
	counted     counted // if calls are measured
}

type plannedCall struct {
	args   [][]byte
	result []byte
}

// run makes all calls.
func (tr *trial) run() error {
	for i := 0; i < len(tr.calls); {
		var err error
		if i, err = tr.do(i); err != nil {
			return err
		}
	}
	return nil
}

// do makes a call, in which there may be others, and is the number of the next.
func (tr *trial) do(i int) (next int, err error) {
	plan := tr.calls[i]
	next = i + 1
	c := &referenceCall{args: plan.args, result: plan.result}
	c.now = tr.moment()
	events, err := tr.ref.enter(c)
	if err != nil {
		return next, err
	}
	leave, frame := tr.enterPlanned(plan)
	if err := tr.note(c, AtEntry); err != nil {
		return next, err
	}
	tr.expect(events, frame)
	tr.ref.k.mem.mutate(tr.rnd)
	if next < len(tr.calls) && tr.rnd.IntN(3) == 0 {
		if next, err = tr.do(next); err != nil {
			return next, err
		}
	}
	c.now = tr.moment()
	if events, err = tr.ref.leave(c); err != nil {
		return next, err
	}
	if err := tr.note(c, AtReturn); err != nil {
		return next, err
	}
	tr.expect(events, frame)
	leave()
	least, most := tr.ref.unreadable(tr.trampoline())
	tr.least, tr.most = tr.least+least, tr.most+most
	return next, nil
}

// note follows what is measured of a call.
func (tr *trial) note(c *referenceCall, at Side) error {
	if tr.ref.measure == NoMeasure {
		return nil
	}
	if at == AtEntry {
		c.numbers, c.compared = map[*spec.Item]formatted{}, map[Side]snapshot{}
	}
	if err := tr.ref.note(at); err != nil {
		return err
	}
	if at == tr.ref.known() {
		tr.ref.count(&tr.counted)
	}
	return nil
}

// expect notes events of the call with a frame.
func (tr *trial) expect(events []expected, frame uint64) {
	if tr.ref.measure != NoMeasure {
		return
	}
	for _, e := range events {
		e.frame = frame
		tr.want = append(tr.want, e)
	}
}

// probe is the one that the reference follows: the last one.
func (tr *trial) probe() *Probe {
	probes := tr.unit.Probes()
	return probes[len(probes)-1]
}

func (tr *trial) trampoline() bool { return tr.probe().Attach.Entry.trampoline() }

// own are the records of the probe.
func (tr *trial) own() [][]byte {
	return slices.DeleteFunc(slices.Clone(tr.records), func(rec []byte) bool {
		n := binary.LittleEndian.Uint32(rec)
		return n < uint32(len(tr.unit.Events)) && tr.unit.Events[n].Probe != tr.probe()
	})
}

// moment lets time pass and sometimes changes the CPU and the names.
func (tr *trial) moment() moment {
	tr.time += uint64(tr.rnd.IntN(5))
	if tr.rnd.IntN(4) == 0 {
		tr.cpu, tr.uid = uint32(tr.rnd.IntN(4)), uint32(tr.rnd.IntN(3))
		tr.comm = pick(tr.rnd, []string{"worker", "", "a", "fifteen letters", "ab c"})
	}
	return moment{tr.pidtid, tr.cpu, tr.uid, tr.comm, tr.time}
}

// enterPlanned runs the entry programs. It is the function that returns, and
// the address by which both sides know the call.
func (tr *trial) enterPlanned(plan plannedCall) (leave func(), id uint64) {
	on := tr.stack
	addr, frame := on.push()
	ctx, stack := frame[:stackFrame/2], frame[stackFrame/2:]
	sp := addr + stackFrame/2
	regs := slices.Repeat([]byte{0xdd}, registersSize)
	binary.LittleEndian.PutUint64(regs[tr.arch.SP:], sp)
	words := append(ctx[:0], slices.Concat(plan.args...)...)
	if tr.arch == ARM64 {
		placeAAPCS64(plan.args, regs, stack)
	} else {
		tr.placeSystemV(plan.args, regs, stack)
	}
	probe := tr.alloc(regs)
	tr.atRet = false
	tr.runSide(addr, probe, Fentry, Kprobe, KprobeMulti, Session)
	if id = sp; tr.trampoline() {
		id = addr
	}
	unwanted := len(tr.unit.Attachments) == 1 && tr.unit.Attachments[0].Kind == Session && tr.result == 1
	return func() {
		on.depth--
		copy(regs, slices.Repeat([]byte{0xdd}, registersSize)) // registers do not survive the function
		copy(ctx[len(words):], plan.result)
		for i := range len(plan.result) / 8 {
			copy(regs[tr.arch.RetRegs[i]:], plan.result[8*i:][:8])
		}
		binary.LittleEndian.PutUint64(regs[tr.arch.SP:], sp+popped(tr.arch))
		tr.atRet = true
		if !unwanted {
			tr.runSide(addr, probe, Fexit, Kretprobe, KretprobeMulti, Session)
		}
	}, id
}

// placeSystemV puts arguments where x86-64 has them (AMD64 ABI, 3.2.3).
func (tr *trial) placeSystemV(args [][]byte, regs, stack []byte) {
	free := AMD64.ArgRegs
	if t := tr.ref.fn.result; t != nil && t.inMemory() {
		free = free[1:]
	}
	stacked := stack[8:8] // behind the return address
	for i, a := range args {
		if n := len(a) / 8; n <= len(free) && !tr.ref.fn.params[i].typ.inMemory() {
			for j := range n {
				copy(regs[free[j]:], a[8*j:][:8])
			}
			free = free[n:]
		} else {
			stacked = append(stacked, a...)
		}
	}
}

// placeAAPCS64 puts arguments of at most two words where arm64 has them
// (AAPCS64, 6.8.2): from the first one on that has no registers, all are on the
// stack.
func placeAAPCS64(args [][]byte, regs, stack []byte) {
	const registers = 8
	at, stacked := 0, stack[:0]
	for _, a := range args {
		if at+len(a)/8 > registers {
			at = registers
			stacked = append(stacked, a...)
			continue
		}
		copy(regs[8*at:], a)
		at += len(a) / 8
	}
}

// runSide runs the programs of one side.
func (tr *trial) runSide(trampoline, regs uint64, kinds ...Kind) {
	if err := tr.runEach(tr.probe().Func, trampoline, regs, kinds...); tr.err == nil {
		tr.err = err
	}
}
