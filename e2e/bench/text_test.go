package bench

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var rows = []Row{
	{Kernel: "6.1", Name: "rejected/scalar/fentry", Unit: "per call", Ours: 138, Peers: map[Column]float64{Empty: 129, BCC: 2247.25, Kfunc: 133}, Budget: &Budget{1.15, Empty}},
	{Kernel: "6.1", Name: "rejected/scalar/kprobe", Unit: "per call", Ours: 500.4, Peers: map[Column]float64{Empty: 250}, Budget: &Budget{1.3, Empty}},
	{Kernel: "6.1", Name: "idle/wake-ups", Unit: "in 10 s", Ours: 3.25, Peers: map[Column]float64{BCC: 9999}, Budget: &Budget{Max: 50}, Note: "asleep"},
	{Kernel: "6.12", Name: "start/attached/500", Unit: "instructions", Ours: 1234567890, Peers: map[Column]float64{Kprobe: 2469135780}},
	{Name: "size", Unit: "bytes", Ours: 7340033, Budget: &Budget{Max: 7340032}},
}

func TestText(t *testing.T) {
	var b strings.Builder
	require.NoError(t, Text(&b, "2026-11-21", rows))
	require.Equal(t, `
6.1, 2026-11-21

                            unit        budget   ours  empty    bcc  bt kprobe  bt kfunc  /empty  /bcc  /kprobe  /kfunc
rejected/scalar/fentry  per call  1.15 x empty    138    129  2,247          -       133    1.07  0.06             1.04
rejected/scalar/kprobe  per call   1.3 x empty  ! 500    250      -          -         -    2.00
idle/wake-ups            in 10 s            50    3.2      -  9,999          -         -          0.00

idle/wake-ups: asleep

6.12, 2026-11-21

                                unit  budget           ours  empty  bcc      bt kprobe  bt kfunc  /empty  /bcc  /kprobe  /kfunc
start/attached/500      instructions          1,234,567,890      -    -  2,469,135,780         -                   0.50

any kernel, 2026-11-21

                         unit     budget         ours  empty  bcc  bt kprobe  bt kfunc  /empty  /bcc  /kprobe  /kfunc
size                    bytes  7,340,032  ! 7,340,033      -    -          -         -
`, "\n"+b.String())
}

// TestJSON checks that each row is an object with all its data.
func TestJSON(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, JSON(&b, "2026-11-21", rows))
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	require.Len(t, lines, len(rows))
	require.JSONEq(t, `{"date": "2026-11-21", "kernel": "6.1", "row": "rejected/scalar/kprobe", "unit": "per call",
		"ours": 500.4, "peers": {"empty": 250}, "ratios": {"empty": 2.0016}, "budget": {"max": 1.3, "of": "empty"}, "met": false}`, lines[1])
	require.JSONEq(t, `{"date": "2026-11-21", "kernel": "", "row": "size", "unit": "bytes",
		"ours": 7340033, "budget": {"max": 7340032}, "met": false}`, lines[4])
	for i, line := range lines {
		var r Row
		require.NoError(t, json.Unmarshal([]byte(line), &r))
		require.Equal(t, rows[i], r)
	}
}

func TestMet(t *testing.T) {
	require.True(t, (&Row{Ours: 1}).Met())
	require.True(t, (&Row{Ours: 50, Budget: &Budget{Max: 50}}).Met())
	require.False(t, (&Row{Ours: 51, Budget: &Budget{Max: 50}}).Met())
	factor := &Budget{Max: 1.5, Of: Empty}
	require.True(t, (&Row{Ours: 3, Budget: factor, Peers: map[Column]float64{Empty: 2}}).Met())
	require.False(t, (&Row{Ours: 3.1, Budget: factor, Peers: map[Column]float64{Empty: 2}}).Met())
	require.False(t, (&Row{Ours: 1, Budget: factor}).Met(), "of nothing")
}
