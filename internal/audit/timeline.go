package audit

import (
	"slices"
	"time"
)

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
