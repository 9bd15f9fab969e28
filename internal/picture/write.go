package picture

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"image"
	"image/png"
	"io"
)

// Screen is the terminal that images are shown on. Zero values are unknown.
type Screen struct {
	Columns, Rows int
	Width, Height int // pixels
}

// cell returns the size of a character in pixels, a usual one where the terminal
// does not tell.
func (s Screen) cell() (width, height int) {
	if s.Columns > 0 && s.Rows > 0 && s.Width/s.Columns > 0 && s.Height/s.Rows > 0 {
		return s.Width / s.Columns, s.Height / s.Rows
	}
	return 10, 20
}

// room returns the pixels that an image may take: the width of the screen, and
// its height but for the row of the prompt.
func (s Screen) room() (width, height int) {
	columns, rows := s.Columns, s.Rows
	if columns <= 0 {
		columns = 80
	}
	if rows <= 1 {
		rows = 24
	}
	w, h := s.cell()
	return columns * w, (rows - 1) * h
}

// fit returns the largest size within the room that keeps the proportions; an
// image never grows.
func (s Screen) fit(width, height int) (int, int) {
	w, h := s.room()
	if width > w {
		width, height = w, max(height*w/width, 1)
	}
	if height > h {
		width, height = max(width*h/height, 1), h
	}
	return width, height
}

// Write shows an image, or the first picture of one that moves (iTerm2 moves it
// itself), and ends the line. Nothing is written when the error is not of w.
func Write(ctx context.Context, w io.Writer, data []byte, p Protocol, s Screen) error {
	var out []byte
	var err error
	switch p {
	case Kitty:
		out, err = kitty(ctx, data, s)
	case ITerm2:
		out, err = iterm2(ctx, data, s)
	case Sixel:
		out, err = sixel(ctx, data, s)
	default:
		return ErrNoImage
	}
	if err != nil {
		return err
	}
	_, err = w.Write(append(out, '\n'))
	return err
}

// fitted decodes an image and scales it down to the screen. The scaled one is
// nil where it fits as it is.
func fitted(ctx context.Context, data []byte, s Screen) (img image.Image, scaled *image.NRGBA, err error) {
	if img, err = decode(ctx, data); err != nil {
		return nil, nil, err
	}
	b := img.Bounds()
	if b.Empty() {
		return nil, nil, ErrNoImage
	}
	if w, h := s.fit(b.Dx(), b.Dy()); w != b.Dx() || h != b.Dy() {
		scaled = scale(img, w, h)
	}
	return img, scaled, nil
}

// asPNG returns an image as a PNG that fits the screen: its own bytes where they
// are one, so that its colours stay what they are.
func asPNG(ctx context.Context, data []byte, s Screen) ([]byte, error) {
	img, scaled, err := fitted(ctx, data, s)
	switch {
	case err != nil:
		return nil, err
	case scaled != nil:
		img = scaled
	case begins(data, "\x89PNG"):
		return data, nil
	}
	var b bytes.Buffer
	enc := png.Encoder{CompressionLevel: png.BestSpeed}
	if err := enc.Encode(&b, img); err != nil {
		return nil, fmt.Errorf("encoding the image: %w", err)
	}
	return b.Bytes(), nil
}

// kittyChunk is the most base64 of one sequence.
const kittyChunk = 4096

// kitty sends a PNG in chunks and shows it (a=T). q=2 keeps the terminal from
// answering, which nobody would read.
func kitty(ctx context.Context, data []byte, s Screen) ([]byte, error) {
	data, err := asPNG(ctx, data, s)
	if err != nil {
		return nil, err
	}
	encoded := base64.StdEncoding.EncodeToString(data)
	var b bytes.Buffer
	for head := "a=T,f=100,q=2,"; encoded != ""; head = "" {
		n := min(kittyChunk, len(encoded))
		more := 0
		if n < len(encoded) {
			more = 1
		}
		fmt.Fprintf(&b, "\x1b_G%sm=%d;%s\x1b\\", head, more, encoded[:n])
		encoded = encoded[n:]
	}
	return b.Bytes(), nil
}

// maxITerm2 is the most bytes that are sent in one sequence: terminals drop what
// is much longer.
const maxITerm2 = 4 << 20

// iterm2 sends the file as it is, where it is not too long.
func iterm2(ctx context.Context, data []byte, s Screen) ([]byte, error) {
	info, err := Read(data)
	if err != nil {
		return nil, err
	}
	if int64(info.Width)*int64(info.Height)*int64(info.bytesPerPixel) > maxMemory {
		return nil, fmt.Errorf("%d by %d pixels are too many to be shown", info.Width, info.Height)
	}
	if len(data) > maxITerm2 {
		if data, err = asPNG(ctx, data, s); err != nil {
			return nil, err
		}
	}
	size := ""
	if w, h := s.fit(info.Width, info.Height); w != info.Width || h != info.Height { // in characters
		cw, ch := s.cell()
		size = fmt.Sprintf("width=%d;height=%d;", max(w/cw, 1), max(h/ch, 1))
	}
	return fmt.Appendf(nil, "\x1b]1337;File=inline=1;size=%d;%spreserveAspectRatio=1:%s\x07",
		len(data), size, base64.StdEncoding.EncodeToString(data)), nil
}
