package runtime

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestInt compares Int with math/big.
func TestInt(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	number := func() (Int, *big.Int) {
		switch v := random.Uint64() >> random.IntN(64); random.IntN(3) {
		case 0:
			return NewUint(v), new(big.Int).SetUint64(v)
		case 1:
			return NewInt(int64(v)), big.NewInt(int64(v))
		default:
			return NewInt(-int64(v)).shifted(), new(big.Int).Lsh(big.NewInt(-int64(v)), 32)
		}
	}
	for range 10_000 {
		a, bigA := number()
		b, bigB := number()
		sum, bigSum := a.Add(b), new(big.Int).Add(bigA, bigB)
		require.Equal(t, bigSum.String(), sum.String())
		require.Equal(t, bigA.Cmp(bigB), a.Cmp(b))
		require.Equal(t, 0, sum.Cmp(sum))
		near, _ := new(big.Float).SetInt(bigSum).Float64()
		require.LessOrEqual(t, math.Abs(near-sum.Float64()), 1e-15*math.Abs(near))
		v, ok := sum.Uint64()
		require.Equal(t, bigSum.IsUint64(), ok)
		if ok {
			require.Equal(t, bigSum.Uint64(), v)
		}
	}
	require.Equal(t, "0", Int{}.String())
}
