package file

import (
	"errors"
	"io/fs"
	"strconv"
	"strings"

	"github.com/toolreg/toolreg/internal/builtin/textfile"
	"github.com/toolreg/toolreg/internal/text"
)

// filePatch is the part of a patch that changes one file.
type filePatch struct {
	line     int    // where it starts in the patch, from 1
	old, new string // names without a/ and b/; "" is /dev/null
	copied   bool   // old is copied to new, not renamed
	mode     fs.FileMode
	git      bool // with git's header; without it, a file is not renamed onto another
	hunks    []hunk
}

var errOtherNames = errors.New("the names in the header differ from those in the --- and +++ lines")

// maxPatchFiles limits the files in one patch: all of them are planned in
// memory and staged before the first one is renamed.
const maxPatchFiles = 5000

// parsePatch parses a unified diff, plain or in git's format. Text between the
// diffs, such as a commit message, is ignored. The error is a *patchError.
func parsePatch(patch string) ([]filePatch, error) {
	patch, _ = strings.CutPrefix(patch, textfile.BOM)
	r := &patchReader{lines: strings.Split(strings.TrimSuffix(patch, "\n"), "\n")}
	var out []filePatch
	for {
		line, ok := r.peek()
		if !ok {
			break
		}
		var err error
		var p *filePatch
		switch {
		case strings.HasPrefix(line, "diff --git "):
			p, err = r.gitFile()
		case r.atNames():
			p = &filePatch{line: r.at + 1}
			if err = r.names(p, "", ""); err == nil {
				p.hunks, err = r.hunks()
			}
		case strings.HasPrefix(line, "@@"):
			err = r.fail("a hunk before any file name; put --- and +++ lines with the file's name before it")
		case strings.HasPrefix(line, "*** "):
			err = r.fail("%s is not a line of a unified diff; use the format of git diff, with --- and +++ lines and @@ headers",
				text.Quote(line))
		default:
			r.at++
		}
		if err != nil {
			return nil, err
		}
		if p != nil && len(out) == maxPatchFiles {
			return nil, r.fail("more than %d files; split the patch", maxPatchFiles)
		}
		if p != nil {
			out = append(out, *p)
		}
	}
	if len(out) == 0 {
		return nil, &patchError{line: 1,
			text: "no unified diff found; it needs --- and +++ lines with the file's name, and @@ headers"}
	}
	return out, nil
}

// gitFile parses the part of one file that starts with "diff --git".
func (r *patchReader) gitFile() (*filePatch, error) {
	p := &filePatch{line: r.at + 1, git: true}
	header, _ := r.peek()
	oldName, newName := gitNames(strings.TrimPrefix(header, "diff --git "))
	r.at++
	for {
		line, ok := r.peek()
		if !ok {
			break
		}
		known, err := r.extended(p, line, &oldName, &newName)
		if err != nil {
			return nil, err
		}
		if !known {
			break
		}
		r.at++
	}
	if r.atNames() {
		at := r.at
		err := r.names(p, oldName, newName)
		if err == nil {
			p.hunks, err = r.hunks()
			return p, err
		}
		if at == p.line || !errors.Is(err, errOtherNames) {
			return nil, err
		}
		r.at = at // the --- line belongs to the next file
	}
	if oldName == "" && newName == "" {
		return nil, &patchError{line: p.line,
			text: "the two names of the file cannot be separated; add --- and +++ lines"}
	}
	p.old, p.new = oldName, newName
	return p, nil
}

// extended parses one of git's extended header lines. known is false for any
// other line.
func (r *patchReader) extended(p *filePatch, line string, oldName, newName *string) (known bool, err error) {
	for _, prefix := range []string{"index ", "similarity index ", "dissimilarity index ", "old mode "} {
		if strings.HasPrefix(line, prefix) {
			return true, nil
		}
	}
	word := func(prefix string) (ok bool) {
		line, ok = strings.CutPrefix(line, prefix)
		return ok
	}
	switch {
	case word("new mode "):
		p.mode, err = r.mode(line)
	case word("new file mode "):
		*oldName = ""
		p.mode, err = r.mode(line)
	case word("deleted file mode "):
		*newName = ""
		_, err = r.mode(line)
	case word("rename from "):
		*oldName, err = r.name(line)
	case word("rename to "):
		*newName, err = r.name(line)
	case word("copy from "):
		p.copied = true
		*oldName, err = r.name(line)
	case word("copy to "):
		*newName, err = r.name(line)
	case word("GIT binary patch"), word("Binary files "):
		err = r.fail("binary changes cannot be applied; only text can")
	default:
		return false, nil
	}
	return true, err
}

// mode parses git's mode of a file. Only the execute permission is used.
func (r *patchReader) mode(given string) (fs.FileMode, error) {
	switch strings.TrimSpace(given) {
	case "100644":
		return 0o644, nil
	case "100755":
		return 0o755, nil
	case "120000":
		return 0, r.fail("a patch cannot create or change links")
	}
	return 0, r.fail("mode %s is not the mode of a regular file (100644 or 100755)", text.Quote(given))
}

// gitNames separates the two names in a git header. It returns "" if it cannot.
func gitNames(text string) (oldName, newName string) {
	if strings.HasPrefix(text, `"`) {
		first, rest, err := unquoteName(text)
		if err != nil || !strings.HasPrefix(rest, " ") {
			return "", ""
		}
		second := rest[1:]
		if strings.HasPrefix(second, `"`) {
			if second, rest, err = unquoteName(second); err != nil || rest != "" {
				return "", ""
			}
		}
		return stripPrefixes(first, second)
	}
	half := len(text) / 2
	if len(text)%2 == 0 || text[half] != ' ' {
		return "", "" // the names of a renamed file follow on separate lines
	}
	oldName, newName = stripPrefixes(text[:half], text[half+1:])
	if oldName != newName {
		return "", ""
	}
	return oldName, newName
}

// gitPrefixes are the letters before the slash of git's prefixes: a and b, or with diff.mnemonicPrefix
// those of commit, index, object, work tree and of the two files of --no-index.
const gitPrefixes = "abciow12"

// hasGitPrefix reports whether a name may have one of git's prefixes.
func hasGitPrefix(name string) bool {
	return len(name) > 2 && name[1] == '/' && strings.IndexByte(gitPrefixes, name[0]) >= 0
}

// stripPrefixes removes a/ and b/ if both names have them, and git's other prefixes if nothing else
// tells the names apart.
func stripPrefixes(oldName, newName string) (string, string) {
	if hasGitPrefix(oldName) && hasGitPrefix(newName) && oldName[0] != newName[0] && oldName[2:] == newName[2:] {
		return oldName[2:], newName[2:]
	}
	a, okA := strings.CutPrefix(oldName, "a/")
	b, okB := strings.CutPrefix(newName, "b/")
	switch {
	case okA && okB:
		return a, b
	case okA && newName == "":
		return a, newName
	case okB && oldName == "":
		return oldName, b
	}
	return oldName, newName
}

// names parses the --- and +++ lines. They must agree with git's header.
func (r *patchReader) names(p *filePatch, gitOld, gitNew string) error {
	var sides [2]string
	for i, prefix := range []string{"--- ", "+++ "} {
		line, _ := r.peek()
		name, err := r.name(strings.TrimPrefix(line, prefix))
		if err != nil {
			return err
		}
		if name != devNull {
			sides[i] = name
		}
		r.at++
	}
	isKnown := false // from git's header, without a prefix
	for i, name := range [2]string{gitOld, gitNew} {
		if name != "" && (sides[i] == name || hasGitPrefix(sides[i]) && sides[i][2:] == name) {
			sides[i], isKnown = name, true
		}
	}
	if p.old, p.new = sides[0], sides[1]; !isKnown {
		p.old, p.new = stripPrefixes(p.old, p.new)
	}
	if p.old == "" && p.new == "" {
		return &patchError{line: p.line, text: "both names are " + devNull}
	}
	if gitOld != "" && p.old != "" && gitOld != p.old || gitNew != "" && p.new != "" && gitNew != p.new {
		return &patchError{line: p.line, text: errOtherNames.Error(), cause: errOtherNames}
	}
	return nil
}

// name parses the name of a file: quoted as in C, or up to a tab.
func (r *patchReader) name(text string) (string, error) {
	if strings.HasPrefix(text, `"`) {
		name, rest, err := unquoteName(text)
		if err != nil || strings.TrimSpace(rest) != "" && !strings.HasPrefix(rest, "\t") {
			return "", r.fail("the name %s is not quoted properly", text)
		}
		return name, nil
	}
	name, _, _ := strings.Cut(text, "\t")
	if name = strings.TrimRight(name, " "); name == "" {
		return "", r.fail("the name of the file is missing")
	}
	return name, nil
}

// unquoteName parses a name that git quoted and returns the rest of the text.
func unquoteName(text string) (name, rest string, err error) {
	var b strings.Builder
	for i := 1; i < len(text); i++ {
		switch c := text[i]; c {
		case '"':
			return b.String(), text[i+1:], nil
		case '\\':
			i++
			if i >= len(text) {
				return "", "", strconv.ErrSyntax
			}
			if j := strings.IndexByte("abfnrtv", text[i]); j >= 0 {
				b.WriteByte("\a\b\f\n\r\t\v"[j])
				continue
			}
			if text[i] < '0' || text[i] > '7' {
				b.WriteByte(text[i])
				continue
			}
			octal, err := strconv.ParseUint(text[i:min(i+3, len(text))], 8, 8)
			if err != nil {
				return "", "", err
			}
			b.WriteByte(byte(octal))
			i += 2
		default:
			b.WriteByte(c)
		}
	}
	return "", "", strconv.ErrSyntax
}
