package picture

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"time"

	"golang.org/x/image/webp"
)

// Info is what is known of an image without decoding it.
type Info struct {
	MIMEType      string
	Width, Height int // pixels, as it is shown
	bytesPerPixel int // when decoded
}

// format is one kind of image that can be decoded.
type format struct {
	mime   string
	begins string // ? stands for any byte
	config func(io.Reader) (image.Config, error)
	decode func(io.Reader) (image.Image, error) // its first picture
}

func formats() []format {
	return []format{
		{"image/png", "\x89PNG\r\n\x1a\n", png.DecodeConfig, png.Decode},
		{"image/jpeg", "\xff\xd8\xff", jpeg.DecodeConfig, jpeg.Decode},
		{"image/gif", "GIF8?a", gif.DecodeConfig, gif.Decode},
		{"image/webp", "RIFF????WEBPVP8", webp.DecodeConfig, webp.Decode},
	}
}

func formatOf(data []byte) (format, bool) {
	for _, f := range formats() {
		if begins(data, f.begins) {
			return f, true
		}
	}
	return format{}, false
}

func begins(data []byte, pattern string) bool {
	if len(data) < len(pattern) {
		return false
	}
	for i := range len(pattern) {
		if pattern[i] != '?' && pattern[i] != data[i] {
			return false
		}
	}
	return true
}

// ErrNoImage tells that bytes are no image that can be shown.
var ErrNoImage = errors.New("no PNG, JPEG, GIF or WebP image")

// Read reads the head of an image. What the image is is told by its bytes. The
// error wraps ErrNoImage.
func Read(data []byte) (info Info, err error) {
	defer recovered(&err)
	f, ok := formatOf(data)
	if !ok {
		return Info{}, ErrNoImage
	}
	c, err := f.config(bytes.NewReader(data))
	if err != nil {
		return Info{}, fmt.Errorf("%w: %w", ErrNoImage, err)
	}
	if c.Width <= 0 || c.Height <= 0 {
		return Info{}, fmt.Errorf("%w: it is %d by %d pixels", ErrNoImage, c.Width, c.Height)
	}
	info = Info{MIMEType: f.mime, Width: c.Width, Height: c.Height, bytesPerPixel: 4}
	if orientation(data) >= 5 {
		info.Width, info.Height = c.Height, c.Width
	}
	switch c.ColorModel {
	case color.RGBA64Model, color.NRGBA64Model, color.Gray16Model:
		info.bytesPerPixel = 8
	}
	return info, nil
}

const (
	maxMemory = 160 << 20       // of a decoded image: 40 million pixels of 4 bytes
	maxTime   = 5 * time.Second // of decoding
)

// decode decodes an image, or its first picture, within limits of memory and
// time. A decoder that takes longer is left to the end of the process.
func decode(ctx context.Context, data []byte) (image.Image, error) {
	info, err := Read(data)
	if err != nil {
		return nil, err
	}
	if pixels := int64(info.Width) * int64(info.Height); pixels*int64(info.bytesPerPixel) > maxMemory {
		return nil, fmt.Errorf("%d by %d pixels are too many to be shown", info.Width, info.Height)
	}
	f, _ := formatOf(data)
	type outcome struct {
		img image.Image
		err error
	}
	done := make(chan outcome, 1)
	go func() {
		var o outcome
		func() {
			defer recovered(&o.err)
			o.img, o.err = f.decode(bytes.NewReader(data))
		}()
		done <- o
	}()
	limit := time.NewTimer(maxTime)
	defer limit.Stop()
	select {
	case o := <-done:
		if turn := orientation(data); o.err == nil && turn > 1 {
			return turned{o.img, turn}, nil
		}
		return o.img, o.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-limit.C:
		return nil, fmt.Errorf("decoding took longer than %s", maxTime)
	}
}

// recovered turns a panic of a decoder into an error.
func recovered(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("%w: the decoder failed: %v", ErrNoImage, p)
	}
}

// scale returns the image in a size, each pixel the mean of those that it covers
// (in an image that grows, the nearest one).
func scale(img image.Image, width, height int) *image.NRGBA {
	from := img.Bounds()
	out := image.NewNRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		y0, y1 := span(y, height, from.Dy())
		for x := range width {
			x0, x1 := span(x, width, from.Dx())
			out.SetNRGBA(x, y, mean(img, from.Min.X+x0, from.Min.X+x1, from.Min.Y+y0, from.Min.Y+y1))
		}
	}
	return out
}

// span returns which of all old rows or columns the new one covers: at least one.
func span(i, all, old int) (from, to int) {
	from = i * old / all
	return from, max((i+1)*old/all, from+1)
}

// maxSamples bounds the pixels in each direction that one is made of.
const maxSamples = 4

func mean(img image.Image, x0, x1, y0, y1 int) color.NRGBA {
	var r, g, b, a, n uint64
	dx, dy := (x1-x0+maxSamples-1)/maxSamples, (y1-y0+maxSamples-1)/maxSamples
	for y := y0; y < y1; y += dy {
		for x := x0; x < x1; x += dx {
			pr, pg, pb, pa := img.At(x, y).RGBA()
			r, g, b, a, n = r+uint64(pr), g+uint64(pg), b+uint64(pb), a+uint64(pa), n+1
		}
	}
	if a == 0 {
		return color.NRGBA{}
	}
	// The sums are of colours multiplied by their alpha.
	part := func(c uint64) uint8 { return uint8(min(c*0xff/a, 0xff)) }
	return color.NRGBA{part(r), part(g), part(b), uint8(a / n >> 8)}
}
