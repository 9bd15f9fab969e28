package trust

import (
	"bytes"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
)

// document covers an OpenAPI document and the files in its folder to which it refers. What
// is not covered because a reference is written in an unusual way is not read either.
func (c *cover) document(path string) error {
	if c.scripts {
		return nil
	}
	folder, found := filepath.Dir(path), map[string]bool{path: true}
	for next := []string{path}; len(next) > 0; next = next[1:] {
		if err := c.add(next[0]); err != nil {
			return err
		}
		f, err := Read(next[0], maxBytes) // add has checked what is left
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrNotRegular) {
				continue
			}
			return err
		}
		for _, ref := range references(f.Data) {
			file := filepath.Join(filepath.Dir(next[0]), filepath.FromSlash(ref))
			if rel, err := filepath.Rel(folder, file); err == nil && filepath.IsLocal(rel) && !found[file] {
				found[file], next = true, append(next, file)
			}
		}
	}
	return nil
}

// references returns the files to which the references ($ref) of a document in JSON or YAML
// refer, without duplicates.
func references(data []byte) []string {
	var out []string
	found := map[string]bool{}
	for {
		_, after, ok := bytes.Cut(data, []byte("$ref"))
		if !ok {
			return out
		}
		data = after
		after = bytes.TrimLeft(after[:min(len(after), maxReference)], "\"' \t\r\n:")
		if end := bytes.IndexAny(after, "#\"'\r\n,}"); end >= 0 {
			after = after[:end]
		}
		ref := strings.TrimSpace(strings.ReplaceAll(string(after), `\/`, "/"))
		if ref != "" && !strings.Contains(ref, "://") && !found[ref] {
			found[ref], out = true, append(out, ref)
		}
	}
}

// maxReference is how much of a document is searched for the end of a reference, in bytes.
const maxReference = 4 << 10
