package terminal

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// screen understands the few escape sequences that a status writes.
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
	up := regexp.MustCompile(`^\x1b\[(\d+)A\r\x1b\[J`)
	for text != "" {
		if m := up.FindStringSubmatch(text); m != nil {
			n, _ := strconv.Atoi(m[1])
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
		s := NewStatus(StatusOptions{Out: &scr, Size: func() (int, int) { return 40, 6 }})
		show := func(when, want string) {
			t.Helper()
			synctest.Wait()
			if diff := cmp.Diff(want, scr.text()); diff != "" {
				t.Errorf("%s: %s", when, diff)
			}
		}
		s.Set("github", "connecting")
		<-time.After(199 * time.Millisecond)
		show("early", "")
		<-time.After(time.Millisecond)
		show("after 200 ms", "github: connecting\n")
		s.Set("evil\x1b[2J", "x\ny")
		s.Set("github", "listing")
		show("changed", "github: listing\nevil\\x1b[2J: x\\ny\n")
		s.Set("evil\x1b[2J", "")
		<-time.After(2 * time.Second)
		show("later", "github: listing (2 s)\n")
		resume := s.Pause()
		s.Set("github", "asking")
		show("paused", "")
		resume()
		resume()
		show("resumed", "github: asking (2 s)\n")
		for i := range 9 {
			s.Set(fmt.Sprint("server", i), strings.Repeat("long ", 20))
		}
		cut := ": long long long long long long…\n"
		show("many", "github: asking (2 s)\nserver0"+cut+"server1"+cut+"and 7 more\n")
		s.Close()
		s.Close()
		s.Set("late", "x")
		show("closed", "")
	})
}

func TestStatusOfShortWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var scr screen
		s := NewStatus(StatusOptions{Out: &scr})
		s.Set("a", "b")
		s.Close()
		<-time.After(time.Second)
		if scr.lines != nil {
			t.Errorf("wrote %q", scr.text())
		}
	})
}

func TestStatusOff(t *testing.T) {
	s := NewStatus(StatusOptions{})
	s.Set("a", "b")
	s.Pause()()
	s.Close()
}
