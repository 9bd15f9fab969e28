package workspace

import (
	"os"
	"path"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/text"
)

// Repositories in folders other than .git are guarded too: git treats any folder
// with the right files as a repository and runs the commands in its
// configuration.

// inRepository returns the rest of rel below a folder that git treats as a
// repository, or would treat as one once all the written files exist.
func inRepository(root *os.Root, rel string, written []string) (below string, ok bool) {
	for at, below := path.Dir(rel), path.Base(rel); ; at, below = path.Dir(at), path.Join(path.Base(at), below) {
		has := func(name string) bool {
			_, err := root.Stat(path.Join(at, name))
			return err == nil ||
				slices.ContainsFunc(written, func(file string) bool { return liesIn(file, path.Join(at, name)) })
		}
		if has("HEAD") && (has("objects") && has("refs") || has("commondir")) {
			return below, true
		}
		if at == "." {
			return "", false
		}
	}
}

// liesIn reports whether file is folder or below it, ignoring case.
func liesIn(file, folder string) bool {
	file, folder = text.Folded(file), text.Folded(folder)
	return file == folder || strings.HasPrefix(file, folder+"/")
}
