package picture

import (
	"fmt"
	"strings"
)

// Protocol is a way to show images. The zero value is None.
type Protocol uint8

// The protocols.
const (
	None   Protocol = iota
	Kitty           // sw.kovidgoyal.net/kitty/graphics-protocol
	ITerm2          // iterm2.com/documentation-images.html: OSC 1337 ; File
)

// Parse parses the name of a protocol. never means None; auto and "" detect the
// protocol from the environment variables that env returns.
func Parse(name string, env func(string) string) (Protocol, error) {
	detected := detect(env)
	p, ok := map[string]Protocol{"": detected, "auto": detected, "kitty": Kitty, "iterm2": ITerm2, "never": None}[name]
	if !ok {
		return None, fmt.Errorf("%q is not one of auto, kitty, iterm2, never", name)
	}
	return p, nil
}

// detect returns the protocol that the terminal supports according to
// environment variables; env returns "" for a variable that is not set. TERM
// has priority, because it describes this terminal and is passed through ssh,
// while the others may come from an enclosing terminal. Inside tmux and screen
// it returns None, because they pass images on only if configured to.
func detect(env func(string) string) Protocol {
	term := env("TERM")
	if env("TMUX") != "" || env("STY") != "" || env("ZELLIJ") != "" || strings.HasPrefix(term, "tmux") || strings.HasPrefix(term, "screen") {
		return None
	}
	switch {
	case term == "" || term == "dumb" || term == "linux":
		return None
	case strings.Contains(term, "kitty"), strings.Contains(term, "ghostty"):
		return Kitty
	case strings.HasPrefix(term, "wezterm"):
		return ITerm2
	case strings.HasPrefix(term, "foot"), strings.HasPrefix(term, "mlterm"), strings.HasPrefix(term, "contour"),
		strings.HasPrefix(term, "yaft"), strings.Contains(term, "sixel"):
		return None // supports neither; the variables below belong to an enclosing terminal
	case env("XTERM_VERSION") != "" || env("VTE_VERSION") != "" || env("INSIDE_EMACS") != "":
		return None // as above
	}
	switch env("TERM_PROGRAM") {
	case "ghostty":
		return Kitty
	case "iTerm.app", "WezTerm", "vscode", "mintty", "rio":
		return ITerm2
	case "Apple_Terminal":
		return None
	}
	switch {
	case env("KITTY_WINDOW_ID") != "":
		return Kitty
	case env("WEZTERM_PANE") != "", env("LC_TERMINAL") == "iTerm2":
		return ITerm2
	}
	return None
}
