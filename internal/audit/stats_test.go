package audit

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestStats(t *testing.T) {
	entries := []Entry{
		{Time: at(1), Tool: "read_file", Source: "builtin", Outcome: OK, DurationMs: 10, ResultBytes: 5, Caller: &Caller{Name: "ci", Client: "x"}},
		{Time: at(9), Tool: "read_file", Source: "builtin", Outcome: Error, DurationMs: 30, ResultBytes: 2},
		{Time: at(5), Tool: "read_file", Source: "builtin", Outcome: Invalid, DurationMs: 1000},
		{Time: at(3), Tool: "git__log", Source: "mcp:git", Server: "git", Outcome: Timeout, DurationMs: 100},
		{Time: at(4), Tool: "git__push", Source: "mcp:git", Server: "git", Outcome: Denied, Caller: &Caller{Client: "a host"}},
		{Time: at(2), Tool: "git__push", Source: "mcp:git", Server: "git", Outcome: Cancelled, BrokenOff: true, WaitedMs: 5000},
		{Time: at(6), Tool: "git__elicitation_create", ServerTool: QuestionMethod, Source: "mcp:git", Server: "git", Rule: "person", Outcome: OK, DurationMs: 9000},
	}
	git := Count{Name: "git", Calls: 1, Errors: 1, Refused: 2, TotalMs: 100, AverageMs: 100, P50Ms: 100, P95Ms: 100, Last: at(4)}
	for by, want := range map[Grouping][]Count{
		ByTool: {
			{Name: "read_file", Source: "builtin", Calls: 2, Successes: 1, Errors: 1, Refused: 1, TotalMs: 40, AverageMs: 20, P50Ms: 10, P95Ms: 30, ResultBytes: 7, Last: at(9)},
			{Name: "git__log", Source: "mcp:git", Calls: 1, Errors: 1, TotalMs: 100, AverageMs: 100, P50Ms: 100, P95Ms: 100, Last: at(3)},
			{Name: "git__push", Source: "mcp:git", Refused: 2, Last: at(4)},
		},
		ByServer: {git},
		ByClient: {
			{Name: "ci", Calls: 1, Successes: 1, TotalMs: 10, AverageMs: 10, P50Ms: 10, P95Ms: 10, ResultBytes: 5, Last: at(1)},
			{Name: "a host", Refused: 1, Last: at(4)},
		},
		BySource: {
			{Name: "builtin", Calls: 2, Successes: 1, Errors: 1, Refused: 1, TotalMs: 40, AverageMs: 20, P50Ms: 10, P95Ms: 30, ResultBytes: 7, Last: at(9)},
			func() Count { c := git; c.Name = "mcp:git"; return c }(),
		},
	} {
		s := Stats{By: by}
		for _, e := range entries {
			s.Add(e)
		}
		if diff := cmp.Diff(want, s.Counts(), cmpopts.IgnoreUnexported(Count{})); diff != "" {
			t.Errorf("by %s (-want +got):\n%s", by, diff)
		}
	}
}

func TestPercentile(t *testing.T) {
	hundred := make([]float64, 100)
	for i := range hundred {
		hundred[i] = float64(i + 1)
	}
	for _, tt := range []struct {
		values []float64
		p      float64
		want   float64
	}{{nil, 0.5, 0}, {[]float64{7}, 0.95, 7}, {[]float64{1, 2}, 0.5, 1}, {[]float64{1, 2, 3}, 0.5, 2}, {hundred, 0.95, 95}, {hundred, 0.5, 50}} {
		if got := percentile(tt.values, tt.p); got != tt.want {
			t.Errorf("percentile %v of %d values = %v, want %v", tt.p, len(tt.values), got, tt.want)
		}
	}
}

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
