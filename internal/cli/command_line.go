package cli

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/toolreg/toolreg/internal/args"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
	"github.com/toolreg/toolreg/internal/ui"
)

// CallLine returns the command line that calls a tool with params, in the form
// k=v if possible.
func CallLine(name string, def *registry.Definition, params []byte) string {
	line := "toolreg call " + Quote(ui.Line(name))
	arguments, ok := args.Format(params, def.InputSchema)
	if !ok {
		var compact bytes.Buffer
		if json.Compact(&compact, params) != nil {
			return line
		}
		return line + " --params " + Quote(string(text.EscapeJSON(compact.Bytes())))
	}
	return strings.TrimSuffix(line+" "+QuoteWords(arguments), " ")
}

// QuoteWords writes words for a command line.
func QuoteWords(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = Quote(w)
	}
	return strings.Join(quoted, " ")
}

// plainWord has the characters that need no quoting in any shell.
const plainWord = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-@/:,+%"

// Quote quotes a word for a shell. In k=v only the value is quoted.
func Quote(word string) string {
	special := func(r rune) bool { return !strings.ContainsRune(plainWord, r) }
	key, value, found := strings.Cut(word, "=")
	switch {
	case !strings.ContainsFunc(word, special) && word != "":
		return word
	case found && key != "" && !strings.ContainsFunc(key, special):
		if !strings.ContainsFunc(value, special) {
			return word
		}
		return key + "=" + single(value)
	}
	return single(word)
}

func single(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }
