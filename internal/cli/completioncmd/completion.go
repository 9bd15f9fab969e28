// Package completioncmd implements the command completion, which prints a
// script for a shell, and the hidden command complete, which that script runs
// when Tab is pressed. cobra finds the completions; this package quotes them
// for each shell and makes them safe to show.
package completioncmd

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/cli/complete"
	"github.com/toolreg/toolreg/internal/text"
	"github.com/toolreg/toolreg/internal/ui"
)

//go:embed scripts
var scripts embed.FS

// New returns the command completion.
func New(e *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "completion SHELL",
		Short: "Print a completion script for your shell",
		Long: `Print a script that makes a shell complete toolreg's commands and flags, tools and
their params, values, servers and settings when you press Tab.

  bash        in ~/.bashrc:                    eval "$(toolreg completion bash)"
  zsh         in ~/.zshrc, after compinit:     eval "$(toolreg completion zsh)"
  fish        in config.fish:                  toolreg completion fish | source
  PowerShell  in $PROFILE:
      toolreg completion powershell | Out-String | Invoke-Expression

Completion starts and contacts nothing: its words come from the settings, the
built-in tools, the manifests of plugins and what servers answered before. Tools
of MCP servers complete once a command such as "toolreg list" has listed them;
their prompts and resources, and the tools of discovery commands and factories,
only if cache.discovery is set, for example to 24h.

In bash, zsh and fish, Tab never runs what is on the command line. PowerShell
evaluates the line up to the cursor when you press Tab, subexpressions such as
$(…) included; what completion itself inserts is escaped.

Exit codes: 0, 2.`,
		Example: `  eval "$(toolreg completion bash)"
  toolreg completion fish > ~/.config/fish/completions/toolreg.fish
  toolreg completion zsh > ~/.zsh/completions/_toolreg`,
		Args:              cli.ArgsBetween(1, 1, "the name of a shell: bash, zsh, fish or powershell"),
		ValidArgsFunction: complete.Arg(complete.Words("bash", "zsh", "fish", "powershell")),
		RunE: func(cmd *cobra.Command, argv []string) error {
			script, err := scriptFor(cmd.Root(), argv[0])
			if err != nil {
				return err
			}
			_, err = io.WriteString(e.IO.Out, script)
			return err
		},
	}
}

// scriptFor returns the script for a shell. PowerShell's is cobra's.
func scriptFor(root *cobra.Command, shell string) (string, error) {
	switch shell {
	case "bash", "zsh", "fish":
		data, err := scripts.ReadFile("scripts/toolreg." + shell)
		return string(data), err
	case "powershell":
		var b strings.Builder
		err := root.GenPowerShellCompletionWithDesc(&b)
		return b.String(), err
	}
	return "", cli.Usage(fmt.Sprintf("unknown shell %q", shell), "one of bash, zsh, fish, powershell")
}

// bashLine is a command line up to the cursor, parsed as bash does but without
// expansions.
type bashLine struct {
	words []string // without quotes; the last is the one to complete
	quote byte     // the open quote in the last word, 0 if none
	start int      // bytes of the last word before the part that bash replaces
	mixed bool     // a quote was closed in the last word, so that start is meaningless
}

// parseLine parses a line. Bash replaces the text after the last unquoted
// character of breaks (COMP_WORDBREAKS), or after the open quote.
func parseLine(line, breaks string) bashLine {
	var l bashLine
	var word strings.Builder
	inWord := false
	end := func() {
		if inWord {
			l.words = append(l.words, word.String())
		}
		word.Reset()
		inWord, l.start, l.mixed = false, 0, false
	}
	for i := 0; i < len(line); i++ {
		c := line[i]
		escapes := c == '\\' && i+1 < len(line) && l.quote != '\'' &&
			(l.quote == 0 || strings.IndexByte("\"$`\\", line[i+1]) >= 0)
		switch {
		case escapes:
			i++
			word.WriteByte(line[i])
		case c == l.quote && c != 0:
			l.quote, l.mixed = 0, true
		case l.quote != 0:
			word.WriteByte(c)
		case c == '\'' || c == '"':
			l.quote, l.start = c, word.Len()
		case c == ' ' || c == '\t' || c == '\n':
			end()
			continue
		default:
			word.WriteByte(c)
			switch {
			case strings.IndexByte(breaks, c) < 0:
			case c == '@' || c == '$': // these are part of the text that bash replaces
				l.start = word.Len() - 1
			default:
				l.start = word.Len()
			}
		}
		inWord = true
	}
	l.words = append(l.words, word.String())
	return l
}

// replies returns the lines of COMPREPLY: the candidates that begin with the
// last word, quoted, without the part that bash keeps. A space ends a complete
// word. With descriptions the lines are only shown, because bash inserts at
// most their common prefix.
func (l bashLine) replies(all []candidate, described bool, columns int) []string {
	if l.mixed {
		return nil
	}
	var words, descriptions []string
	typed, longest := l.words[len(l.words)-1], 0
	for _, c := range all {
		quoted, ok := "", false
		if strings.HasPrefix(c.word, typed) {
			quoted, ok = l.quoted(c.word[l.start:])
		}
		if !ok {
			continue
		}
		if l.quote == 0 && !strings.HasSuffix(c.word, "=") && !strings.HasSuffix(c.word, "/") { // it is complete
			quoted += " "
		}
		words, descriptions = append(words, quoted), append(descriptions, c.description)
		longest = max(longest, ui.Width(quoted))
	}
	described = described && len(words) > 1
	for i := range words {
		if room := columns - longest - len(" ()"); described && descriptions[i] != "" && room > 8 {
			words[i] += strings.Repeat(" ", longest-ui.Width(words[i])) + " (" + ui.Cut(descriptions[i], room) + ")"
		}
		words[i] += "\n"
	}
	return words
}

// quoted quotes a text for insertion at the cursor; ok is false if that is
// impossible within the open quotes.
func (l bashLine) quoted(s string) (quoted string, ok bool) {
	switch l.quote {
	case '\'':
		return s, !strings.Contains(s, "'")
	case '"':
		return s, !strings.ContainsAny(s, "\"$`\\!")
	}
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; !isPlain(c) && (c != '~' || i == 0 && l.start == 0) {
			b.WriteByte('\\')
		}
		b.WriteByte(s[i])
	}
	return b.String(), true
}

// isPlain reports whether a byte never needs quoting in bash.
func isPlain(c byte) bool {
	return c >= 0x80 || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' ||
		c >= 'a' && c <= 'z' || strings.IndexByte("_-.,/:=@%+", c) >= 0
}

// NewComplete returns the command that the scripts run.
func NewComplete(e *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use: "complete", Hidden: true, DisableFlagParsing: true,
		// The flags belong to the completed line.
		PersistentPreRunE: func(*cobra.Command, []string) error { return nil },
		RunE: func(cmd *cobra.Command, argv []string) error {
			_, err := io.WriteString(e.IO.Out, reply(cmd.Context(), cmd.Root(), argv))
			return err
		},
	}
}

// reply returns what the completion script reads: a line that says whether the shell
// itself completes files or folders, then a line for each candidate. argv is the name of
// the shell and the script's variables. If they are invalid, the reply is empty, because
// an error would not be shown.
func reply(ctx context.Context, root *cobra.Command, argv []string) string {
	if len(argv) < 2 {
		return ""
	}
	switch shell, rest := argv[0], argv[1:]; shell {
	case "zsh", "fish":
		a := ask(ctx, root, rest)
		if shell == "zsh" { // _describe reads a backslash before a colon as a quote
			a.candidates = slices.DeleteFunc(a.candidates,
				func(c candidate) bool { return strings.ContainsRune(c.word, '\\') })
		}
		return a.lines()
	case "bash":
		if len(rest) == 4 {
			return replyBash(ctx, root, rest[0], rest[1], rest[2], rest[3])
		}
	}
	return ""
}

// replyBash completes the line up to the cursor. kind is the kind of completion
// that bash requests (COMP_TYPE); the others are its variables.
func replyBash(ctx context.Context, root *cobra.Command, typed, kind, columns, breaks string) string {
	l := parseLine(typed, breaks)
	if len(l.words) < 2 {
		return ""
	}
	a := ask(ctx, root, l.words[1:])
	width, err := strconv.Atoi(columns)
	if err != nil {
		width = 80
	}
	described := strings.Contains("?!@", kindName(kind))
	return a.kind + "\n" + strings.Join(l.replies(a.candidates, described, width), "")
}

// kindName returns the character whose number is in COMP_TYPE.
func kindName(kind string) string {
	n, err := strconv.ParseUint(kind, 10, 7)
	if err != nil {
		return "\t"
	}
	return string(rune(n))
}

// candidate is a word that can be inserted at the cursor.
type candidate struct{ word, description string }

// answer is the completions at the cursor.
type answer struct {
	candidates []candidate
	kind       string // "files" or "dirs" if the shell completes those
}

// lines returns the candidates for zsh and fish, preceded by the kind.
func (a answer) lines() string {
	var b strings.Builder
	b.WriteString(a.kind + "\n")
	for _, c := range a.candidates {
		b.WriteString(strings.TrimSuffix(c.word+"\t"+c.description, "\t") + "\n")
	}
	return b.String()
}

// ask has cobra complete the last of words, which follow the program's name.
func ask(ctx context.Context, root *cobra.Command, words []string) answer {
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetErr(io.Discard)
	root.SetArgs(append([]string{cobra.ShellCompRequestCmd}, words...))
	if root.ExecuteContext(ctx) != nil {
		return answer{}
	}
	lines := strings.Split(strings.TrimRight(out.String(), "\n"), "\n")
	var directive cobra.ShellCompDirective
	if _, err := fmt.Sscanf(lines[len(lines)-1], ":%d", &directive); err != nil ||
		directive&cobra.ShellCompDirectiveError != 0 {
		return answer{}
	}
	last := words[len(words)-1]
	prefix := flagPrefix(last)
	var a answer
	seen := map[string]bool{}
	for _, line := range lines[:len(lines)-1] {
		word, description, _ := strings.Cut(line, "\t")
		if prefix != "" && !strings.HasPrefix(word, prefix) { // cobra returns only the value
			word = prefix + word
		}
		if !seen[word] && word != "" {
			seen[word] = true
			a.candidates = append(a.candidates, candidate{word,
				text.ClipRunes(strings.ReplaceAll(description, "`", ""), maxDescription)}) // backquotes are around a flag's placeholder
		}
	}
	switch {
	case len(a.candidates) > 0, directive&cobra.ShellCompDirectiveNoFileComp != 0:
	case directive&cobra.ShellCompDirectiveFilterDirs != 0:
		a.kind = "dirs"
	default:
		a.kind = "files"
	}
	return a
}

// flagPrefix returns the part before the value in --flag=value; "" for other
// words.
func flagPrefix(word string) string {
	if i := strings.IndexByte(word, '='); i > 0 && word[0] == '-' {
		return word[:i+1]
	}
	return ""
}

const maxDescription = 120 // the maximum length of a description
