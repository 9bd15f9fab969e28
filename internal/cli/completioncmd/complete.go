package completioncmd

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/text"
)

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

// ask makes cobra complete the last word of a line; the first one is the word
// after the program's name.
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

// maxDescription is the maximum length of a description.
const maxDescription = 120
