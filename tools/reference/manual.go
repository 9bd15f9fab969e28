package main

import (
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/toolreg/toolreg/internal/cli/commands"
)

// manual returns all man pages: one for each command and help topic, and some pages of docs
// that users may want to read in a terminal.
func manual(docs string, f footer) ([]page, error) {
	root := commands.Program(f.version).Tree(io.Discard)
	var pages []page
	err := eachCommand(root, func(cmd *cobra.Command) error {
		pages = append(pages, helpPage(cmd, f))
		return nil
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

// helpPage returns the page of a command or topic: its help.
func helpPage(cmd *cobra.Command, f footer) page {
	r := newRoff(pageName(cmd), pageSection(cmd), lower(cmd.Short), f)
	r.heading("DESCRIPTION")
	r.helpText(strings.TrimPrefix(helpOf(cmd, 0), cmd.Short+"\n\n"))
	r.heading("SEE ALSO")
	r.text(strings.Join(seeAlso(cmd), ", "))
	return page{pageName(cmd), pageSection(cmd), r.String()}
}

// topicText returns the text of a help topic, without its title.
func topicText(cmd *cobra.Command) string {
	var b strings.Builder
	cmd.SetOut(&b)
	_ = cmd.Help() // writes to memory
	return strings.TrimPrefix(b.String(), cmd.Short+"\n\n")
}

// exitCodeRows returns the meanings of exit codes from the help topic exit-codes.
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
		if sub.IsAdditionalHelpTopicCommand() || cmd.HasParent() && sub.IsAvailableCommand() {
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
)

// reference names the page of a command or topic.
func reference(cmd *cobra.Command) string {
	return bold(pageName(cmd)) + "(" + pageSection(cmd) + ")"
}
