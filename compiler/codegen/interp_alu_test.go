package codegen

import (
	"errors"
	"fmt"
	"math/bits"

	"github.com/cilium/ebpf/asm"
)

func alu(op asm.ALUOp, a, b uint64, wide bool) (r uint64, err error) {
	if !wide {
		a, b = uint64(uint32(a)), uint64(uint32(b))
	}
	switch op {
	case asm.Mov:
		r = b
	case asm.Add:
		r = a + b
	case asm.Sub:
		r = a - b
	case asm.And:
		r = a & b
	case asm.Or:
		r = a | b
	case asm.Xor:
		r = a ^ b
	case asm.Mul:
		r = a * b
	case asm.Div:
		if b == 0 {
			return 0, errors.New("a division by 0")
		}
		r = a / b
	case asm.LSh:
		r = a << (b & 63)
	case asm.RSh:
		r = a >> (b & 63)
	case asm.ArSh:
		r = uint64(int64(a) >> (b & 63))
	case asm.Neg:
		if b != 0 {
			return 0, errors.New("a negation has no operand")
		}
		r = -a
	default:
		return 0, fmt.Errorf("operation %v is not modelled", op)
	}
	if !wide {
		r = uint64(uint32(r))
	}
	return r, nil
}

func jump(op asm.JumpOp, a, b uint64) (bool, error) {
	switch op {
	case asm.Ja:
		return true, nil
	case asm.JEq:
		return a == b, nil
	case asm.JNE:
		return a != b, nil
	case asm.JGT:
		return a > b, nil
	case asm.JGE:
		return a >= b, nil
	case asm.JLT:
		return a < b, nil
	case asm.JLE:
		return a <= b, nil
	case asm.JSGT:
		return int64(a) > int64(b), nil
	case asm.JSGE:
		return int64(a) >= int64(b), nil
	case asm.JSLT:
		return int64(a) < int64(b), nil
	case asm.JSLE:
		return int64(a) <= int64(b), nil
	}
	return false, fmt.Errorf("jump %v is not modelled", op)
}

func swap(v uint64, width int64) (uint64, error) {
	switch width {
	case 16:
		return uint64(bits.ReverseBytes16(uint16(v))), nil
	case 32:
		return uint64(bits.ReverseBytes32(uint32(v))), nil
	case 64:
		return bits.ReverseBytes64(v), nil
	}
	return 0, fmt.Errorf("a swap of %d bits", width)
}
