package mcpclient

import (
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/text"
)

// maxTail is how many lines of stderr an error shows.
const maxTail = 3

// tail returns the relevant lines of a server's stderr, quoted: the error that
// npm reports, otherwise the last lines, and the error line before them if they
// do not contain one.
func tail(stderr string) string {
	var lines []string
	for line := range strings.Lines(stderr) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		return ""
	}
	if causes := npmErrors(lines); len(causes) > 0 {
		return "its stderr has " + quoteAll(causes)
	}
	first := max(len(lines)-maxTail, 0)
	said := "its stderr ends "
	if cause := lastError(lines[:first]); cause != "" && lastError(lines[first:]) == "" {
		said = "its stderr has " + text.Quote(cause) + " and ends "
	}
	return said + quoteAll(lines[first:])
}

func quoteAll(lines []string) string {
	quoted := make([]string, len(lines))
	for i, line := range lines {
		quoted[i] = text.Quote(line)
	}
	return strings.Join(quoted, ", ")
}

// lastError returns the last line that mentions an error, or "". Many programs
// print the error first and a trace after it.
func lastError(lines []string) string {
	for _, line := range slices.Backward(lines) {
		if strings.Contains(strings.ToLower(line), "error") {
			return line
		}
	}
	return ""
}

// npmErrors returns the first two lines in which npm and npx describe the
// error, without the codes before them and the advice and log name after them.
func npmErrors(lines []string) []string {
	var out []string
	for _, line := range lines {
		said, ok := strings.CutPrefix(line, "npm error ")
		if !ok {
			said, ok = strings.CutPrefix(line, "npm ERR! ") // until npm 10.6
		}
		word, rest, _ := strings.Cut(said, " ")
		if !ok || rest == "" || slices.Contains([]string{"code", "syscall", "path", "dest", "errno", "type"}, word) {
			continue
		}
		if out = append(out, strings.Join(strings.Fields(line), " ")); len(out) == 2 {
			break
		}
	}
	return out
}
