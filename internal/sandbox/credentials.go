package sandbox

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/text"
)

// Credentials are the places in or around one workspace where the user and the system keep
// credentials: those that [Default] hides.
type Credentials struct {
	places []string // absolute, both as named and without symbolic links, in lower case with slashes
	open   []string // readable although in such a place
	keys   bool     // private keys may lie anywhere in the workspace
}

// NewCredentials returns the places that are in the workspace or contain it; nil if there are none.
func NewCredentials(workspace, home string, environ []string) *Credentials {
	h := newHome(Place{Home: home, Environ: environ})
	// The files of processes in /proc have their environments; the sandbox has one of its own.
	c := &Credentials{keys: HoldsHome(workspace, home), places: h.links.folded(append(h.hidden, "/proc"))}
	folders := h.links.folded([]string{workspace})
	if !c.keys && !slices.ContainsFunc(c.places, func(place string) bool {
		return slices.ContainsFunc(folders,
			func(folder string) bool { return isWithin(place, folder) || isWithin(folder, place) })
	}) {
		return nil
	}
	return c
}

// Open makes a folder in such a place readable. It must be called before Why.
func (c *Credentials) Open(folder string) {
	c.open = append(c.open, resolver{}.folded([]string{folder})...)
}

// folded returns paths both as named and without symbolic links, in lower case with slashes.
func (known resolver) folded(paths []string) []string {
	var out []string
	for _, path := range paths {
		out = text.AppendNew(out, foldPath(path), foldPath(known.real(path)))
	}
	return out
}

// real resolves the links in the longest part of an absolute path that exists.
func (known resolver) real(path string) string {
	for dir, rest := filepath.Clean(path), ""; ; dir, rest = filepath.Dir(dir),
		filepath.Join(filepath.Base(dir), rest) {
		if r, err := known.resolve(dir); err == nil || dir == filepath.Dir(dir) {
			return filepath.Join(r.path, rest)
		}
	}
}

func foldPath(path string) string { return strings.ToLower(filepath.ToSlash(filepath.Clean(path))) }

// Why returns why an absolute path may lead to credentials, as the end of a sentence; "" if it
// does not. Case is ignored, because the file system may ignore it.
func (c *Credentials) Why(path string) string {
	switch folded := foldPath(path); {
	case isWithinAny(folded, c.open):
		return ""
	case isWithinAny(folded, c.places):
		return "is where credentials are kept"
	case c.keys && beginsAsKey(path):
		return "begins as a private key"
	}
	return ""
}

// beginsAsKey reports whether a regular file begins as a private key does in PEM, or in the
// formats of PuTTY and age.
func beginsAsKey(path string) bool {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() { // opening others may block
		return false
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	buffer := make([]byte, 256)
	n, _ := io.ReadFull(f, buffer)
	head := strings.TrimLeft(strings.TrimPrefix(string(buffer[:n]), "\ufeff"), " \t\r\n")
	line, _, _ := strings.Cut(head, "\n")
	switch {
	case strings.HasPrefix(line, "-----BEGIN ") || strings.HasPrefix(line, "---- BEGIN "):
		return strings.Contains(line, "PRIVATE KEY")
	case strings.HasPrefix(line, "# created: "):
		return strings.Contains(head, "\n# public key: age1")
	}
	return strings.HasPrefix(line, "PuTTY-User-Key-File-") || strings.HasPrefix(line, "AGE-SECRET-KEY-")
}
