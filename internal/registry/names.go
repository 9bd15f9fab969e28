package registry

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/mod/semver"
)

// NameIn normalizes a name or glob of tools from the settings: without surrounding blanks, and
// without @latest, since a name alone means the highest version.
func NameIn(text string) string {
	return strings.TrimSuffix(strings.TrimSpace(text), "@"+latest)
}

// maxName is the maximum length of a registered name, in characters.
const maxName = 63

// ValidName converts any text to a valid name, as Gemini CLI does: each UTF-16 code
// unit outside [a-zA-Z0-9_.-] becomes "_", and a name of more than 63 characters
// becomes its first 28, "___" and its last 32.
func ValidName(name string) string {
	if isValidName(name) {
		return name
	}
	var b strings.Builder
	for _, r := range name {
		switch {
		case isNameRune(r):
			b.WriteRune(r)
		case r > 0xFFFF:
			b.WriteString("__") // two UTF-16 code units
		default:
			b.WriteByte('_')
		}
	}
	s := b.String()
	if len(s) > maxName {
		s = s[:28] + "___" + s[len(s)-32:]
	}
	return s
}

func isValidName(name string) bool {
	return len(name) <= maxName && !strings.ContainsFunc(name, func(r rune) bool { return !isNameRune(r) })
}

func isNameRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '.' || r == '-'
}

// collation lists printable ASCII in the order of listings: punctuation,
// symbols, digits, then letters, whose case is only a tie-breaker.
const collation = " _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$0123456789abcdefghijklmnopqrstuvwxyz"

func compareNames(a, b string) int {
	at := 0 // skip the common prefix: names of one server are similar
	for at < min(len(a), len(b)) && a[at] == b[at] && a[at] < utf8.RuneSelf {
		at++
	}
	ar, br := a[at:], b[at:]
	for ar != "" && br != "" {
		r, n := utf8.DecodeRuneInString(ar)
		s, m := utf8.DecodeRuneInString(br)
		if c := cmp.Compare(weight(r), weight(s)); c != 0 {
			return c
		}
		ar, br = ar[n:], br[m:]
	}
	if ar != br {
		return cmp.Compare(len(ar), len(br)) // one of them is empty
	}
	return -strings.Compare(a, b) // lower case before upper case
}

func weight(r rune) int {
	r = unicode.ToLower(r)
	if r < 0x80 {
		if i := strings.IndexByte(collation, byte(r)); i >= 0 {
			return i
		}
		return -1
	}
	return len(collation) + int(r)
}

const maxNear = 3 // how many names are suggested

// Near returns up to three candidates that the user may have meant by name, best first, for "did
// you mean".
func Near(name string, candidates []string) []string {
	best := ranked(name, candidates)
	return best[:min(maxNear, len(best))]
}

// ranked returns the candidates that may have been meant by name, best first: our equivalents of a
// name that other agents use, then similar names.
func ranked(name string, candidates []string) []string {
	limit := min(max(1, len(name)/3), max(0, len(name)-1)) // one letter resembles nothing
	lower := strings.ToLower(name)
	found := make([][]string, limit+1) // by distance
	for _, c := range candidates {
		d := distance(lower, strings.ToLower(c), limit)
		if d > limit && len(lower) >= 3 && strings.Contains(strings.ToLower(c), lower) {
			d = limit
		}
		if d <= limit {
			found[d] = append(found[d], c)
		}
	}
	other := slices.DeleteFunc(ownEquivalents(lower), func(c string) bool { return !slices.Contains(candidates, c) })
	best := other
	for _, c := range slices.Concat(found...) {
		if !slices.Contains(other, c) {
			best = append(best, c)
		}
	}
	return best
}

// nearGlob is [Near] for a glob: it compares the text before the first special
// character, if it is long enough, with the beginnings of the candidates.
func nearGlob(glob string, candidates []string) []string {
	stem := glob[:strings.IndexAny(glob, "*?[{")]
	if len(stem) < 3 { // too little to tell a typo from another name
		return nil
	}
	begins := map[string][]string{}
	var cut []string
	for _, c := range candidates {
		begin := c[:min(len(c), len(stem))]
		if begins[begin] == nil {
			cut = append(cut, begin)
		}
		begins[begin] = append(begins[begin], c)
	}
	var out []string
	for _, begin := range Near(stem, cut) {
		out = append(out, begins[begin]...)
	}
	return out
}

// distance returns the Damerau-Levenshtein distance of two strings in bytes, in
// which swapping adjacent bytes is one operation. It returns limit+1 as soon as
// the distance exceeds limit.
func distance(a, b string, limit int) int {
	if len(a)-len(b) > limit || len(b)-len(a) > limit {
		return limit + 1
	}
	before, last, next := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		next[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			next[j] = min(last[j]+1, next[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				next[j] = min(next[j], before[j-2]+1)
			}
		}
		before, last, next = last, next, before
	}
	return last[len(b)]
}

// CompareVersions compares semantic versions (semver 2.0.0). Other text sorts
// below every semantic version, in byte order.
func CompareVersions(a, b string) int {
	av, bv := "v"+strings.TrimPrefix(a, "v"), "v"+strings.TrimPrefix(b, "v")
	if !semver.IsValid(av) && !semver.IsValid(bv) {
		return strings.Compare(a, b)
	}
	return semver.Compare(av, bv)
}

func cutVersion(text string) (name, version string, ok bool) {
	i := strings.LastIndexByte(text, '@')
	if i <= 0 {
		return text, "", false
	}
	return text[:i], text[i+1:], true
}

// latest is the version that means the highest one.
const latest = "latest"

// ownNames maps the names of built-in tools, their params, and members of a declaration to the
// names that other agents use for them, in lower case.
const ownNames = `run_shell_command: bash shell terminal execute_command run_command run_terminal_cmd local_shell
process: bashoutput killbash killshell
read_file: read view cat open_file read_text_file
edit: multiedit edit_file str_replace str_replace_editor str_replace_based_edit_tool search_replace
write_file: write create_file write_to_file
list_directory: ls list_dir list_files
grep: ripgrep search_files codebase_search
glob: file_search find_files
web_fetch: webfetch fetch_url
expected_replacements: replace_all
background: run_in_background is_background
command: cmd
directory: cwd workdir working_directory
file_path: path file filename absolute_path target_file notebook_path
path directory: file_path dir_path folder
old_string: old_str old_text
new_string: new_str new_text
content: contents text file_text
pattern: query regex
include: file_pattern
timeout: timeout_ms
parameters: inputschema input_schema`

// ownEquivalents returns our names for what other agents call name, which is in lower case.
func ownEquivalents(name string) []string {
	for line := range strings.Lines(ownNames) {
		own, others, _ := strings.Cut(line, ":")
		if slices.Contains(strings.Fields(others), name) {
			return strings.Fields(own)
		}
	}
	return nil
}
