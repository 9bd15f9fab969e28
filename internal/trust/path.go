package trust

import "path/filepath"

// Real returns a path without symbolic links, or clean if its links cannot be
// followed. "" stays "".
func Real(path string) string {
	if path == "" {
		return ""
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return filepath.Clean(path)
}

// Within reports whether a path is a folder or lies below it, by their texts: both
// are absolute, or relative to the same folder.
func Within(path, folder string) bool {
	rel, err := filepath.Rel(folder, path)
	return err == nil && filepath.IsLocal(rel)
}
