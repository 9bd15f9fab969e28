package state

import (
	"errors"
	"testing"
)

func TestDefaultDirs(t *testing.T) {
	tests := []struct {
		name, goos   string
		environ      []string
		state, cache string // "" means an error
	}{
		{"home", "linux", []string{"HOME=/h"}, "/h/.local/state/toolreg", "/h/.cache/toolreg"},
		{"xdg", "linux", []string{"HOME=/h", "XDG_STATE_HOME=/s", "XDG_CACHE_HOME=/c"}, "/s/toolreg", "/c/toolreg"},
		{"xdg alone", "linux", []string{"XDG_STATE_HOME=/s"}, "/s/toolreg", ""},
		{"relative xdg", "linux", []string{"HOME=/h", "XDG_STATE_HOME=s", "XDG_CACHE_HOME="}, "/h/.local/state/toolreg", "/h/.cache/toolreg"},
		{"the last entry wins", "linux", []string{"HOME=/a", "HOME=/h"}, "/h/.local/state/toolreg", "/h/.cache/toolreg"},
		{"mac", "darwin", []string{"HOME=/h"}, "/h/Library/Application Support/toolreg", "/h/Library/Caches/toolreg"},
		{"no home", "linux", nil, "", ""},
		{"odd home", "linux", []string{"HOME=h"}, "", ""},
		{"windows without a profile", "windows", []string{"HOME=/h"}, "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, c := range []struct {
				place place
				want  string
			}{{statePlace(), tt.state}, {cachePlace(), tt.cache}} {
				got, err := location(tt.environ, tt.goos, c.place)
				if got != c.want || (c.want == "") != errors.Is(err, ErrUnavailable) {
					t.Errorf("%s: %q, %v; want %q", c.place.xdg, got, err, c.want)
				}
			}
		})
	}
}
