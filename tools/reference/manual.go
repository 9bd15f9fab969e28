package main

import (
	"cmp"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/cli/commands"
)

// manual returns all man pages: one for each command and help topic, and some pages of docs
// that users may want to read in a terminal.
func manual(docs string, f footer) ([]page, error) {
	root := commands.Program(f.version).Tree(io.Discard)
	meanings := exitCodes(root)
	var pages []page
	err := eachCommand(root, func(cmd *cobra.Command) error {
		if cmd.IsAdditionalHelpTopicCommand() {
			pages = append(pages, topicPage(cmd, f)...)
			return nil
		}
		p, err := commandPage(cmd, meanings, f)
		pages = append(pages, p)
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, d := range []struct {
		name, section, short string
		files                []string
	}{
		{"toolreg-settings", "5", "settings of toolreg", []string{"settings.md", "reference/settings.md"}},
		{"toolreg-policy", "7", "rules, confirmation and approvals of toolreg", []string{"policy.md"}},
		{"toolreg-sandbox", "7", "programs that toolreg confines", []string{"sandbox.md"}},
	} {
		p, err := documentPage(newRoff(d.name, d.section, d.short, f), docs, d.files)
		if err != nil {
			return nil, err
		}
		pages = append(pages, page{d.name, d.section, p})
	}
	return pages, nil
}

// eachCommand visits the commands and topics that the help shows.
func eachCommand(cmd *cobra.Command, visit func(*cobra.Command) error) error {
	if !cmd.IsAvailableCommand() && !cmd.IsAdditionalHelpTopicCommand() {
		return nil
	}
	if err := visit(cmd); err != nil {
		return fmt.Errorf("%s: %w", cmd.CommandPath(), err)
	}
	for _, sub := range cmd.Commands() {
		if err := eachCommand(sub, visit); err != nil {
			return err
		}
	}
	return nil
}

func pageName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

func pageSection(cmd *cobra.Command) string {
	if cmd.IsAdditionalHelpTopicCommand() {
		return "7"
	}
	return "1"
}

// lower returns a summary with a lower-case first letter, as is usual in man pages.
func lower(short string) string {
	runes := []rune(short)
	if len(runes) > 1 && unicode.IsLower(runes[1]) {
		runes[0] = unicode.ToLower(runes[0])
	}
	return string(runes)
}

// topicPage returns the page of a help topic. The flags that every command takes
// are on the page of the program.
func topicPage(cmd *cobra.Command, f footer) []page {
	if cmd.Name() == "flags" {
		return nil
	}
	r := newRoff(pageName(cmd), "7", lower(cmd.Short), f)
	r.heading("DESCRIPTION")
	r.helpText(topicText(cmd))
	r.heading("SEE ALSO")
	r.text(reference(cmd.Root()))
	return []page{{pageName(cmd), "7", r.String()}}
}

// topicText returns the text of a help topic, without its title.
func topicText(cmd *cobra.Command) string {
	var b strings.Builder
	cmd.SetOut(&b)
	_ = cmd.Help() // writes to memory
	return strings.TrimPrefix(b.String(), cmd.Short+"\n\n")
}

func commandPage(cmd *cobra.Command, meanings map[string]string, f footer) (page, error) {
	r := newRoff(pageName(cmd), "1", lower(cmd.Short), f)
	r.heading("SYNOPSIS")
	r.synopsis(cmd)
	long, codes := cutExitCodes(cmp.Or(cmd.Long, cmd.Short))
	r.heading("DESCRIPTION")
	r.helpText(long)
	r.subcommands(cmd)
	r.flags("OPTIONS", cli.OwnFlags(cmd))
	if !cmd.HasParent() {
		r.flags("GLOBAL OPTIONS", cli.GlobalFlags(cmd))
		r.flags("OPTIONS THAT FEW NEED", cli.RareFlags(cmd))
	}
	if err := r.exitStatus(codes, meanings); err != nil {
		return page{}, err
	}
	if cmd.Example != "" {
		r.heading("EXAMPLES")
		r.literal(unindent(cmd.Example))
	}
	r.heading("SEE ALSO")
	r.text(strings.Join(seeAlso(cmd), ", "))
	return page{pageName(cmd), "1", r.String()}, nil
}

func (r *roff) synopsis(cmd *cobra.Command) {
	if cmd.HasParent() && cmd.Runnable() {
		arguments := strings.TrimPrefix(cmd.UseLine(), cmd.CommandPath())
		r.paragraph(bold(cmd.CommandPath()) + usage(arguments))
	}
	if cmd.HasAvailableSubCommands() {
		r.paragraph(bold(cmd.CommandPath()) + usage(" COMMAND [flags]"))
	}
}

func (r *roff) subcommands(cmd *cobra.Command) {
	if !cmd.HasAvailableSubCommands() {
		return
	}
	r.heading("COMMANDS")
	r.paragraph("Each command has its own page, such as " + reference(cmd.Commands()[0]) + ".")
	for _, g := range cmd.Groups() {
		r.subheading(g.Title)
		r.group(cmd, g.ID)
	}
	r.group(cmd, "")
}

// group lists the commands of a group; "" is the group of the others.
func (r *roff) group(cmd *cobra.Command, id string) {
	var rows []row
	for _, sub := range cmd.Commands() {
		if sub.GroupID == id && sub.IsAvailableCommand() && sub.Name() != "help" {
			rows = append(rows, row{sub.Name(), sub.Short})
		}
	}
	if len(rows) > 0 {
		r.rows(rows)
	}
}

func (r *roff) flags(title string, flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	r.heading(title)
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		term := bold("--" + f.Name)
		if f.Shorthand != "" {
			term = bold("-"+f.Shorthand) + ", " + term
		}
		value, meaning := pflag.UnquoteUsage(f)
		if value != "" {
			term += " " + italic(value)
		}
		r.item(term, prose(meaning+defaultOf(f)))
	})
}

// defaultOf describes the default of a flag; "" if it is a zero value.
func defaultOf(f *pflag.Flag) string {
	switch f.DefValue {
	case "", "false", "0", "0s", "[]":
		return ""
	}
	return " (default: " + f.DefValue + ")"
}

// exitStatus lists the exit codes that a command's help names. If the help does not
// describe a code, it gets its general meaning.
func (r *roff) exitStatus(codes string, meanings map[string]string) error {
	if codes == "" {
		return nil
	}
	var rows []row
	var unknown []string
	rest := oneExitCode.ReplaceAllStringFunc(codes, func(one string) string {
		m := oneExitCode.FindStringSubmatch(one)
		rows = append(rows, row{m[1], cmp.Or(m[2], meanings[m[1]])})
		if meanings[m[1]] == "" {
			unknown = append(unknown, m[1])
		}
		return ""
	})
	if rest != "" || unknown != nil {
		return fmt.Errorf("the exit codes %q: cannot parse %q, no meaning of %q", codes, rest, unknown)
	}
	r.heading("EXIT STATUS")
	r.rows(rows)
	r.paragraph("All exit codes are listed in " + codesPage + ".")
	return nil
}

var (
	exitCodesSentence = regexp.MustCompile(`\s*Exit codes: (0[^.]*)\.`)
	oneExitCode       = regexp.MustCompile(`(\d+)(?: \(([^)]*)\))?(?:, |$)`)
)

// cutExitCodes returns a help text without its sentence about exit codes, and
// the codes on one line.
func cutExitCodes(long string) (rest, codes string) {
	m := exitCodesSentence.FindStringSubmatch(long)
	if m == nil {
		return long, ""
	}
	return strings.Replace(long, m[0], "", 1), strings.Join(strings.Fields(m[1]), " ")
}

// exitCodes returns the meanings of exit codes from the help topic exit-codes.
func exitCodes(root *cobra.Command) map[string]string {
	meanings := map[string]string{}
	for _, row := range exitCodeRows(root) {
		meanings[row.term] = row.meaning
	}
	return meanings
}

func exitCodeRows(root *cobra.Command) []row {
	var rows []row
	for _, topic := range root.Commands() {
		if topic.Name() == "exit-codes" {
			for _, b := range parseHelp(topicText(topic)) {
				rows = append(rows, b.rows...)
			}
		}
	}
	return rows
}

// seeAlso returns the pages related to the page of a command.
func seeAlso(cmd *cobra.Command) []string {
	var pages []string
	if cmd.HasParent() {
		pages = append(pages, reference(cmd.Parent()))
	}
	for _, sub := range cmd.Commands() {
		if sub.IsAdditionalHelpTopicCommand() && sub.Name() != "flags" || cmd.HasParent() && sub.IsAvailableCommand() {
			pages = append(pages, reference(sub))
		}
	}
	switch cmd.CommandPath() {
	case "toolreg":
		pages = append(pages, settingsPage, policyPage, sandboxPage)
	case "toolreg settings", "toolreg init":
		pages = append(pages, settingsPage)
	case "toolreg policy", "toolreg why", "toolreg approvals":
		pages = append(pages, policyPage)
	case "toolreg call":
		pages = append(pages, paramsPage)
	}
	return pages
}

// Pages that are not about a command.
const (
	settingsPage = `\fBtoolreg\-settings\fR(5)`
	policyPage   = `\fBtoolreg\-policy\fR(7)`
	sandboxPage  = `\fBtoolreg\-sandbox\fR(7)`
	paramsPage   = `\fBtoolreg\-params\fR(7)`
	codesPage    = `\fBtoolreg\-exit\-codes\fR(7)`
)

// reference names the page of a command or topic.
func reference(cmd *cobra.Command) string {
	return bold(pageName(cmd)) + "(" + pageSection(cmd) + ")"
}
