package ui

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOpeners(t *testing.T) {
	tests := []struct {
		name, goos string
		environ    []string
		want       [][]string
	}{
		{"no screen", "linux", nil, [][]string{{"wslview"}}},
		{"a screen", "linux", []string{"DISPLAY=:0"}, [][]string{{"xdg-open"}, {"x-www-browser"}, {"wslview"}}},
		{"Wayland", "freebsd", []string{"WAYLAND_DISPLAY=w"}, [][]string{{"xdg-open"}, {"x-www-browser"}, {"wslview"}}},
		{"the person's own", "linux", []string{"BROWSER=old", "BROWSER=firefox"}, [][]string{{"firefox"}, {"wslview"}}},
		{"more than a program", "linux", []string{"BROWSER=sh -c 'evil %s'"}, [][]string{{"wslview"}}},
		{"a list", "linux", []string{"BROWSER=a:b"}, [][]string{{"wslview"}}},
		{"an option", "linux", []string{"BROWSER=-x"}, [][]string{{"wslview"}}},
		{"macOS", "darwin", nil, [][]string{{"/usr/bin/open"}}},
		{"Windows", "windows", nil, [][]string{{"rundll32", "url.dll,FileProtocolHandler"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, Browser{Environ: tt.environ}.openers(tt.goos)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestOpenRefusesUnsafeURLs(t *testing.T) {
	for _, address := range []string{"http://example.com/", "-x", "file:///etc/passwd", "https://example.com/'", "https://example.com/`id`", `https://example.com/"`} {
		if err := (Browser{Environ: []string{"BROWSER=/nowhere/browser"}}).Open(t.Context(), address); err == nil || err == ErrNoBrowser {
			t.Errorf("%q: %v", address, err)
		}
	}
	if err := (Browser{Environ: []string{"BROWSER=/nowhere/browser"}}).Open(t.Context(), "https://example.com/"); err != ErrNoBrowser {
		t.Errorf("no browser: %v", err)
	}
}
