package codegen

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"

	"github.com/ksnoop/ksnoop/compiler"
	"github.com/ksnoop/ksnoop/compiler/spec"
)

// trial runs a spec on one back end, with calls that a reference evaluates.
type trial struct {
	*rig
	ref         *reference
	rnd         *rand.Rand // the same for all back ends
	calls       []plannedCall
	countsCalls bool // whether calls are counted
	want        []expected
	err         error // first error of the programs
	// least and most bound the count of calls with unreadable values.
	least, most int
	counted     counted // expected counts, if calls are measured
	// rate is how many events of each kind may be shown in a second, or 0. asked
	// counts those that could be, by second, and limited those that are too many.
	rate    int
	asked   map[compiler.EventKind]map[uint64]int
	limited map[compiler.EventKind]uint64
}

type plannedCall struct {
	args   [][]byte
	result []byte
}

// run makes all calls.
func (tr *trial) run() error {
	if tr.ref.fn.iterator {
		return tr.iterate()
	}
	for i := 0; i < len(tr.calls); {
		var err error
		if i, err = tr.do(i); err != nil {
			return err
		}
	}
	return nil
}

// do makes a call, during which there may be others, and returns the index of
// the next.
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
	if err := tr.note(c, compiler.AtEntry); err != nil {
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
	if err := tr.note(c, compiler.AtReturn); err != nil {
		return next, err
	}
	tr.expect(events, frame)
	leave()
	least, most := tr.ref.unreadable(tr.ref.conds(), tr.trampoline())
	tr.least, tr.most = tr.least+least, tr.most+most
	return next, nil
}

// note records what is measured of a call.
func (tr *trial) note(c *referenceCall, at compiler.Side) error {
	if tr.ref.measure == compiler.NoMeasure {
		return nil
	}
	if at == compiler.AtEntry {
		c.numbers, c.compared, c.keys = map[*spec.Item]formatted{}, map[compiler.Side]snapshot{}, map[*spec.Item]keyPart{}
	}
	if err := tr.ref.note(at); err != nil {
		return err
	}
	if at == tr.ref.known() {
		tr.ref.count(&tr.counted)
	}
	return nil
}

// expect adds expected events of the call with a frame.
func (tr *trial) expect(events []expected, frame uint64) {
	if tr.ref.measure != compiler.NoMeasure {
		return
	}
	for _, e := range events {
		if tr.rate > 0 && !tr.mayShow(e.kind) {
			tr.limited[e.kind]++
			continue
		}
		e.frame = frame
		tr.want = append(tr.want, e)
	}
}

// mayShow reports whether one more event of a kind may be shown in this second.
func (tr *trial) mayShow(kind compiler.EventKind) bool {
	if tr.asked[kind] == nil {
		tr.asked[kind] = map[uint64]int{}
	}
	tr.asked[kind][tr.time/second]++
	return tr.asked[kind][tr.time/second] <= tr.rate
}

// probe returns the probe that the reference evaluates: the last one.
func (tr *trial) probe() *compiler.Probe {
	probes := tr.unit.Probes()
	return probes[len(probes)-1]
}

func (tr *trial) trampoline() bool { return tr.probe().Attach.Entry.Trampoline() }

// own returns the records of the probe.
func (tr *trial) own() [][]byte {
	return slices.DeleteFunc(slices.Clone(tr.records), func(rec []byte) bool {
		n := binary.LittleEndian.Uint32(rec)
		return n < uint32(len(tr.unit.Events)) && tr.unit.Events[n].Probe != tr.probe()
	})
}

// moment advances the time and sometimes changes the CPU and the names.
func (tr *trial) moment() moment {
	tr.time += uint64(tr.rnd.IntN(5))
	if tr.rate > 0 && tr.rnd.IntN(6) == 0 {
		tr.time += second
	}
	if tr.rnd.IntN(4) == 0 {
		tr.cpu, tr.uid = uint32(tr.rnd.IntN(4)), uint32(tr.rnd.IntN(3))
		tr.comm = pick(tr.rnd, []string{"worker", "", "a", "fifteen letters", "ab c"})
	}
	if tr.rnd.IntN(4) == 0 {
		tr.stacks.kernel, tr.stacks.user = make([]uint64, 2+tr.rnd.IntN(70)), nil
		for i := range tr.stacks.kernel {
			tr.stacks.kernel[i] = tr.rnd.Uint64()
		}
		for range tr.rnd.IntN(72) {
			tr.stacks.user = append(tr.stacks.user, le(tr.rnd.Uint64(), tr.rnd.Uint64(), tr.rnd.Uint64(), tr.rnd.Uint64())...)
		}
	}
	return moment{tr.pidtid, tr.cpu, tr.uid, tr.comm, tr.time, string(le(tr.stacks.kernel)), string(tr.stacks.user)}
}

// enterPlanned runs the entry programs. It returns a function that runs the
// return programs, and the address by which both sides identify the call.
func (tr *trial) enterPlanned(plan plannedCall) (leave func(), id uint64) {
	on := tr.stack
	addr, frame := on.push()
	ctx, stack := frame[:stackFrame/2], frame[stackFrame/2:]
	sp := addr + stackFrame/2
	regs := slices.Repeat([]byte{0xdd}, registersSize)
	binary.LittleEndian.PutUint64(regs[tr.arch.SP:], sp)
	if tr.arch == compiler.ARM64 {
		binary.LittleEndian.PutUint64(regs[compiler.ARM64.Registers["x30"]:], tr.stacks.kernel[1])
	}
	byCaller := putCallerFrame(tr.arch, regs, sp) && hasMulti(tr.unit.Attachments)
	words := append(ctx[:0], slices.Concat(plan.args...)...)
	if tr.arch == compiler.ARM64 {
		placeAAPCS64(plan.args, regs, stack)
	} else {
		tr.placeSystemV(plan.args, regs, stack)
	}
	probe := tr.alloc(regs)
	tr.atRet = false
	tr.runSide(addr, probe, compiler.Fentry, compiler.Kprobe, compiler.KprobeMulti, compiler.KprobeSession)
	switch id = sp; {
	case tr.trampoline():
		id = addr
	case byCaller:
		id = binary.LittleEndian.Uint64(regs[tr.arch.CallerFrame:])
	}
	return func() {
		on.depth--
		copy(regs, slices.Repeat([]byte{0xdd}, registersSize)) // registers do not survive the function
		copy(ctx[len(words):], plan.result)
		for i := range len(plan.result) / 8 {
			copy(regs[tr.arch.RetRegs[i]:], plan.result[8*i:][:8])
		}
		if putCallerFrame(tr.arch, regs, sp); !byCaller {
			binary.LittleEndian.PutUint64(regs[tr.arch.SP:], sp+popped(tr.arch))
		}
		tr.atRet = true
		tr.runSide(addr, probe, compiler.Fexit, compiler.Kretprobe, compiler.KretprobeMulti, compiler.KprobeSession)
	}, id
}

// placeSystemV places arguments as on x86-64 (AMD64 ABI, 3.2.3).
func (tr *trial) placeSystemV(args [][]byte, regs, stack []byte) {
	free := compiler.AMD64.ArgRegs
	if t := tr.ref.fn.result; t != nil && t.inMemory() {
		free = free[1:]
	}
	stacked := stack[8:8] // after the return address
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

// placeAAPCS64 places arguments of at most two words as on arm64 (AAPCS64,
// 6.8.2). From the first one without registers on, all are on the stack.
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
func (tr *trial) runSide(trampoline, regs uint64, kinds ...compiler.Kind) {
	if err := tr.runEach(tr.probe().Func, trampoline, regs, kinds...); tr.err == nil {
		tr.err = err
	}
}
