// Package picture shows images on terminals that support it, with the graphics
// protocol of kitty or that of iTerm2.
//
// The environment determines which protocol a terminal supports. The terminal
// is not queried, because waiting for an answer would delay the result, and a
// late answer would appear as input to the shell. Images are untrusted: their
// type is determined by their content, their size is read before decoding, and
// their bytes reach the terminal only as base64.
package picture

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"image"
	_ "image/gif" // Registers the format with package image.
	_ "image/jpeg"
	"image/png"
	"io"
	"strings"
	"time"

	"github.com/toolreg/toolreg/internal/timing"
)

// ErrNoImage reports bytes that are not an image that can be shown.
var ErrNoImage = errors.New("not a PNG, JPEG or GIF image")

// Info describes an image without decoding it.
type Info struct {
	MIMEType      string
	Width, Height int // pixels
}

// Read reads the header of an image, whose type it detects by content. The
// error wraps ErrNoImage.
func Read(data []byte) (Info, error) {
	c, format, err := image.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		return Info{}, fmt.Errorf("%w: %w", ErrNoImage, err)
	}
	if c.Width <= 0 || c.Height <= 0 {
		return Info{}, fmt.Errorf("%w: it is %d by %d pixels", ErrNoImage, c.Width, c.Height)
	}
	return Info{MIMEType: "image/" + format, Width: c.Width, Height: c.Height}, nil
}

// Screen is the terminal on which images are shown. Zero values mean unknown.
type Screen struct {
	Columns, Rows int
	Width, Height int // pixels
}

// cells returns the columns and rows to scale an image to; 0, 0 if it fits
// unscaled. One row is left free for the prompt. Characters of unknown size are
// assumed to be 10 by 20 pixels, and a screen 80 by 24 characters.
func (s Screen) cells(width, height int) (columns, rows int) {
	cellWidth, cellHeight := 10, 20
	if s.Columns > 0 && s.Rows > 0 && s.Width/s.Columns > 0 && s.Height/s.Rows > 0 {
		cellWidth, cellHeight = s.Width/s.Columns, s.Height/s.Rows
	}
	columns, rows = s.Columns, s.Rows-1
	if columns <= 0 {
		columns = 80
	}
	if rows <= 0 {
		rows = 23
	}
	if width <= columns*cellWidth && height <= rows*cellHeight {
		return 0, 0
	}
	// The dimension that is exceeded most determines the scale.
	if width*rows*cellHeight > height*columns*cellWidth {
		return columns, max(height*columns*cellWidth/width/cellHeight, 1)
	}
	return max(width*rows*cellHeight/height/cellWidth, 1), rows
}

const (
	maxPixels = 40_000_000      // maximum pixels of an image to show
	maxBytes  = 4 << 20         // maximum length of one iTerm2 sequence: terminals drop much longer ones
	maxTime   = 5 * time.Second // time limit for decoding
	chunk     = 4096            // maximum base64 bytes in one kitty sequence
)

// Write shows an image, or the first frame of an animation (iTerm2 plays
// animations), and ends the line. Unless the error is that of w, nothing
// was written.
func Write(ctx context.Context, w io.Writer, data []byte, p Protocol, s Screen) error {
	info, err := Read(data)
	if err != nil {
		return err
	}
	if int64(info.Width)*int64(info.Height) > maxPixels {
		return fmt.Errorf("%d by %d pixels are too many to show", info.Width, info.Height)
	}
	columns, rows := s.cells(info.Width, info.Height)
	var out []byte
	switch p {
	case Kitty:
		if info.MIMEType != "image/png" {
			data, err = asPNG(ctx, data)
		}
		out = kitty(data, columns, rows)
	case ITerm2:
		if len(data) > maxBytes {
			err = fmt.Errorf("%d bytes are too many to show", len(data))
		}
		out = iterm2(data, columns, rows)
	default:
		return ErrNoImage
	}
	if err != nil {
		return err
	}
	_, err = w.Write(append(out, '\n'))
	return err
}

// asPNG re-encodes an image within a time limit. A decoder that takes longer is
// abandoned.
func asPNG(ctx context.Context, data []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, maxTime, fmt.Errorf("decoding took longer than %s", maxTime))
	defer cancel()
	return timing.UntilDone(ctx, func() ([]byte, error) {
		var b bytes.Buffer
		img, _, err := image.Decode(bytes.NewReader(data))
		if err == nil {
			err = (&png.Encoder{CompressionLevel: png.BestSpeed}).Encode(&b, img)
		}
		return b.Bytes(), err
	})
}

// kitty sends a PNG in chunks and shows it (a=T). q=2 suppresses the terminal's
// response, which would appear as input to the shell.
func kitty(data []byte, columns, rows int) []byte {
	head := "a=T,f=100,q=2,"
	if columns > 0 {
		head += fmt.Sprintf("c=%d,r=%d,", columns, rows)
	}
	encoded := base64.StdEncoding.EncodeToString(data)
	var b bytes.Buffer
	for ; encoded != ""; head = "" {
		n, more := len(encoded), 0
		if n > chunk {
			n, more = chunk, 1
		}
		fmt.Fprintf(&b, "\x1b_G%sm=%d;%s\x1b\\", head, more, encoded[:n])
		encoded = encoded[n:]
	}
	return b.Bytes()
}

// iterm2 sends the file unchanged.
func iterm2(data []byte, columns, rows int) []byte {
	size := ""
	if columns > 0 {
		size = fmt.Sprintf("width=%d;height=%d;", columns, rows)
	}
	return fmt.Appendf(nil, "\x1b]1337;File=inline=1;size=%d;%spreserveAspectRatio=1:%s\x07",
		len(data), size, base64.StdEncoding.EncodeToString(data))
}

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
	if env("TMUX") != "" || env("STY") != "" || env("ZELLIJ") != "" ||
		strings.HasPrefix(term, "tmux") || strings.HasPrefix(term, "screen") {
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
