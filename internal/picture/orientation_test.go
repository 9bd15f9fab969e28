package picture

import (
	"bytes"
	"image"
	"image/color"
	"testing"
)

// exif puts a tag of orientation into a JPEG.
func exif(jpeg []byte, order string, value byte) []byte {
	tag := "\x01\x12\x00\x03\x00\x00\x00\x01\x00" + string(value) + "\x00\x00"
	tiff := "MM\x00*\x00\x00\x00\x08\x00\x01" + tag
	if order == "II" {
		tiff = "II*\x00\x08\x00\x00\x00\x01\x00\x12\x01\x03\x00\x01\x00\x00\x00" + string(value) + "\x00\x00\x00"
	}
	body := "Exif\x00\x00" + tiff
	segment := append([]byte{0xff, 0xe1, 0, byte(len(body) + 2)}, body...)
	return bytes.Join([][]byte{jpeg[:2], segment, jpeg[2:]}, nil)
}

func TestPhotographsStandUpright(t *testing.T) {
	// Upright: red at the top left, green at the top right, blue at the bottom left.
	corners := func(img image.Image) (out [3]string) {
		b := img.Bounds()
		for i, p := range []image.Point{{4, 4}, {b.Dx() - 5, 4}, {4, b.Dy() - 5}} {
			c := color.NRGBAModel.Convert(img.At(b.Min.X+p.X, b.Min.Y+p.Y)).(color.NRGBA)
			switch {
			case c.R > 150 && c.G < 100 && c.B < 100:
				out[i] = "red"
			case c.G > 150 && c.R < 100 && c.B < 100:
				out[i] = "green"
			case c.B > 150 && c.R < 100 && c.G < 100:
				out[i] = "blue"
			}
		}
		return out
	}
	upright := image.NewNRGBA(image.Rect(0, 0, 48, 32))
	for y := range 32 {
		for x := range 48 {
			c := color.NRGBA{255, 255, 255, 255}
			switch {
			case x < 16 && y < 16:
				c = color.NRGBA{255, 0, 0, 255}
			case x >= 32 && y < 16:
				c = color.NRGBA{0, 255, 0, 255}
			case x < 16:
				c = color.NRGBA{0, 0, 255, 255}
			}
			upright.SetNRGBA(x, y, c)
		}
	}
	want := corners(upright)
	for value := range 9 {
		// The camera stored the picture so that turning it by value makes it upright:
		// the inverse of 6 is 8, each other one is its own.
		inverse := map[int]int{6: 8, 8: 6}[value]
		if inverse == 0 {
			inverse = value
		}
		stored := scale(turned{upright, inverse}, turned{upright, inverse}.Bounds().Dx(), turned{upright, inverse}.Bounds().Dy())
		for _, order := range []string{"MM", "II"} {
			data := exif(asBytes(t, stored, "jpeg"), order, byte(value))
			img, err := decode(t.Context(), data)
			if err != nil {
				t.Fatal(err)
			}
			if got := corners(img); got != want || img.Bounds().Dx() != 48 {
				t.Errorf("orientation %d, %s: %v in %v", value, order, got, img.Bounds())
			}
			if info, err := Read(data); err != nil || info.Width != 48 || info.Height != 32 {
				t.Errorf("orientation %d, %s: %+v, %v", value, order, info, err)
			}
		}
	}
}

func TestOrientationOfNonsense(t *testing.T) {
	data := exif(asBytes(t, sample(8, 8), "jpeg"), "MM", 6)
	for n := range data[:60] {
		if got := orientation(data[:n]); got != 1 && got != 6 {
			t.Errorf("%d bytes: %d", n, got)
		}
	}
	for _, s := range []string{"\xff\xd8\xff\xe1\x00\x01", "\xff\xd8\xff\xe1\x00\x10Exif\x00\x00MM\x00*\xff\xff\xff\xff", "\x89PNG"} {
		if got := orientation([]byte(s)); got != 1 {
			t.Errorf("%q: %d", s, got)
		}
	}
}
