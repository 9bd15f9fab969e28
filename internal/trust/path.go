package trust

import "path/filepath"

// Real returns a path with symbolic links resolved, or just cleaned if they cannot
// be resolved. For "" it returns "".
func Real(path string) string {
	if path == "" {
		return ""
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return filepath.Clean(path)
}

// Within reports whether path is folder or lies below it, comparing the paths
// lexically. Both must be absolute, or relative to the same folder.
func Within(path, folder string) bool {
	rel, err := filepath.Rel(folder, path)
	return err == nil && filepath.IsLocal(rel)
}
