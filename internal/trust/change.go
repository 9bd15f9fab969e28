package trust

import (
	"maps"
	"slices"

	"github.com/aymanbagabas/go-udiff"
)

// The kinds of a [Change].
const (
	Added   = "added"
	Changed = "changed"
	Removed = "removed"
)

// Change is the difference of a file from the granted one.
type Change struct {
	Kind string `json:"kind"`           // added, changed, removed
	Name string `json:"name"`           // file, relative to the project root
	Diff string `json:"diff,omitempty"` // unified diff; "" if the old or new text is not available
}

// granted is one file of a grant.
type granted struct {
	Name string `json:"name"`
	Path string `json:"path"`
	Sum  string `json:"sha256"`
	Text string `json:"text,omitempty"` // only short texts, to show changes later
	Link string `json:"link,omitempty"`
}

// changes returns the differences between the granted files and the current ones.
func changes(old []granted, files []File) []Change {
	before := make(map[string]granted, len(old))
	for _, g := range old {
		before[g.Name] = g
	}
	found := map[string]Change{}
	for _, f := range files {
		g, known := before[f.Name]
		delete(before, f.Name)
		switch {
		case !known:
			found[f.Name] = Change{Kind: Added, Name: f.Name, Diff: diff("/dev/null", "", f)}
		case g.Sum != f.Sum || g.Path != f.Path:
			found[f.Name] = Change{Kind: Changed, Name: f.Name, Diff: changed(g, f)}
		}
	}
	for name := range before {
		found[name] = Change{Kind: Removed, Name: name}
	}
	var out []Change
	for _, name := range slices.Sorted(maps.Keys(found)) {
		out = append(out, found[name])
	}
	return out
}

// changed returns the diff of a text file, "" if the old text was not stored, or of the
// path of a program on PATH.
func changed(g granted, f File) string {
	if f.Sum == "" {
		return udiff.Unified(plain(f.Name)+" (granted)", plain(f.Name), g.Path+"\n", f.Path+"\n")
	}
	if g.Text == "" {
		return ""
	}
	return diff(f.Name+" (granted)", g.Text, f)
}

func diff(label, old string, f File) string {
	if len(f.Data) == 0 || !isText(f.Data) {
		return ""
	}
	return udiff.Unified(label, f.Name, old, string(f.Data))
}
