package provider

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"image"
	_ "image/gif" // Registers the format with package image.
	_ "image/jpeg"
	_ "image/png"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/registry"
)

// mediaLimits are what an API takes of one image or file; zero means no limit. See
// docs/providers.md for their sources.
type mediaLimits struct {
	image, file int // bytes
	pixels      int // width and height of an image
}

// fit replaces media that the API does not take, because they are too large, by texts: the API
// would reject this and every later request of the conversation.
func (l mediaLimits) fit(a Answer) Answer {
	a.Content = slices.Clone(registry.OrStructured(a.Content, a.Structured))
	for i, c := range a.Content {
		if why := l.exceeded(part{c}); why != "" {
			a.Content[i] = registry.TextContent(part{c}.note() + " cannot be shown: " + why)
		}
	}
	return a
}

// exceeded says which limit a part exceeds, "" for none.
func (l mediaLimits) exceeded(p part) string {
	limit, isImage := l.file, strings.HasPrefix(p.mediaType(), "image/")
	if isImage {
		limit = l.image
	}
	if limit > 0 && len(p.Data) > limit {
		return fmt.Sprintf("the model takes at most %d bytes; get a smaller one", limit)
	}
	if width, height := size(p.Data); isImage && l.pixels > 0 && max(width, height) > l.pixels {
		return fmt.Sprintf("it has %d by %d pixels, and the model takes at most %d by %d; get a smaller one, or a part of it", width, height, l.pixels, l.pixels)
	}
	return ""
}

// size returns the pixels of an image, 0 if they are not known.
func size(data []byte) (width, height int) {
	if len(data) >= 30 && bytes.HasPrefix(data, []byte("RIFF")) {
		le := binary.LittleEndian
		switch string(data[8:16]) {
		case "WEBPVP8X":
			return int(le.Uint32(data[24:])&0xffffff) + 1, int(le.Uint32(data[26:])>>8) + 1
		case "WEBPVP8L":
			bits := le.Uint32(data[21:])
			return int(bits&0x3fff) + 1, int(bits>>14&0x3fff) + 1
		case "WEBPVP8 ":
			return int(le.Uint16(data[26:]) & 0x3fff), int(le.Uint16(data[28:]) & 0x3fff)
		}
	}
	c, _, _ := image.DecodeConfig(bytes.NewReader(data))
	return c.Width, c.Height
}
