package audit

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"
)

// Grouping is a way to group calls.
type Grouping string

// The groupings of `toolreg stats --by`.
const (
	ByTool   Grouping = "tool"
	BySource Grouping = "source"
	ByServer Grouping = "server"
	ByClient Grouping = "client"
)

// Count has the statistics of one group of calls. Durations are in milliseconds.
// They cover the calls that were made, without the time that people took to answer.
type Count struct {
	Name        string  `json:"name"`             // name of the tool, source or client
	Source      string  `json:"source,omitempty"` // source of a tool
	Calls       int     `json:"calls"`            // calls that were made
	Successes   int     `json:"successes"`
	Errors      int     `json:"errors"`
	Refused     int     `json:"refused"` // calls that were not made: denied, invalid or not confirmed
	TotalMs     float64 `json:"totalMs"`
	AverageMs   float64 `json:"averageMs"`
	P50Ms       float64 `json:"p50Ms"`       // median
	P95Ms       float64 `json:"p95Ms"`       // 95th percentile
	ResultBytes int64   `json:"resultBytes"` // size of the results' content
	// SavedTokens estimates the tokens that overrides of results saved.
	SavedTokens int       `json:"savedTokens,omitempty"`
	Last        time.Time `json:"last"` // time of the last call or refusal

	durations []float64
}

// Stats computes statistics. The zero value groups by tool.
type Stats struct {
	By     Grouping
	groups map[[2]string]*Count
}

// Add adds one entry. With grouping by server or client, entries without one are
// ignored; questions of servers always are. A client is known by the name of its
// token, a host of rpc by the name that it reports.
func (s *Stats) Add(e Entry) {
	if e.isQuestion() {
		return
	}
	key := [2]string{e.Source, e.Tool}
	switch s.By {
	case BySource:
		key = [2]string{"", e.Source}
	case ByServer:
		if e.Server == "" {
			return
		}
		key = [2]string{"", e.Server}
	case ByClient:
		if e.Caller == nil {
			return
		}
		key = [2]string{"", cmp.Or(e.Caller.Name, e.Caller.Client)}
	}
	if s.groups == nil {
		s.groups = map[[2]string]*Count{}
	}
	c := s.groups[key]
	if c == nil {
		c = &Count{Name: key[1], Source: key[0]}
		s.groups[key] = c
	}
	c.add(e)
}

func (c *Count) add(e Entry) {
	if e.Time.After(c.Last) {
		c.Last = e.Time
	}
	if !e.Made() {
		c.Refused++
		return
	}
	c.Calls++
	if e.Outcome == OK {
		c.Successes++
	} else {
		c.Errors++
	}
	c.TotalMs += e.DurationMs
	c.ResultBytes += e.ResultBytes
	c.SavedTokens += e.SavedTokens
	c.durations = append(c.durations, e.DurationMs)
}

// Counts returns the groups, sorted by the number of calls, most first, and then by
// name.
func (s *Stats) Counts() []Count {
	groups := slices.SortedFunc(maps.Values(s.groups), func(a, b *Count) int {
		return cmp.Or(cmp.Compare(b.Calls, a.Calls), cmp.Compare(b.Refused, a.Refused),
			cmp.Compare(a.Name, b.Name), cmp.Compare(a.Source, b.Source))
	})
	out := make([]Count, 0, len(groups))
	for _, c := range groups {
		done := *c
		done.finish()
		out = append(out, done)
	}
	return out
}

// finish computes what depends on all calls.
func (c *Count) finish() {
	slices.Sort(c.durations)
	c.P50Ms, c.P95Ms = percentile(c.durations, 0.50), percentile(c.durations, 0.95)
	if c.Calls > 0 {
		c.AverageMs = round(c.TotalMs / float64(c.Calls))
	}
	c.TotalMs, c.durations = round(c.TotalMs), nil
}

// percentile returns the nearest-rank percentile of sorted values, or 0 if there
// are none.
func percentile(sorted []float64, p float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	rank := int(math.Ceil(p * float64(len(sorted))))
	return sorted[max(rank, 1)-1]
}

// round rounds to microseconds.
func round(ms float64) float64 { return math.Round(ms*1000) / 1000 }

// Milliseconds converts a duration to the unit of the log.
func Milliseconds(d time.Duration) float64 { return round(float64(d) / float64(time.Millisecond)) }

// Period has the statistics of the calls that began in one span of time. It ends where
// the next one starts.
type Period struct {
	Start time.Time
	Count // without a name
}

// Timeline divides calls among periods. The zero value has no calls.
type Timeline struct {
	first, last time.Time
	entries     []Entry // without their texts
}

// Add adds one entry. Questions of servers are ignored.
func (t *Timeline) Add(e Entry) {
	if e.isQuestion() {
		return
	}
	if len(t.entries) == 0 || e.Time.Before(t.first) {
		t.first = e.Time
	}
	if e.Time.After(t.last) {
		t.last = e.Time
	}
	t.entries = append(t.entries,
		Entry{
			Time:        e.Time,
			Outcome:     e.Outcome,
			BrokenOff:   e.BrokenOff,
			DurationMs:  e.DurationMs,
			ResultBytes: e.ResultBytes,
			SavedTokens: e.SavedTokens,
		})
}

// Total returns the statistics of all calls.
func (t *Timeline) Total() Count {
	var c Count
	for _, e := range t.entries {
		c.add(e)
	}
	c.finish()
	return c
}

// step is the length of a period.
type step struct {
	days int
	time time.Duration
}

func (s step) after(t time.Time) time.Time { return t.AddDate(0, 0, s.days).Add(s.time) }

// Periods returns the periods from the first call to the last, without gaps, oldest first.
// They have the shortest of some usual lengths, from a minute to a century, with which
// there are at most as many as given. They begin at full minutes, hours or days in the zone.
func (t *Timeline) Periods(most int, zone *time.Location) []Period {
	if len(t.entries) == 0 {
		return nil
	}
	var starts []time.Time
	for _, s := range []step{
		{0, time.Minute}, {0, 5 * time.Minute}, {0, 15 * time.Minute}, {0, time.Hour}, {0, 3 * time.Hour},
		{0, 6 * time.Hour}, {1, 0}, {7, 0}, {30, 0}, {365, 0}, {3650, 0}, {36500, 0},
	} {
		if starts = t.starts(s, most, zone); len(starts) <= most {
			break
		}
	}
	periods := make([]Period, len(starts))
	for i, start := range starts {
		periods[i].Start = start
	}
	for _, e := range t.entries {
		after, _ := slices.BinarySearchFunc(starts, e.Time, func(start, at time.Time) int {
			if start.After(at) {
				return 1
			}
			return -1
		})
		periods[max(after-1, 0)].add(e)
	}
	for i := range periods {
		periods[i].finish()
	}
	return periods
}

// starts returns the starts of the periods of one length, and at most one more than most.
func (t *Timeline) starts(s step, most int, zone *time.Location) []time.Time {
	y, m, d := t.first.In(zone).Date()
	var starts []time.Time
	for at := time.Date(y, m, d, 0, 0, 0, 0, zone); !at.After(t.last) && len(starts) <= most; at = s.after(at) {
		if s.after(at).After(t.first) {
			starts = append(starts, at)
		}
	}
	return starts
}
