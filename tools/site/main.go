// Site builds the documentation as a static web site ("make site") from the pages in docs
// and the changelog. The site needs no server: it can be opened from a folder, and loads
// nothing from elsewhere. It is a separate program, so that none of it is in the shipped
// binary.
package main

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: site DIR")
		os.Exit(2)
	}
	if err := build(".", os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "site:", err)
		os.Exit(1)
	}
}

var (
	//go:embed site.css
	styles []byte
	//go:embed site.js
	script []byte
)

// build writes the site of the repository at root to a folder.
func build(root, dir string) error {
	s, err := newSite(root)
	if err != nil {
		return err
	}
	index, err := s.index()
	if err != nil {
		return err
	}
	files := map[string][]byte{"site.css": styles, "site.js": script, "search-index.js": index}
	for _, p := range s.pages {
		if files[p.address], err = s.html(p); err != nil {
			return fmt.Errorf("%s: %w", p.source, err)
		}
	}
	for name := range s.images {
		if files[name], err = os.ReadFile(filepath.Join(root, "docs", name)); err != nil {
			return err
		}
	}
	for name, data := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, data, 0o644))
		if err != nil {
			return err
		}
	}
	return nil
}
