package resolve

import (
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ksnoop/ksnoop/compiler/spec"
)

// TestWide compares the results of wide with those of numbers of any size. Wide may give
// up only on results of 127 bits and more.
func TestWide(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	ops := map[spec.Operator]func(n, x, y *big.Int) *big.Int{
		spec.Add: (*big.Int).Add, spec.Sub: (*big.Int).Sub, spec.Mul: (*big.Int).Mul, spec.BitAnd: (*big.Int).And, spec.BitOr: (*big.Int).Or,
		spec.Shl: func(n, x, y *big.Int) *big.Int { return n.Lsh(x, uint(y.Uint64())) },
		spec.Shr: func(n, x, y *big.Int) *big.Int { return n.Rsh(x, uint(y.Uint64())) },
	}
	number := func() (wide, *big.Int) {
		abs, negative := rnd.Uint64()>>rnd.IntN(65), rnd.IntN(2) == 0
		want := new(big.Int).SetUint64(abs)
		if negative {
			want.Neg(want)
		}
		return wideOf(abs, negative), want
	}
	over := 0
	for range 20_000 {
		n, want := number()
		for range 3 {
			for op, f := range ops {
				y, wantY := number()
				if op == spec.Shl || op == spec.Shr {
					y.low, y.high = y.low&63, 0
					wantY.SetUint64(y.low)
				}
				got := exactly(op, n, y)
				wantN := f(new(big.Int), want, wantY)
				if got.over {
					over++
					require.Greater(t, wantN.BitLen(), 126, "%s %s %s", want, op, wantY)
					continue
				}
				require.Equal(t, wantN.IsInt64() || wantN.IsUint64(), got.fits(), "%s %s %s", want, op, wantY)
				if abs, fits := got.abs(); fits {
					require.Equal(t, new(big.Int).Abs(wantN).String(), new(big.Int).SetUint64(abs).String(), "%s %s %s", want, op, wantY)
					require.Equal(t, wantN.Sign() < 0, got.high < 0)
				}
				n, want = *got, wantN
			}
		}
	}
	require.Positive(t, over)
	product := exactly(spec.Mul, wide{high: 1}, wideOf(1, true)) // 2^64 * -1
	require.True(t, exactly(spec.Add, *product, wide{low: 1}).high == -1 && !product.fits())
	require.True(t, exactly(spec.Add, *product, wide{high: 1, low: 7}).fits())
	require.Nil(t, exactly(spec.Shl, wide{low: 1}, wide{low: 64}))
	require.Nil(t, exactly(spec.Shr, wide{low: 1}, wideOf(1, true)))
}
