package compiler

// Span joins two points by a key: what the first one records is kept until the
// second one has the same key, and both make one event.
type Span struct {
	Begin, End *Probe
	// BeginKey and EndKey are the numbers of up to 64 bits that must be equal.
	BeginKey, EndKey *Value
}

// Begins reports whether the probe is the beginning of a span.
func (p *Probe) Begins() bool { return p.Span != nil && p.Span.Begin == p }

// Ends reports whether the probe is the end of a span.
func (p *Probe) Ends() bool { return p.Span != nil && p.Span.End == p }

// SpanKey returns the key of a point of a span, or nil if the probe is none.
func (p *Probe) SpanKey() *Value {
	switch {
	case p.Begins():
		return p.Span.BeginKey
	case p.Ends():
		return p.Span.EndKey
	}
	return nil
}

// Begun returns the number of items that belong to the beginning of a span. They come
// first.
func (ev *EventType) Begun() int {
	if ev.Kind != SpanEvent {
		return 0
	}
	begin := ev.Probe.Span.Begin
	return len(begin.Entry) + len(begin.Return)
}

// Offsets in the part of a span's record about the thread that began it, see
// [Layout].Begin.
const (
	BeginPIDTID = 0 // u64, as in the header
	BeginCPU    = 8 // u64
	BeginComm   = 16
	BeginSize   = 32
)
