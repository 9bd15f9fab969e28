package cli

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/toolreg/toolreg/internal/builtin"
	"github.com/toolreg/toolreg/internal/declare"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/session"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/settings/table"
	"github.com/toolreg/toolreg/internal/text"
)

// This file is what commands complete their words with: each function is a
// cobra.CompletionFunc, for CompleteArgs or CompleteFlag. Completion runs at a
// press of Tab, so it starts nothing, contacts nothing, asks nobody and fails
// silently. Package completioncmd makes the words safe to insert.

// CompleteArgs completes the arguments of a command, the first by the first
// function and so on; the last function is for all that follow. What is an
// argument already is not offered again.
func CompleteArgs(each ...cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, argv []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
		list, directive := each[min(len(argv), len(each)-1)](cmd, argv, word)
		return slices.DeleteFunc(list, func(c cobra.Completion) bool {
			name, _, _ := strings.Cut(c, "\t")
			return slices.Contains(argv, name)
		}), directive
	}
}

// CompleteArg completes the one argument that a command has.
func CompleteArg(complete cobra.CompletionFunc) cobra.CompletionFunc {
	return CompleteArgs(complete, cobra.NoFileCompletions)
}

// CompleteFlag completes the values of a flag of the command.
func CompleteFlag(cmd *cobra.Command, name string, complete cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(name, complete); err != nil {
		panic(err) // the flag does not exist, or has a completion
	}
}

// CompleteWords completes fixed words, each alone or with its description behind
// a tab.
func CompleteWords(words ...string) cobra.CompletionFunc {
	return cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)
}

// CompleteFiles completes names of files, as the shell does by itself.
func CompleteFiles(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveDefault
}

// CompleteDirs completes names of folders.
func CompleteDirs(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveFilterDirs
}

// CompleteSettings makes a completion of what the settings hold.
func (e *Env) CompleteSettings(list func(context.Context, *settings.Settings) []cobra.Completion) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if e.prepareCompletion(cmd) != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		set, _, err := e.LoadSettings(cmd.Context())
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return safe(list(cmd.Context(), set)), cobra.ShellCompDirectiveNoFileComp
	}
}

// CompleteSession makes a completion of what a session knows without starting
// anything. argv are the arguments before the word.
func (e *Env) CompleteSession(list func(ctx context.Context, s *session.Session, argv []string, word string) []cobra.Completion) cobra.CompletionFunc {
	return func(cmd *cobra.Command, argv []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if e.prepareCompletion(cmd) != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		s, err := e.Session(cmd.Context(), SessionOptions{Options: session.Options{Still: true, Preset: presetOf(cmd.Flags())}, InDocs: true})
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return safe(list(cmd.Context(), s, argv, word)), cobra.ShellCompDirectiveNoFileComp
	}
}

// safe leaves out the words that a terminal would act on, that cobra would cut or
// that would be flags, and from descriptions what a terminal would act on:
// strangers have thought them up.
func safe(list []cobra.Completion) []cobra.Completion {
	var out []cobra.Completion
	for _, c := range list {
		word, description, _ := strings.Cut(c, "\t")
		if word != "" && !strings.HasPrefix(word, "-") && strings.TrimSpace(word) == word && !strings.ContainsFunc(word, invisible) {
			out = append(out, cobra.CompletionWithDesc(word, strings.TrimSpace(strings.Map(visible, description))))
		}
	}
	return out
}

func invisible(r rune) bool { return text.Invisible(r) || r == utf8.RuneError }

// visible is a character of a description: a blank for white space, none for one
// that is not seen.
func visible(r rune) rune {
	switch {
	case unicode.IsSpace(r):
		return ' '
	case invisible(r):
		return -1
	}
	return r
}

// prepareCompletion reads the global flags as they stand on the line that is
// completed.
func (e *Env) prepareCompletion(cmd *cobra.Command) error {
	if err := e.prepare(cmd); err != nil {
		return err
	}
	e.Globals.NonInteractive, e.Globals.Quiet, e.ErrTTY = true, true, false
	return nil
}

// presetOf is the preset that the line names, "" where that is none: a mistyped
// one is told when the command runs.
func presetOf(f *pflag.FlagSet) string {
	preset, err := f.GetString("preset")
	if err != nil || session.CheckPreset(preset) != nil {
		return ""
	}
	return preset
}

// CompleteSettingKeys completes the names of settings and of their groups, and the
// servers among them.
func (e *Env) CompleteSettingKeys(cmd *cobra.Command, argv []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return e.CompleteSettings(func(_ context.Context, set *settings.Settings) []cobra.Completion {
		var out []cobra.Completion
		for _, r := range table.NewIndex().Rows {
			if !r.Foreign {
				out = append(out, cobra.CompletionWithDesc(r.Name, summary(r.Doc)))
			}
		}
		for _, s := range set.Servers {
			out = append(out, cobra.CompletionWithDesc("mcpServers."+s.Name, s.Origin.String()))
		}
		return out
	})(cmd, argv, word)
}

// CompleteFormats completes the formats of declarations.
func CompleteFormats(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var out []cobra.Completion
	for _, f := range declare.Formats() {
		out = append(out, cobra.CompletionWithDesc(f.Name, f.Summary))
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

// completeRegistry makes a completion of what is in the registry.
func (e *Env) completeRegistry(list func(*registry.Registry) []cobra.Completion) cobra.CompletionFunc {
	return e.CompleteSession(func(ctx context.Context, s *session.Session, _ []string, _ string) []cobra.Completion {
		reg, err := s.All(ctx)
		if err != nil {
			return nil
		}
		return list(reg)
	})
}

// CompleteTools completes names of tools.
func (e *Env) CompleteTools(cmd *cobra.Command, argv []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return e.completeRegistry(func(reg *registry.Registry) []cobra.Completion {
		var out []cobra.Completion
		for _, t := range reg.Tools() {
			out = append(out, cobra.CompletionWithDesc(t.Name, cmp.Or(summary(t.Description), t.DisplayName)))
		}
		return out
	})(cmd, argv, word)
}

// CompleteServers completes names of MCP servers, those that are switched off too.
func (e *Env) CompleteServers(cmd *cobra.Command, argv []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return e.CompleteSettings(func(_ context.Context, set *settings.Settings) []cobra.Completion {
		var out []cobra.Completion
		for _, s := range set.Servers {
			out = append(out, cobra.CompletionWithDesc(s.Name, cmp.Or(s.Description, s.Origin.String())))
		}
		return out
	})(cmd, argv, word)
}

// CompletePlugins completes ids of plugins, those that do not count too.
func (e *Env) CompletePlugins(cmd *cobra.Command, argv []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return e.CompleteSession(func(_ context.Context, s *session.Session, _ []string, _ string) []cobra.Completion {
		var out []cobra.Completion
		for _, p := range s.Plugins() {
			out = append(out, cobra.CompletionWithDesc(p.ID, p.Description))
		}
		return out
	})(cmd, argv, word)
}

// completeSources completes names of sources.
func (e *Env) completeSources(cmd *cobra.Command, argv []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return e.completeRegistry(func(reg *registry.Registry) []cobra.Completion {
		var out []cobra.Completion
		for _, r := range reg.Reports() {
			out = append(out, cobra.CompletionWithDesc(r.Name, Counted(r.Tools, "tool")))
		}
		return out
	})(cmd, argv, word)
}

// completeCategories completes the categories of spec section 5, and the words
// that tools have in their place.
func (e *Env) completeCategories(cmd *cobra.Command, argv []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return e.completeRegistry(func(reg *registry.Registry) []cobra.Completion {
		out := []cobra.Completion{"read", "write", "command", "network", "other"}
		for _, t := range reg.Tools() {
			out = append(out, string(t.Category))
		}
		return distinct(out)
	})(cmd, argv, word)
}

// completeTags completes the tags that tools have.
func (e *Env) completeTags(cmd *cobra.Command, argv []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return e.completeRegistry(func(reg *registry.Registry) []cobra.Completion {
		var out []cobra.Completion
		for _, t := range reg.Tools() {
			out = append(out, t.Tags...)
		}
		return distinct(out)
	})(cmd, argv, word)
}

// distinct leaves out empty words and those that come again.
func distinct(words []string) []string {
	var out []string
	for _, w := range words {
		if w != "" && !slices.Contains(out, w) {
			out = append(out, w)
		}
	}
	return out
}

// completePresets completes presets, also behind a comma.
func completePresets(_ *cobra.Command, _ []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
	before := word[:strings.LastIndexByte(word, ',')+1]
	var out []cobra.Completion
	for _, preset := range builtin.Presets() {
		if !slices.Contains(strings.Split(before, ","), preset) {
			out = append(out, before+preset)
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}
