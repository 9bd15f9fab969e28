package picture

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/color"
	"slices"
	"strconv"
)

// sixel draws an image in bands of six rows, each in up to 256 colours.
// Where the image lets the background through nothing is drawn (P2=1).
func sixel(ctx context.Context, data []byte, s Screen) ([]byte, error) {
	img, scaled, err := fitted(ctx, data, s)
	if err != nil {
		return nil, err
	}
	if scaled == nil {
		b := img.Bounds()
		scaled = scale(img, b.Dx(), b.Dy())
	}
	drawn := dithered(scaled)
	width, height := drawn.Rect.Dx(), drawn.Rect.Dy()
	var b bytes.Buffer
	fmt.Fprintf(&b, "\x1bP0;1;0q\"1;1;%d;%d", width, height)
	for i, c := range drawn.Palette {
		if i == transparent {
			continue
		}
		r, g, bl, _ := c.RGBA()
		fmt.Fprintf(&b, "#%d;2;%d;%d;%d", i, percent(r), percent(g), percent(bl))
	}
	for top := 0; top < height; top += 6 {
		if top > 0 {
			b.WriteByte('-')
		}
		band(&b, drawn, top)
	}
	b.WriteString("\x1b\\")
	return b.Bytes(), nil
}

func percent(c uint32) uint32 { return (c*100 + 0x7fff) / 0xffff }

// transparent is the index in the palette of what is not drawn.
const transparent = 0

// dithered returns the image in a palette of its own; index 0 is transparent.
// What a pixel's colour is off goes to its neighbours (Floyd and Steinberg).
func dithered(img *image.NRGBA) *image.Paletted {
	width, height := img.Rect.Dx(), img.Rect.Dy()
	out := image.NewPaletted(img.Rect, append(color.Palette{color.Transparent}, palette(img, 255)...))
	near := newNearest(out.Palette[1:])
	row, below := make([][3]int, width+2), make([][3]int, width+2) // errors, times 16
	for y := range height {
		for x := range width {
			at := img.PixOffset(x, y)
			if img.Pix[at+3] < 0x80 {
				continue
			}
			var want [3]int
			for i := range want {
				want[i] = min(max(int(img.Pix[at+i])+row[x+1][i]/16, 0), 0xff)
			}
			c := near.index(want)
			out.Pix[out.PixOffset(x, y)] = uint8(c + 1)
			for i := range want {
				off := want[i] - near.colors[c][i]
				row[x+2][i] += off * 7
				below[x][i] += off * 3
				below[x+1][i] += off * 5
				below[x+2][i] += off
			}
		}
		row, below = below, row
		clear(below)
	}
	return out
}

// nearest finds the colour of a palette that is nearest to another. It keeps
// what it found for colours that are equal in their highest six bits.
type nearest struct {
	colors [][3]int
	known  [1 << 18]int16 // index + 1
}

func newNearest(p color.Palette) *nearest {
	n := &nearest{}
	for _, c := range p {
		r, g, b, _ := c.RGBA()
		n.colors = append(n.colors, [3]int{int(r >> 8), int(g >> 8), int(b >> 8)})
	}
	return n
}

func (n *nearest) index(c [3]int) int {
	known := &n.known[c[0]>>2<<12|c[1]>>2<<6|c[2]>>2]
	if *known > 0 {
		return int(*known) - 1
	}
	best, least := 0, 1<<30
	for i, p := range n.colors {
		r, g, b := p[0]-c[0], p[1]-c[1], p[2]-c[2]
		if d := r*r + g*g + b*b; d < least {
			best, least = i, d
		}
	}
	*known = int16(best + 1)
	return best
}

// band writes six rows, one pass for each colour in them.
func band(b *bytes.Buffer, img *image.Paletted, top int) {
	width := img.Rect.Dx()
	var passes [256][]byte
	for y := top; y < min(top+6, img.Rect.Dy()); y++ {
		for x := range width {
			c := img.Pix[y*img.Stride+x]
			if c == transparent {
				continue
			}
			if passes[c] == nil {
				passes[c] = make([]byte, width)
			}
			passes[c][x] |= 1 << (y - top)
		}
	}
	first := true
	for c, bits := range passes {
		if bits == nil {
			continue
		}
		if !first {
			b.WriteByte('$')
		}
		first = false
		b.WriteString("#" + strconv.Itoa(c))
		runs(b, bits)
	}
}

// runs writes the columns of one pass, equal ones by their count.
func runs(b *bytes.Buffer, bits []byte) {
	for i := 0; i < len(bits); {
		n := 1
		for i+n < len(bits) && bits[i+n] == bits[i] {
			n++
		}
		switch sixel := bits[i] + '?'; {
		case i+n == len(bits) && bits[i] == 0: // nothing more in this colour
		case n > 3:
			b.WriteString("!" + strconv.Itoa(n) + string(rune(sixel)))
		default:
			b.Write(bytes.Repeat([]byte{sixel}, n))
		}
		i += n
	}
}

// palette finds at most n colours by median cut: the box of colours that is
// widest in one of red, green and blue is cut in two there, as often as needed.
func palette(img *image.NRGBA, n int) color.Palette {
	boxes := []box{newBox(samples(img))}
	for len(boxes) < n {
		widest := 0
		for i := range boxes {
			if boxes[i].spread > boxes[widest].spread {
				widest = i
			}
		}
		if boxes[widest].spread == 0 {
			break
		}
		low, high := boxes[widest].cut()
		boxes[widest] = low
		boxes = append(boxes, high)
	}
	out := make(color.Palette, len(boxes))
	for i, b := range boxes {
		out[i] = b.mean()
	}
	return out
}

// maxColors bounds the pixels that a palette is made from.
const maxColors = 1 << 16

type rgb [3]uint8

func samples(img *image.NRGBA) []rgb {
	pixels := len(img.Pix) / 4
	step := max(pixels/maxColors, 1)
	out := make([]rgb, 0, pixels/step+1)
	for i := 0; i < pixels; i += step {
		if p := img.Pix[4*i : 4*i+4]; p[3] >= 0x80 {
			out = append(out, rgb{p[0], p[1], p[2]})
		}
	}
	if len(out) == 0 {
		out = append(out, rgb{})
	}
	return out
}

type box struct {
	colors []rgb
	axis   int // the widest one
	spread int
}

func newBox(colors []rgb) box {
	b := box{colors: colors}
	for axis := range 3 {
		low, high := 255, 0
		for _, c := range colors {
			low, high = min(low, int(c[axis])), max(high, int(c[axis]))
		}
		if high-low > b.spread {
			b.axis, b.spread = axis, high-low
		}
	}
	return b
}

// cut halves a box that has a spread: at the median, but never within pixels
// that are equal on the axis, so that few colours stay exact.
func (b box) cut() (low, high box) {
	slices.SortFunc(b.colors, func(x, y rgb) int { return int(x[b.axis]) - int(y[b.axis]) })
	at := len(b.colors) / 2
	value := b.colors[at][b.axis]
	for at > 0 && b.colors[at-1][b.axis] == value {
		at--
	}
	if at == 0 {
		for b.colors[at][b.axis] == value {
			at++
		}
	}
	return newBox(b.colors[:at]), newBox(b.colors[at:])
}

func (b box) mean() color.RGBA {
	var sum [3]int
	for _, c := range b.colors {
		for i := range sum {
			sum[i] += int(c[i])
		}
	}
	n := len(b.colors)
	return color.RGBA{uint8(sum[0] / n), uint8(sum[1] / n), uint8(sum[2] / n), 0xff}
}
