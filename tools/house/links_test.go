package house_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// TestLinks checks that every link between the pages of the repository leads to an
// existing page and heading, and that the index of docs links to each page.
func TestLinks(t *testing.T) {
	t.Chdir(root)
	pages := markdownPages(t)
	index := filepath.Join("docs", "README.md")
	var indexed []string
	for path, text := range pages {
		for _, m := range pageLink.FindAllStringSubmatch(outsideCode(text), -1) {
			if strings.Contains(m[1], ":") { // a link to another site
				continue
			}
			file, anchor, _ := strings.Cut(m[1], "#")
			target := path
			if file != "" {
				target = filepath.Join(filepath.Dir(path), file)
			}
			if path == index {
				indexed = append(indexed, target)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: the link %s has no target", path, m[1])
			} else if anchor != "" && !slices.Contains(anchors(pages[target]), anchor) {
				t.Errorf("%s: no heading matches the link %s, only %q", path, m[1], anchors(pages[target]))
			}
		}
	}
	for path := range pages {
		if strings.HasPrefix(path, "docs"+string(filepath.Separator)) && path != index && !slices.Contains(indexed, path) {
			t.Errorf("%s does not link to %s", index, path)
		}
	}
}

// markdownPages returns the pages of the repository by path.
func markdownPages(t *testing.T) map[string]string {
	t.Helper()
	pages := map[string]string{}
	for _, pattern := range []string{"*.md", "examples/*.md", "docs/*.md", "docs/*/*.md"} {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			pages[path] = string(text)
		}
	}
	return pages
}

var (
	pageLink   = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	codeBlock  = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	codeSpan   = regexp.MustCompile("`[^`\n]*`")
	headingRow = regexp.MustCompile(`(?m)^#+ (.*)$`)
)

// outsideCode returns a page without code.
func outsideCode(page string) string {
	return codeSpan.ReplaceAllString(codeBlock.ReplaceAllString(page, ""), "")
}

// anchors returns the anchors that sites generate for the headings of a page.
func anchors(page string) []string {
	var found []string
	for _, m := range headingRow.FindAllStringSubmatch(codeBlock.ReplaceAllString(page, ""), -1) {
		found = append(found, strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				return unicode.ToLower(r)
			}
			return -1
		}, m[1]))
	}
	return found
}
