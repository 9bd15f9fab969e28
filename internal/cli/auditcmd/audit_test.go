package auditcmd

import (
	"testing"
	"time"
)

func TestParseSince(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Time{
		"24h":                  now.Add(-24 * time.Hour),
		"7d":                   now.AddDate(0, 0, -7),
		"1.5d":                 now.Add(-36 * time.Hour),
		"2026-11-01":           time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC),
		"2026-11-01 08:30:00":  time.Date(2026, 11, 1, 8, 30, 0, 0, time.UTC),
		"2026-11-01T08:30:00Z": time.Date(2026, 11, 1, 8, 30, 0, 0, time.UTC),
	} {
		if got, err := parseSince(text, now); err != nil || !got.Equal(want) {
			t.Errorf("%q: %s, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "d", "-1h", "-3d", "NaNd", "1e9d", "soon", "2026-13-01"} {
		if got, err := parseSince(text, now); err == nil {
			t.Errorf("%q: %s", text, got)
		}
	}
}

func TestBar(t *testing.T) {
	for _, tt := range []struct {
		n, most int
		want    string
	}{{0, 10, ""}, {0, 0, ""}, {1, 1_000_000, "▏"}, {10, 10, "██████████"}, {5, 10, "█████"}, {1, 3, "███▎"}} {
		if got := bar(tt.n, tt.most); got != tt.want {
			t.Errorf("%d of %d: %q, want %q", tt.n, tt.most, got, tt.want)
		}
	}
}
