package process

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
)

// isBatch reports whether Windows runs a file by its command interpreter, cmd.exe.
func isBatch(path string) bool {
	return slices.Contains([]string{".bat", ".cmd"}, strings.ToLower(filepath.Ext(path)))
}

// batchLine returns the command line with which cmd.exe runs a batch file, such as npx.cmd,
// with exactly these arguments. Windows would let the interpreter read an argument such as
// "x&calc" as two commands. In quotes it finds only quotes and variables:
//   - A quote is doubled, so that the text behind it is still quoted.
//   - A percent sign is followed by a substring of %cd% that is empty, so that no two of them
//     enclose the name of a variable.
//   - Backslashes before a quote are doubled for the program that the file starts.
//
// A line break cannot be quoted, so it is an error.
func batchLine(path string, args []string) (string, error) {
	var b strings.Builder
	b.WriteString(`cmd.exe /e:on /v:off /d /c "`)
	for i, arg := range append([]string{path}, args...) {
		if strings.ContainsAny(arg, "\r\n") {
			return "", errors.New("an argument contains a line break, which a batch file cannot get")
		}
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteByte('"')
		backslashes := 0
		for _, c := range arg {
			switch c {
			case '"':
				b.WriteString(strings.Repeat(`\`, backslashes) + `"`)
			case '%':
				b.WriteString(`%%cd:~,`)
			}
			b.WriteRune(c)
			if backslashes++; c != '\\' {
				backslashes = 0
			}
		}
		if i > 0 { // the name of the file is for cmd.exe alone
			b.WriteString(strings.Repeat(`\`, backslashes))
		}
		b.WriteByte('"')
	}
	b.WriteByte('"')
	return b.String(), nil
}
