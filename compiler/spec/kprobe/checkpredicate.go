package kprobe

import (
	"fmt"
	"strings"

	"github.com/ksnoop/ksnoop/compiler/spec"
)

// takesText reports whether a field is, or may be, compared with strings.
func (p *parser) takesText(f *spec.Field) bool {
	switch {
	case f.As.Name != "":
		return f.As.Name == "ustring"
	case f.Of == nil:
		return false
	case f.Of.Type != nil:
		return f.Of.Type.IsText()
	default:
		return spec.FetchesText(f.Of.Value)
	}
}

// checkOp refuses an operator that the field does not support.
func (p *parser) checkOp(pred *spec.Predicate, f *spec.Field) error {
	op := pred.Op
	switch width, _ := fieldBits(f); {
	case p.takesText(f) && op != spec.Eq && op != spec.Ne && op != spec.Glob:
		return p.errorf(pred.OpAt, "'%s' is a string, which has no order and no bits", f).
			WithHint("strings are compared with == != ~")
	case p.takesText(f):
		return nil
	case f.As.Name == "function" && op != spec.Eq && op != spec.Ne:
		return p.errorf(pred.OpAt, "a function is only compared with == and !=")
	case op == spec.Glob && width > 0:
		return p.errorf(pred.OpAt, "'%s' is a number, and '~' is for strings", f)
	}
	return nil
}

// checkPredicate refuses a predicate that does not fit the type of its field. If the type is
// in BTF, the caller that has the BTF must check this.
func (p *parser) checkPredicate(item *spec.Item, f *spec.Field) error {
	pred := item.Pred
	if f.Of != nil && f.Of.Type != nil && f.Of.Type.Count > 0 {
		return p.errorf(f.Span(), "'%s' is an array, which cannot be compared", f).
			WithHint("fetch one element: its offset comes before '('")
	}
	switch {
	case f.As.Name == "function":
		return p.checkSymbol(pred, f)
	case p.takesText(f):
		return p.checkText(pred, f)
	}
	width, signed := fieldBits(f)
	switch c := pred.Const; {
	case c.Kind == spec.CPUs:
		return p.checkCPUs(pred)
	case width == 0:
		return nil
	case c.Kind == spec.String:
		return p.errorf(c.At, "'%s' is a number, and %s a string", f, c.Text)
	case !fits(c, width, signed && (c.Neg || pred.Op != spec.Mask)): // the sign is a bit like others
		return p.unfit(c, f, width, signed)
	case pred.Op == spec.Mask && c.Abs == 0:
		return p.errorf(c.At, "no bit is set in 0, so the condition never holds")
	}
	return nil
}

// checkSymbol refuses a meaningless predicate of NAME.function.
func (p *parser) checkSymbol(pred *spec.Predicate, f *spec.Field) error {
	switch width, _ := fieldBits(f); {
	case f.Of != nil && (spec.FetchesText(f.Of.Value) || f.Of.Type != nil && width != 64):
		return p.errorf(f.Span(), "'%s' is not an address of 64 bits", f.Name.Name)
	case pred.Const.Kind != spec.Name && (pred.Const.Kind != spec.Integer || pred.Const.Neg):
		return p.errorf(pred.Const.At, "a function is a name or an address, not %s", pred.Const.Text)
	}
	return nil
}

// checkText refuses a meaningless predicate of a string.
func (p *parser) checkText(pred *spec.Predicate, f *spec.Field) error {
	switch width, _ := fieldBits(f); {
	case f.As.Name != "" && f.Of != nil && (spec.FetchesText(f.Of.Value) || f.Of.Type != nil && width != 64):
		return p.errorf(f.Span(), "'%s' is not a pointer of 64 bits", f.Name.Name)
	case pred.Const.Kind != spec.String:
		return p.errorf(pred.Const.At, "'%s' is a string, and %s is none", f, pred.Const.Text).
			WithHint("put strings in quotes: %s %s \"%s\"", f, pred.Op, pred.Const.Text)
	}
	return nil
}

// checkCPUs refuses a meaningless predicate of processors.
func (p *parser) checkCPUs(pred *spec.Predicate) error {
	if pred.Op == spec.Eq || pred.Op == spec.Ne || pred.Op == spec.Mask {
		return nil
	}
	return p.errorf(pred.OpAt, "processors have no order and no pattern").
		WithHint("use '&' to ask whether the field is one of them")
}

// fieldBits returns the width of a field that is a number and whether it is signed.
// The width is 0 if the field is not a number or its type is only in BTF.
func fieldBits(f *spec.Field) (width int, signed bool) {
	switch {
	case f.Of == nil:
		return 0, false
	case f.Of.Type != nil:
		return f.Of.Type.Bits()
	}
	switch x := f.Of.Value.(type) {
	case *spec.Builtin:
		if x.Name.Name == "cpu" || x.Name.Name == "tid" {
			return 32, x.Name.Name == "tid"
		}
	case *spec.Register, *spec.StackPointer, *spec.StackSlot, *spec.Memory, *spec.Immediate, *spec.ReturnAddress:
		return 64, false
	}
	return 0, false
}

// unknown reports whether the type of a field is only in BTF.
func unknown(f *spec.Field) bool {
	width, _ := fieldBits(f)
	return width == 0 && (f.Of == nil || f.Of.Type == nil)
}

// fits reports whether a number is in the range of a field.
func fits(c spec.Constant, width int, signed bool) bool {
	limit := uint64(1) << (width - 1) // the magnitude of the lowest
	if c.Neg {
		return signed && c.Abs <= limit
	}
	if signed {
		return c.Abs < limit
	}
	return width == 64 || c.Abs < limit<<1
}

func (p *parser) unfit(c spec.Constant, f *spec.Field, width int, signed bool) error {
	typ := map[int]string{32: "u32", 64: "x64"}[width]
	switch {
	case f.Of.Type != nil:
		typ = f.Of.Type.String()
	case signed:
		typ = "s32"
	}
	err := p.errorf(c.At, "%s does not fit '%s', which is %s and holds %s", c.Text, f, typ, bounds(width, signed))
	switch {
	case c.Neg && signed:
		return err
	case c.Neg && f.Of.Type == nil && width == 32:
		return err
	case c.Neg && width == 64:
		return err.WithHint("a number with a sign has the type s64, or s32 if it is an int")
	case c.Neg && !strings.HasPrefix(typ, "b"):
		return err.WithHint("a number with a sign has the type s%d", width)
	case signed && (width == 64 || c.Abs < 1<<width):
		return err.WithHint("did you mean %d?", int64(c.Abs<<(64-width))>>(64-width))
	default:
		return err
	}
}

// bounds returns a text with the least and the greatest number of this width.
func bounds(width int, signed bool) string {
	if signed {
		return fmt.Sprintf("%d to %d", int64(-1)<<(width-1), uint64(1)<<(width-1)-1)
	}
	return fmt.Sprintf("0 to %d", ^uint64(0)>>(64-width))
}
