package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/licenseclassifier/v2/assets"
)

// accepted lists the licenses of modules that a binary under Apache-2.0 may include if it
// comes with their texts. Decide about any other license before adding it.
func accepted() []string {
	return []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT"}
}

// licenseFile matches the names of files whose texts must come with a binary.
var licenseFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|copyright|patents)([-._].*)?$`)

// readTexts reads the licenses and notices of a module, without duplicates.
func (m *module) readTexts() error {
	slices.Sort(m.folders)
	for _, dir := range m.folders {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if e.IsDir() || !licenseFile.MatchString(e.Name()) || filepath.Ext(e.Name()) == ".go" {
				continue
			}
			data, err := os.ReadFile(filepath.Join(dir, e.Name()))
			if err != nil {
				return err
			}
			content := strings.TrimSpace(strings.ReplaceAll(string(data), "\r\n", "\n"))
			if !slices.ContainsFunc(m.Texts, func(t text) bool { return t.Content == content }) {
				m.Texts = append(m.Texts, text{e.Name(), content})
			}
		}
	}
	return nil
}

// newClassifier returns a function that names the licenses in a module's texts.
// It fails for a module without a license that is accepted.
func newClassifier() (func(*module) (string, error), error) {
	known, err := assets.DefaultClassifier()
	if err != nil {
		return nil, fmt.Errorf("loading the known licenses: %w", err)
	}
	return func(m *module) (string, error) {
		var names []string
		for _, t := range m.Texts {
			for _, match := range known.Match([]byte(t.Content)).Matches {
				if match.MatchType != "License" || slices.Contains(names, match.Name) {
					continue
				}
				if !slices.Contains(accepted(), match.Name) {
					return "", fmt.Errorf("module %s has the license %s, which is not among those accepted: %s",
						m.Path, match.Name, strings.Join(accepted(), ", "))
				}
				names = append(names, match.Name)
			}
		}
		if len(names) == 0 {
			return "", fmt.Errorf("module %s: no known license in %q", m.Path, m.folders)
		}
		slices.Sort(names)
		return strings.Join(names, " AND "), nil
	}, nil
}

// writeLicenses writes the texts of all modules, after a list of them.
func writeLicenses(out io.Writer, modules []*module) error {
	var b strings.Builder
	b.WriteString("toolreg is linked with the following modules. Their licenses and notices follow\nthis list.\n\n")
	for _, m := range modules {
		fmt.Fprintf(&b, "  %s %s (%s)\n", m.Path, m.Version, m.License)
	}
	for _, m := range modules {
		for _, t := range m.Texts {
			fmt.Fprintf(&b, "\n%s\n%s %s, %s\n\n%s\n", strings.Repeat("-", 80), m.Path, m.Version, t.Name, t.Content)
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}
