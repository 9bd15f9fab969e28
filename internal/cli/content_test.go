package cli

import (
	"testing"

	"github.com/toolreg/toolreg/internal/registry"
)

func TestPartTextDescribesParts(t *testing.T) {
	for want, part := range map[string]registry.Content{
		"[image image/png, 2 bytes; --output DIR saves it, --raw writes it]":                {Type: registry.ContentImage, MIMEType: "image/png", Data: []byte("ab")},
		"[image, 2 bytes; --output DIR saves it, --raw writes it]":                          {Type: registry.ContentImage, Data: []byte("ab")},
		"[resource x://a application/x-y, 2 bytes; --output DIR saves it, --raw writes it]": {Type: registry.ContentResource, URI: "x://a", MIMEType: "application/x-y", Data: []byte("ab")},
		"[resource_link readme https://example.com/readme]":                                 {Type: registry.ContentResourceLink, Name: "readme", URI: "https://example.com/readme"},
	} {
		if got := PartText(part); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestExtension(t *testing.T) {
	for kind, want := range map[string]string{
		"text/plain": ".txt", "text/plain; charset=utf-8": ".txt", "TEXT/HTML;charset=x": ".html", "image/png": ".png", "": ".bin", "x": ".bin", "image/;": ".bin",
	} {
		if got := Extension(kind); got != want {
			t.Errorf("%q: %s, want %s", kind, got, want)
		}
	}
}
