package ui

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// screen interprets the escape sequences that a Status writes.
type screen struct {
	mu    sync.Mutex
	lines []string
	row   int
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lines == nil {
		s.lines = []string{""}
	}
	text := string(p)
	up := regexp.MustCompile(`^(\x1b\[1A\x1b\[2K)+\r`)
	for text != "" {
		if m := up.FindStringSubmatch(text); m != nil {
			n := strings.Count(m[0], "1A")
			if n > s.row {
				return 0, fmt.Errorf("%d rows up from row %d", n, s.row)
			}
			s.row -= n
			s.lines = append(s.lines[:s.row], "")
			text = text[len(m[0]):]
			continue
		}
		if text[0] == '\n' {
			s.row++
			s.lines = append(s.lines, "")
		} else {
			s.lines[s.row] += text[:1]
		}
		text = text[1:]
	}
	return len(p), nil
}

func (s *screen) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.lines, "\n")
}

func TestStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var scr screen
		s := newStatus(StatusOptions{Out: &scr, Size: func() (int, int) { return 40, 6 }})
		show := func(when, want string) {
			t.Helper()
			<-time.After(frame) // drawn at most once per frame
			synctest.Wait()
			if diff := cmp.Diff(want, scr.text()); diff != "" {
				t.Errorf("%s: %s", when, diff)
			}
		}
		s.Set("github", "connecting")
		<-time.After(149 * time.Millisecond)
		show("early", "")
		<-time.After(time.Millisecond)
		show("after 200 ms", "github: connecting\n")
		s.Set("evil\x1b[2J", "x\ny")
		s.Set("github", "listing")
		show("changed", "github: listing\nevil\\x1b[2J: x\\ny\n")
		s.Set("evil\x1b[2J", "")
		<-time.After(2 * time.Second)
		show("later", "github: listing (2 s)\n")
		s.pause()
		s.Set("github", "asking")
		show("paused", "")
		s.resume()
		show("resumed", "github: asking (2 s)\n")
		for i := range 9 {
			s.Set(fmt.Sprint("server", i), strings.Repeat("long ", 20))
		}
		cut := ": long long long long lon… (2 s)\n"
		show("many", "github: asking (2 s)\nserver0"+cut+"server1"+cut+"and 7 more\n")
		s.Close()
		s.Close()
		s.Set("late", "x")
		show("closed", "")
	})
}

// TestStatusOfProgress expects a bar if the total is known, otherwise a number, and
// the time even if the message is too long.
func TestStatusOfProgress(t *testing.T) {
	tests := []struct {
		done, total float64
		message     string
		columns     int
		want        string
	}{
		{1, 4, "reading", 60, "t: [###-----------] 25% reading (3 s)\n"},
		{9, 4, "", 60, "t: [##############] 100% (3 s)\n"},
		{-5, 4, "x\x1b[2J", 60, "t: [--------------] 0% x\\x1b[2J (3 s)\n"},
		{7, 0, "files", 60, "t: 7 files (3 s)\n"},
		{0, 0, "", 60, "t: (3 s)\n"},
		{1, 4, "narrow", 30, "t: 25% narrow (3 s)\n"},
		{1, 4, strings.Repeat("long ", 40), 60, "t: [###-----------] 25% long long long long long lon… (3 s)\n"},
	}
	for _, tt := range tests {
		synctest.Test(t, func(t *testing.T) {
			var scr screen
			s := newStatus(StatusOptions{Out: &scr, Size: func() (int, int) { return tt.columns, 6 }})
			defer s.Close()
			<-time.After(3 * time.Second)
			for range 1000 {
				s.Progress("t", tt.done, tt.total, tt.message)
			}
			<-time.After(frame)
			synctest.Wait()
			if diff := cmp.Diff(tt.want, scr.text()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestStatusOfShortWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var scr screen
		s := newStatus(StatusOptions{Out: &scr, Size: SizeOf(nil)})
		s.Set("a", "b")
		s.Close()
		<-time.After(time.Second)
		if scr.lines != nil {
			t.Errorf("wrote %q", scr.text())
		}
	})
}

func TestStatusOff(t *testing.T) {
	s := newStatus(StatusOptions{})
	s.Set("a", "b")
	s.pause()
	s.resume()
	s.Close()
}
