// Package complete provides completions for the arguments and flags of commands.
// Completion runs when the user presses Tab, so it starts no processes, contacts no
// servers, asks no questions and fails silently. Package completioncmd makes the words
// safe to insert.
package complete

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/toolreg/toolreg/internal/builtin"
	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/provider"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/settings/table"
	"github.com/toolreg/toolreg/internal/text"
)

// Args completes the arguments of a command, the first one with the first
// function and so on; the last function is used for all that follow. Words that
// are already arguments are not offered again.
func Args(each ...cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, argv []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
		list, directive := each[min(len(argv), len(each)-1)](cmd, argv, word)
		return slices.DeleteFunc(list, func(c cobra.Completion) bool {
			name, _, _ := strings.Cut(c, "\t")
			return slices.Contains(argv, name)
		}), directive
	}
}

// Arg completes the one argument that a command has.
func Arg(complete cobra.CompletionFunc) cobra.CompletionFunc {
	return Args(complete, cobra.NoFileCompletions)
}

// Flag completes the values of a flag of the command.
func Flag(cmd *cobra.Command, name string, complete cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(name, complete); err != nil {
		panic(err) // the flag does not exist, or has a completion
	}
}

// Words completes fixed words, each alone or with its description after a tab.
func Words(words ...string) cobra.CompletionFunc {
	return cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)
}

// Files completes names of files, as the shell does by itself.
func Files(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveDefault
}

// Dirs completes names of folders.
func Dirs(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveFilterDirs
}

// Completer completes what depends on the settings. Load and Open read the global flags of the
// command line to complete.
type Completer struct {
	Load     func(*cobra.Command) (*settings.Settings, error)
	Open     func(*cobra.Command) (*engine.Session, error)
	Absolute func(path string) string // of a path of the command line
}

// Settings makes a completion of values in the settings.
func (c Completer) Settings(list func(context.Context, *settings.Settings) []cobra.Completion) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		set, err := c.Load(cmd)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return safeWords(list(cmd.Context(), set)), cobra.ShellCompDirectiveNoFileComp
	}
}

// Session makes a completion of what a session knows without starting any source. list
// is called with the arguments before the word.
func (c Completer) Session(list func(ctx context.Context, s *engine.Session,
	argv []string, word string) []cobra.Completion) cobra.CompletionFunc {
	return func(cmd *cobra.Command, argv []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
		s, err := c.Open(cmd)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return safeWords(list(cmd.Context(), s, argv, word)), cobra.ShellCompDirectiveNoFileComp
	}
}

// safeWords omits words that the program would take for flags and words with characters that
// a terminal would interpret or cobra would cut off. It removes such characters from
// descriptions. Both words and descriptions may be foreign text.
func safeWords(list []cobra.Completion) []cobra.Completion {
	var out []cobra.Completion
	for _, c := range list {
		word, description, _ := strings.Cut(c, "\t")
		if word != "" && !strings.HasPrefix(word, "-") &&
			strings.TrimSpace(word) == word && !strings.ContainsFunc(word, invisible) {
			out = append(out, cobra.CompletionWithDesc(word, strings.TrimSpace(strings.Map(visible, description))))
		}
	}
	return out
}

func invisible(r rune) bool { return text.Invisible(r) || r == utf8.RuneError }

// visible maps white space to a space and removes invisible characters.
func visible(r rune) rune {
	switch {
	case unicode.IsSpace(r):
		return ' '
	case invisible(r):
		return -1
	}
	return r
}

// List completes words that describe gives with a description, "" for none.
func List[T any](from []T, describe func(T) (word, description string)) []cobra.Completion {
	out := make([]cobra.Completion, len(from))
	for i, x := range from {
		out[i] = cobra.CompletionWithDesc(describe(x))
	}
	return out
}

// SettingKeys completes the names of settings and of their groups, and the
// servers among them.
func (c Completer) SettingKeys() cobra.CompletionFunc {
	return c.Settings(func(_ context.Context, set *settings.Settings) []cobra.Completion {
		var out []cobra.Completion
		for _, r := range table.NewIndex().Rows {
			if !r.Foreign {
				out = append(out, cobra.CompletionWithDesc(r.Name, summary(r.Doc)))
			}
		}
		for _, s := range set.Servers {
			out = append(out, cobra.CompletionWithDesc("mcpServers."+s.Name, s.Origin.String()))
		}
		for i := range set.APIs {
			out = append(out, cobra.CompletionWithDesc("openapi."+set.APIs[i].Name, set.APIs[i].Origin.String()))
		}
		return out
	})
}

// Formats completes the formats of declarations.
func Formats(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return List(provider.Formats(), func(f provider.Format) (string, string) { return f.Name, f.Summary }),
		cobra.ShellCompDirectiveNoFileComp
}

func (c Completer) registry(list func(*registry.Registry) []cobra.Completion) cobra.CompletionFunc {
	return c.Session(func(ctx context.Context, s *engine.Session, _ []string, _ string) []cobra.Completion {
		reg, err := s.Tools.All(ctx)
		if err != nil {
			return nil
		}
		return list(reg)
	})
}

// Tools completes names of tools.
func (c Completer) Tools() cobra.CompletionFunc {
	return c.registry(func(reg *registry.Registry) []cobra.Completion {
		return List(reg.Tools(), func(t *registry.Tool) (string, string) {
			return t.Name, cmp.Or(summary(t.Description), t.DisplayName)
		})
	})
}

// Servers completes names of MCP servers, including disabled ones.
func (c Completer) Servers() cobra.CompletionFunc {
	return c.Settings(func(_ context.Context, set *settings.Settings) []cobra.Completion {
		return List(set.Entries(), func(s settings.Server) (string, string) {
			return s.Name, cmp.Or(s.Description, s.Origin.String())
		})
	})
}

// Plugins completes ids of plugins, including those that are not in use.
func (c Completer) Plugins() cobra.CompletionFunc {
	return c.Session(func(_ context.Context, s *engine.Session, _ []string, _ string) []cobra.Completion {
		var out []cobra.Completion
		for _, p := range s.Plugins.Found {
			out = append(out, cobra.CompletionWithDesc(p.ID, p.Description))
		}
		return out
	})
}

// Sources completes names of sources.
func (c Completer) Sources() cobra.CompletionFunc {
	return c.registry(func(reg *registry.Registry) []cobra.Completion {
		return List(reg.Reports(), func(r registry.SourceReport) (string, string) {
			return r.Name, "tools: " + strconv.Itoa(r.Tools)
		})
	})
}

// Categories completes the standard categories and others that tools use.
func (c Completer) Categories() cobra.CompletionFunc {
	return c.registry(func(reg *registry.Registry) []cobra.Completion {
		out := []cobra.Completion{"read", "write", "command", "network", "other"}
		for _, t := range reg.Tools() {
			out = append(out, string(t.Category))
		}
		return distinct(out)
	})
}

// Tags completes the tags that tools have.
func (c Completer) Tags() cobra.CompletionFunc {
	return c.registry(func(reg *registry.Registry) []cobra.Completion {
		var out []cobra.Completion
		for _, t := range reg.Tools() {
			out = append(out, t.Tags...)
		}
		return distinct(out)
	})
}

// distinct removes empty and duplicate words.
func distinct(words []string) []string {
	var out []string
	for _, w := range words {
		if w != "" && !slices.Contains(out, w) {
			out = append(out, w)
		}
	}
	return out
}

// Presets completes presets, also after a comma.
func Presets(_ *cobra.Command, _ []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
	before := word[:strings.LastIndexByte(word, ',')+1]
	var out []cobra.Completion
	for _, preset := range builtin.Presets() {
		if !slices.Contains(strings.Split(before, ","), preset) {
			out = append(out, before+preset)
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

// summary is the first sentence of a description.
func summary(description string) string {
	line, _, _ := strings.Cut(text.FirstLine(description), ". ")
	return text.ClipRunes(strings.TrimSuffix(strings.TrimSpace(line), "."), summaryLength)
}

const summaryLength = 80 // the maximum length of a description's first sentence
