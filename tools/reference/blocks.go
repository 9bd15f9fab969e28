package main

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/cli/commands"
	"github.com/toolreg/toolreg/internal/registry"
)

// blockComment matches a generated part of a page: the name of its generator, and its text.
var blockComment = regexp.MustCompile(`(?s)<!-- generated: ([^\n]*) -->\n(.*?)<!-- end -->`)

// generator writes the generated parts of the README and the pages in docs.
type generator struct {
	*source
	root  *cobra.Command
	tools []registry.Tool
}

func newGenerator(root string) (*generator, error) {
	g := &generator{root: commands.Program("").Tree(io.Discard)}
	var err error
	if g.source, err = loadSource(root); err != nil {
		return nil, err
	}
	g.tools, err = builtinTools()
	return g, err
}

// regenerate returns a page with its generated parts updated.
func (g *generator) regenerate(page string) (string, error) {
	var failed error
	text := blockComment.ReplaceAllStringFunc(page, func(old string) string {
		m := blockComment.FindStringSubmatch(old)
		generated, err := g.block(m[1], m[2])
		if err != nil {
			failed = fmt.Errorf("%s: %w", m[1], err)
		}
		return "<!-- generated: " + m[1] + " -->\n" + generated + "<!-- end -->"
	})
	return text, failed
}

// block generates one part. It may keep parts of its old text.
func (g *generator) block(what, old string) (string, error) {
	kind, argument, _ := strings.Cut(what, " ")
	switch kind {
	case "commands":
		return g.commandReference()
	case "exit-codes":
		return g.exitCodeTable(), nil
	case "error-codes":
		return errorCodeTable(), nil
	case "diagnostics":
		return codeTable(g.diagnosticCodes(), old), nil
	case "settings":
		return settingsTable(), nil
	case "tool":
		return g.toolReference(argument)
	case "json":
		return g.shapeTable(argument)
	}
	return "", fmt.Errorf("no generator has this name")
}

// commandReference returns a list of all commands, followed by the help of each.
func (g *generator) commandReference() (string, error) {
	var list, pages strings.Builder
	err := eachCommand(g.root, func(cmd *cobra.Command) error {
		if cmd.IsAdditionalHelpTopicCommand() && cmd.Name() == "exit-codes" { // a page of its own
			return nil
		}
		path := cmd.CommandPath()
		if cmd.IsAdditionalHelpTopicCommand() {
			path = "toolreg help " + cmd.Name()
		}
		fmt.Fprintf(&list, "| [%s](#%s) | %s |\n", path, strings.ReplaceAll(path, " ", "-"), cell(cmd.Short))
		if cmd.HasParent() && cmd.Long != "" && cmd.Long == cmd.Parent().Long { // a parent that does what this one does
			parent := cmd.Parent().CommandPath()
			fmt.Fprintf(&pages, "\n## %s\n\nThe same as [%s](#%s).\n",
				path, parent, strings.ReplaceAll(parent, " ", "-"))
			return nil
		}
		fmt.Fprintf(&pages, "\n## %s\n\n```text\n%s\n```\n",
			path, strings.TrimRight(helpOf(cmd, 86), "\n"))
		return nil
	})
	return "| command | |\n|---|---|\n" + list.String() + pages.String(), err
}

// helpOf returns the help of a command or topic, with flags wrapped at a width; 0 for no limit.
func helpOf(cmd *cobra.Command, width int) string {
	switch {
	case !cmd.IsAdditionalHelpTopicCommand():
		return strings.Replace(cli.HelpPage(cmd, width, false), "\n"+cli.MoreFlags, "", 1)
	case cmd.Name() == "flags":
		return cmd.Short + "\n\n" + cli.FlagsHelp(cmd.Root(), width)
	}
	return cmd.Short + "\n\n" + topicText(cmd)
}

func (g *generator) exitCodeTable() string {
	var b strings.Builder
	b.WriteString("| code | meaning |\n|---|---|\n")
	for _, row := range exitCodeRows(g.root) {
		fmt.Fprintf(&b, "| %s | %s |\n", row.term, cell(row.meaning))
	}
	return b.String()
}

// errorCodeTable lists the codes of errors with their exit codes.
func errorCodeTable() string {
	var b strings.Builder
	b.WriteString("| code | exit code |\n|---|---|\n")
	for _, e := range cli.ErrorCodes() {
		exit := strconv.Itoa(e.Exit)
		if e.Exit == cli.ExitInterrupted {
			exit = "129, 130 or 143, by the signal"
		}
		fmt.Fprintf(&b, "| %s | %s |\n", code(e.Word), exit)
	}
	return b.String()
}

// eachPage visits the README of a repository and its pages in docs.
func eachPage(repo string, visit func(path, text string) error) error {
	page := func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".md" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return visit(path, string(text))
	}
	if err := filepath.WalkDir(filepath.Join(repo, "README.md"), page); err != nil {
		return err
	}
	return filepath.WalkDir(filepath.Join(repo, "docs"), page)
}

// writeReference writes the generated parts of all pages.
func writeReference(repo string) error {
	g, err := newGenerator(repo)
	if err != nil {
		return err
	}
	return eachPage(repo, func(path, text string) error {
		current, err := g.regenerate(text)
		if err != nil || current == text {
			return err
		}
		return os.WriteFile(path, []byte(current), 0o644)
	})
}

// code returns text as code in Markdown; "" stays empty.
func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + text + "`"
}

// cell returns text for a cell of a Markdown table.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
