package quota

import (
	"testing"
	"time"

	"github.com/toolreg/toolreg/internal/settings"
)

// A call counts under all of its limits or under none, and each limit begins anew after its time.
func TestQuotas(t *testing.T) {
	c := &local{}
	now := time.Now()
	few, many := settings.CallLimit{Tool: "a", Calls: 1, Per: time.Minute}, settings.CallLimit{Calls: 3, Per: time.Hour}
	longer := many
	longer.Per = 2 * time.Hour
	fewer := many
	fewer.Calls = 1
	take := func(caller string, limits ...settings.CallLimit) time.Duration {
		t.Helper()
		spans, _ := spansOf(caller, limits)
		_, left := c.count(spans, now)
		return left
	}
	for i, one := range []struct {
		caller string
		limits []settings.CallLimit
		after  time.Duration
		again  time.Duration
	}{
		{"x", []settings.CallLimit{few, many}, 0, 0},
		{"x", []settings.CallLimit{many, few}, 0, time.Minute}, // costs nothing of many
		{"y", []settings.CallLimit{few, many}, 0, 0},
		{"x", []settings.CallLimit{many}, 0, 0},
		{"x", []settings.CallLimit{many, few}, time.Minute, 0},
		{"x", []settings.CallLimit{longer}, time.Minute, 58 * time.Minute}, // the time goes on
		{"x", []settings.CallLimit{many}, 0, 58 * time.Minute},
		{"x", []settings.CallLimit{many, many}, time.Hour, 0}, // counted once
		{"x", []settings.CallLimit{many}, 0, 0},
		{"x", []settings.CallLimit{many}, 0, 0},
		{"x", []settings.CallLimit{many}, 0, time.Hour},
		{"w", []settings.CallLimit{many, fewer}, 0, 0},
		{"w", []settings.CallLimit{many, fewer}, 0, time.Hour}, // the lower number counts
	} {
		now = now.Add(one.after)
		if again := take(one.caller, one.limits...); again != one.again {
			t.Errorf("call %d: again in %s, want %s", i, again, one.again)
		}
	}
	now = now.Add(2 * time.Hour)
	if take("z", few); len(c.spans) != 1 {
		t.Errorf("%d counts are kept", len(c.spans))
	}
}
