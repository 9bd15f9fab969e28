package audit

import (
	"fmt"
	"testing"
	"time"
)

func TestTimeline(t *testing.T) {
	zone := time.FixedZone("here", 2*3600)
	clock := func(s string) time.Time {
		at, err := time.Parse("2006-01-02 15:04", s)
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	for name, tt := range map[string]struct {
		calls []string
		most  int
		want  string // "" means any
	}{
		"none":    {nil, 5, "[]"},
		"one":     {[]string{"2026-11-26 10:07"}, 5, "[26 12:07=1]"},
		"minutes": {[]string{"2026-11-26 10:09", "2026-11-26 10:07", "2026-11-26 10:07"}, 5, "[26 12:07=2 26 12:08=0 26 12:09=1]"},
		"hours":   {[]string{"2026-11-26 10:59", "2026-11-26 11:00", "2026-11-26 12:30"}, 4, "[26 12:00=1 26 13:00=1 26 14:00=1]"},
		"days":    {[]string{"2026-11-26 21:59", "2026-11-26 22:00", "2026-11-28 00:00"}, 3, "[26 00:00=1 27 00:00=1 28 00:00=1]"},
		"ages":    {[]string{"0001-01-01 00:00", "2026-11-26 10:00"}, 60, ""},
	} {
		var line Timeline
		for _, c := range tt.calls {
			line.Add(Entry{Time: clock(c), Outcome: OK, DurationMs: 1})
		}
		var got []string
		calls := 0
		for _, p := range line.Periods(tt.most, zone) {
			got = append(got, fmt.Sprintf("%s=%d", p.Start.Format("2 15:04"), p.Calls))
			calls += p.Calls
		}
		if text := fmt.Sprint(got); tt.want != "" && text != tt.want || calls != len(tt.calls) || len(got) > tt.most {
			t.Errorf("%s: %d calls in %s, want %s", name, calls, text, tt.want)
		}
	}
}

// A period has the statistics of its own calls.
func TestTimelineCounts(t *testing.T) {
	var line Timeline
	for i, o := range []Outcome{OK, Error, Denied} {
		line.Add(Entry{Time: at(i), Outcome: o, DurationMs: float64(10 * (i + 1)), ResultBytes: 3})
	}
	line.Add(Entry{Time: at(0).Add(time.Hour), ServerTool: QuestionMethod, Rule: "person", Outcome: OK})
	p := line.Periods(10, time.UTC)
	if len(p) != 1 || p[0].Calls != 2 || p[0].Errors != 1 || p[0].Refused != 1 || p[0].P50Ms != 10 || p[0].P95Ms != 20 || p[0].ResultBytes != 6 {
		t.Errorf("%+v", p)
	}
}
