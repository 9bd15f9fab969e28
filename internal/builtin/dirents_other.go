//go:build !linux

package builtin

import "os"

// readDir returns the entries of a folder in no order. What was read before
// an error counts.
func readDir(root *os.Root) ([]dirent, error) {
	f, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	entries, err := f.ReadDir(-1)
	out := make([]dirent, len(entries))
	for i, e := range entries {
		out[i] = dirent{name: e.Name(), kind: e.Type()}
	}
	return out, err
}
