package picture

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// sample is an image with smooth and hard edges, and a transparent area.
func sample(width, height int) *image.NRGBA {
	img := image.NewNRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			c := color.NRGBA{uint8(255 * x / width), uint8(255 * y / height), 128, 255}
			if x < width/4 && y < height/4 {
				c = color.NRGBA{255, 0, 0, 255}
			}
			if x >= width*3/4 && y >= height*3/4 {
				c = color.NRGBA{}
			}
			img.SetNRGBA(x, y, c)
		}
	}
	return img
}

func asBytes(t testing.TB, img image.Image, kind string) []byte {
	t.Helper()
	var b bytes.Buffer
	var err error
	switch kind {
	case "png":
		err = png.Encode(&b, img)
	case "jpeg":
		err = jpeg.Encode(&b, img, &jpeg.Options{Quality: 95})
	case "gif":
		err = gif.Encode(&b, img, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func shown(t *testing.T, data []byte, p Protocol, s Screen) string {
	t.Helper()
	var b strings.Builder
	if err := Write(t.Context(), &b, data, p, s); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// kittyPayload joins the chunks of a transmission as a terminal does. size has the
// keys that the first chunk must have in addition to the usual ones.
func kittyPayload(t *testing.T, text, size string) []byte {
	t.Helper()
	text, ok := strings.CutSuffix(text, "\n")
	if !ok {
		t.Fatalf("no newline at the end of %.40q", text)
	}
	var encoded strings.Builder
	for i := 0; text != ""; i++ {
		m := regexp.MustCompile(`^\x1b_G([^;]*);([A-Za-z0-9+/=]*)\x1b\\`).FindStringSubmatch(text)
		if m == nil || len(m[2]) > 4096 {
			t.Fatalf("chunk %d: %.60q", i, text)
		}
		text = text[len(m[0]):]
		want := "m=1"
		if text == "" {
			want = "m=0"
		}
		if i == 0 {
			want = "a=T,f=100,q=2," + size + want
		}
		if m[1] != want {
			t.Fatalf("chunk %d: keys %q, want %q", i, m[1], want)
		}
		encoded.WriteString(m[2])
	}
	data, err := base64.StdEncoding.DecodeString(encoded.String())
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestKitty(t *testing.T) {
	img := sample(300, 100)
	data := asBytes(t, img, "png")
	for screen, size := range map[Screen]string{
		{Columns: 80, Rows: 24}: "", {}: "", {Columns: 15, Rows: 24}: "c=15,r=2,", {Columns: 80, Rows: 4}: "c=18,r=3,",
		{Columns: 80, Rows: 24, Width: 240, Height: 240}: "c=80,r=8,",
	} {
		if got := kittyPayload(t, shown(t, data, Kitty, screen), size); !bytes.Equal(got, data) {
			t.Errorf("%v: the PNG was changed; %d bytes were sent", screen, len(got))
		}
	}
	for _, kind := range []string{"jpeg", "gif"} {
		got, err := png.Decode(bytes.NewReader(kittyPayload(t, shown(t, asBytes(t, img, kind), Kitty, Screen{Columns: 80, Rows: 24}), "")))
		if err != nil {
			t.Fatal(err)
		}
		if d := difference(img, got); kind == "jpeg" && d > 6 || d > 40 {
			t.Errorf("%s: off by %.1f", kind, d)
		}
	}
}

func TestITerm2(t *testing.T) {
	data := asBytes(t, sample(300, 100), "jpeg")
	for screen, size := range map[Screen]string{
		{Columns: 80, Rows: 24}: "", {Columns: 15, Rows: 24}: "width=15;height=2;", {Columns: 80, Rows: 4}: "width=18;height=3;",
	} {
		got := shown(t, data, ITerm2, screen)
		want := "\x1b]1337;File=inline=1;size=" + strconv.Itoa(len(data)) + ";" + size + "preserveAspectRatio=1:" + base64.StdEncoding.EncodeToString(data) + "\x07\n"
		if got != want {
			t.Errorf("%v: %.120q", screen, got)
		}
	}
	long := append(data, make([]byte, maxBytes)...)
	if err := Write(t.Context(), io.Discard, long, ITerm2, Screen{}); err == nil || !strings.Contains(err.Error(), "bytes are too many") {
		t.Errorf("a long file: %v", err)
	}
}

// difference returns the mean difference of two images per channel. Pixels that are
// transparent in one must be transparent in the other.
func difference(a, b image.Image) float64 {
	sum, n := 0.0, 0.0
	for y := range a.Bounds().Dy() {
		for x := range a.Bounds().Dx() {
			p := color.NRGBAModel.Convert(a.At(a.Bounds().Min.X+x, a.Bounds().Min.Y+y)).(color.NRGBA)
			q := color.NRGBAModel.Convert(b.At(b.Bounds().Min.X+x, b.Bounds().Min.Y+y)).(color.NRGBA)
			if p.A < 128 {
				continue // JPEG has no transparency
			}
			if q.A < 128 {
				return 255
			}
			sum += math.Abs(float64(p.R)-float64(q.R)) + math.Abs(float64(p.G)-float64(q.G)) + math.Abs(float64(p.B)-float64(q.B))
			n += 3
		}
	}
	return sum / n
}

// bomb returns a PNG that declares this size and contains no pixels.
func bomb(width, height uint32, depth byte) []byte {
	head := append([]byte("IHDR"), make([]byte, 13)...)
	binary.BigEndian.PutUint32(head[4:], width)
	binary.BigEndian.PutUint32(head[8:], height)
	head[12], head[13] = depth, 6
	out := append([]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\x0d"), head...)
	return binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(head))
}

func TestRefused(t *testing.T) {
	for name, data := range map[string][]byte{
		"text":           []byte("\x1b]52;c;eA==\x07"),
		"nothing":        nil,
		"a name alone":   []byte("\x89PNG\r\n\x1a\n"),
		"a bomb":         bomb(100_000, 100_000, 8),
		"a large one":    bomb(6000, 7000, 16),
		"no pixels":      bomb(10, 10, 8),
		"SVG":            []byte(`<svg xmlns="http://www.w3.org/2000/svg"/>`),
		"a lie":          append([]byte("GIF89a"), make([]byte, 100)...),
		"a broken JPEG":  []byte("\xff\xd8\xff\xc0\x00\x11\x08\xff\xff\xff\xff\x03\x01\x11\x00\x02\x11\x01\x03\x11\x01"),
		"WebP":           []byte("RIFF\x20\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00\x00\x00\x00\x00\xff\xff\x00\xff\xff\x00"),
		"width of zero":  bomb(0, 5, 8),
		"negative width": bomb(1<<31, 5, 8),
	} {
		for _, p := range []Protocol{Kitty, ITerm2} {
			var b strings.Builder
			err := Write(t.Context(), &b, data, p, Screen{})
			if (name == "no pixels" || p == ITerm2 && name == "a broken JPEG") && err == nil {
				continue // the file is sent unchanged, and the terminal detects the error
			}
			if err == nil || b.Len() > 0 {
				t.Errorf("%s, protocol %d: %v, %d bytes", name, p, err, b.Len())
			}
		}
	}
	if err := Write(t.Context(), io.Discard, asBytes(t, sample(4, 4), "png"), None, Screen{}); !errors.Is(err, ErrNoImage) {
		t.Errorf("without a protocol: %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	cancel(why)
	if _, err := asPNG(ctx, asBytes(t, sample(2000, 2000), "jpeg")); !errors.Is(err, why) {
		t.Error(err)
	}
}

func TestDetect(t *testing.T) {
	for vars, want := range map[string]Protocol{
		"":                                      None,
		"TERM=xterm-256color":                   None,
		"TERM=xterm-kitty":                      Kitty,
		"TERM=xterm-256color KITTY_WINDOW_ID=1": Kitty,
		"TERM=xterm-ghostty":                    Kitty,
		"TERM=xterm-256color TERM_PROGRAM=iTerm.app":          ITerm2,
		"TERM=xterm-256color LC_TERMINAL=iTerm2":              ITerm2,
		"TERM=xterm-256color TERM_PROGRAM=WezTerm":            ITerm2,
		"TERM=xterm-256color TERM_PROGRAM=vscode":             ITerm2,
		"TERM=foot KITTY_WINDOW_ID=1":                         None,
		"TERM=xterm-sixel TERM_PROGRAM=WezTerm":               None,
		"TERM=dumb KITTY_WINDOW_ID=1":                         None,
		"TERM=xterm-kitty TMUX=/tmp/x":                        None,
		"TERM=tmux-256color KITTY_WINDOW_ID=1":                None,
		"TERM=screen.xterm-256color TERM_PROGRAM=WezTerm":     None,
		"TERM=xterm XTERM_VERSION=x KITTY_WINDOW_ID=1":        None,
		"TERM=xterm-256color VTE_VERSION=7 KITTY_WINDOW_ID=1": None,
		"TERM=xterm-256color TERM_PROGRAM=Apple_Terminal":     None,
	} {
		env := map[string]string{}
		for f := range strings.FieldsSeq(vars) {
			k, v, _ := strings.Cut(f, "=")
			env[k] = v
		}
		if got := detect(func(name string) string { return env[name] }); got != want {
			t.Errorf("%s: %d, want %d", vars, got, want)
		}
	}
	kitty := func(name string) string { return map[string]string{"TERM": "xterm-kitty"}[name] }
	for name, want := range map[string]Protocol{"auto": Kitty, "": Kitty, "kitty": Kitty, "iterm2": ITerm2, "never": None} {
		if got, err := Parse(name, kitty); err != nil || got != want {
			t.Errorf("%q: %d, %v", name, got, err)
		}
	}
	if _, err := Parse("Kitty", func(string) string { return "" }); err == nil || !strings.Contains(err.Error(), "auto, kitty, iterm2, never") {
		t.Error(err)
	}
}

// FuzzWrite looks for panics, and for bytes of the image that reach the terminal
// unencoded.
func FuzzWrite(f *testing.F) {
	for _, kind := range []string{"png", "jpeg", "gif"} {
		f.Add(asBytes(f, sample(4, 4), kind))
	}
	f.Add([]byte("RIFF\x20\x00\x00\x00WEBPVP8L\x0a\x00\x00\x00\x2f\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if info, err := Read(data); err == nil && info.Width*info.Height > 1<<20 {
			return // too slow for a fuzz test
		}
		for p, allowed := range map[Protocol]string{
			Kitty:  `^(\x1b_G[a-zA-Z0-9=,]*;[A-Za-z0-9+/=]*\x1b\\)*\n$`,
			ITerm2: `^\x1b\]1337;File=[a-zA-Z0-9=;]*:[A-Za-z0-9+/=]*\x07\n$`,
		} {
			var b strings.Builder
			if err := Write(t.Context(), &b, data, p, Screen{Columns: 10, Rows: 5}); err == nil && !regexp.MustCompile(allowed).MatchString(b.String()) {
				t.Fatalf("protocol %d: %q", p, b.String())
			}
		}
	})
}
