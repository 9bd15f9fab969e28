package picture

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/color"
)

// orientation returns how a photograph has to be turned to stand upright: the
// tag 0x0112 of Exif 2.3 in a JPEG, 1 (as it is) to 8; 1 where there is none.
func orientation(data []byte) int {
	if !begins(data, "\xff\xd8\xff") {
		return 1
	}
	for at := 2; at+4 <= len(data) && data[at] == 0xff; {
		kind, size := data[at+1], int(binary.BigEndian.Uint16(data[at+2:]))
		if kind == 0xda || size < 2 || at+2+size > len(data) { // the picture itself, or the end
			return 1
		}
		if segment := data[at+4 : at+2+size]; kind == 0xe1 && bytes.HasPrefix(segment, []byte("Exif\x00\x00")) {
			return orientationOf(segment[6:])
		}
		at += 2 + size
	}
	return 1
}

// orientationOf reads the tag from a TIFF structure.
func orientationOf(tiff []byte) int {
	var order binary.ByteOrder
	switch {
	case bytes.HasPrefix(tiff, []byte("II*\x00")):
		order = binary.LittleEndian
	case bytes.HasPrefix(tiff, []byte("MM\x00*")):
		order = binary.BigEndian
	default:
		return 1
	}
	if len(tiff) < 8 {
		return 1
	}
	start := int64(order.Uint32(tiff[4:]))
	if start+2 > int64(len(tiff)) {
		return 1
	}
	const entry = 12
	fields := tiff[start+2:]
	for n := int(order.Uint16(tiff[start:])); n > 0 && len(fields) >= entry; n, fields = n-1, fields[entry:] {
		if order.Uint16(fields) == 0x0112 {
			if v := int(order.Uint16(fields[8:])); v >= 1 && v <= 8 {
				return v
			}
			return 1
		}
	}
	return 1
}

// turned is an image that is stored in another orientation than it is shown in.
type turned struct {
	image.Image
	orientation int // 2 to 8
}

func (t turned) Bounds() image.Rectangle {
	b := t.Image.Bounds()
	if t.orientation >= 5 {
		return image.Rect(0, 0, b.Dy(), b.Dx())
	}
	return image.Rect(0, 0, b.Dx(), b.Dy())
}

// At maps a place in the upright image to where it is stored.
func (t turned) At(x, y int) color.Color {
	b := t.Image.Bounds()
	w, h := b.Dx()-1, b.Dy()-1
	switch t.orientation {
	case 2:
		x = w - x
	case 3:
		x, y = w-x, h-y
	case 4:
		y = h - y
	case 5:
		x, y = y, x
	case 6:
		x, y = y, h-x
	case 7:
		x, y = w-y, h-x
	case 8:
		x, y = w-y, x
	}
	return t.Image.At(b.Min.X+x, b.Min.Y+y)
}
