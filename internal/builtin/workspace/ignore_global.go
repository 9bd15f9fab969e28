package workspace

import (
	"os"
	"path/filepath"
	"slices"

	"github.com/toolreg/toolreg/internal/expand"
)

// globalExcludes returns the path of the person's own ignore file: git's
// core.excludesFile, or git/ignore in the configuration folder.
func (w *Dir) globalExcludes() (found string) {
	home, config := w.userFolders()
	for _, file := range slices.Backward(w.userConfigs()) {
		for key, value := range configEntries(string(readOutside(file))) {
			if key == "core.excludesfile" {
				found = value
			}
		}
		if found != "" {
			return expand.Home(found, home)
		}
	}
	return filepath.Join(config, "git", "ignore")
}

// readOutside reads one of the person's own files, by absolute path.
func readOutside(path string) []byte {
	if !filepath.IsAbs(path) {
		return nil
	}
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	f, err := os.OpenFile(path, os.O_RDONLY|openNonblock, 0)
	if err != nil {
		return nil
	}
	defer f.Close()
	return readAtMost(f, maxIgnoreFile)
}
