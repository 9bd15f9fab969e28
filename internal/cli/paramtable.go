package cli

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/toolreg/toolreg/internal/args"
	"github.com/toolreg/toolreg/internal/columns"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/terminal"
	"github.com/toolreg/toolreg/internal/text"
)

// ParamTable returns the table of a tool's params. It has no rows if the tool
// has no params. [Table.Text] formats it.
func ParamTable(def *registry.Definition) *columns.Table {
	t := &columns.Table{Header: []string{"PARAM", "TYPE", "REQUIRED", "DEFAULT", "ALLOWED", "EXAMPLE", "DESCRIPTION"},
		Whole: []string{"DESCRIPTION", "ALLOWED", "EXAMPLE", "DEFAULT", "TYPE"}}
	for _, p := range args.Describe(def) {
		required := "no"
		if p.Required {
			required = "yes"
		}
		t.Add(p.Name, p.Type, required, p.Default, p.Allowed, ShellWords(p.Example), p.Description)
	}
	t.DropEmpty("DEFAULT", "ALLOWED")
	return t
}

// CallLine returns the command line that calls a tool with params, in the form
// k=v if possible.
func CallLine(name string, def *registry.Definition, params []byte) string {
	line := "toolreg call " + ShellQuote(terminal.Line(name))
	arguments, ok := args.Format(params, def.InputSchema)
	if !ok {
		var compact bytes.Buffer
		if json.Compact(&compact, params) != nil {
			return line
		}
		return line + " --params " + ShellQuote(string(text.EscapeJSON(compact.Bytes())))
	}
	return strings.TrimSuffix(line+" "+ShellWords(arguments), " ")
}

// ShellWords writes words for a command line.
func ShellWords(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = ShellQuote(w)
	}
	return strings.Join(quoted, " ")
}

// plainWord has the characters that need no quoting in any shell.
const plainWord = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-@/:,+%"

// ShellQuote quotes a word for a shell. In k=v only the value is quoted.
func ShellQuote(word string) string {
	special := func(r rune) bool { return !strings.ContainsRune(plainWord, r) }
	key, value, found := strings.Cut(word, "=")
	switch {
	case !strings.ContainsFunc(word, special) && word != "":
		return word
	case found && key != "" && !strings.ContainsFunc(key, special):
		if !strings.ContainsFunc(value, special) {
			return word
		}
		return key + "=" + quote(value)
	}
	return quote(word)
}

func quote(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }
