package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/ui"
)

// DescribeProject describes what trusting the project means, for a screen of the given
// width. It contains text of the project, escaped.
func DescribeProject(p *settings.Project, width int, color bool) string {
	var b strings.Builder
	section := func(title string, lines []string) {
		if len(lines) == 0 {
			return
		}
		b.WriteString(title + "\n")
		for _, l := range lines {
			b.WriteString("  " + ui.Line(l) + "\n")
		}
	}
	section("files covered by trust:", p.Files)
	section("programs that would run:", p.Runs)
	section("settings that loosen restrictions:", p.Loosens)
	section("variables and references that would be read:", p.Expands)
	for _, c := range p.Changes {
		fmt.Fprintf(&b, "%s since trust was granted: %s\n", c.Kind, ui.Line(c.Name))
		if c.Diff != "" {
			b.WriteString(ui.DiffText(c.Diff, width, color))
		}
	}
	if p.Obstacle != "" {
		b.WriteString("cannot be trusted as it is: " + ui.Line(p.Obstacle) + "\n")
	}
	return b.String()
}

// AskTrust shows what trusting a project means and asks whether to. The error
// [ui.ErrNoAnswer] means no answer rather than no.
func AskTrust(ctx context.Context, tty *ui.TTY, p *settings.Project) (agreed bool, err error) {
	columns, _ := tty.Size()
	about := "Project " + ui.Line(p.Root) + ": " + Counted(len(p.Files), "file")
	if n := len(p.Runs); n > 0 {
		about += ", " + Counted(n, "program") + " to run or reach"
	}
	return AskYes(ctx, tty, ui.Query{
		Text:  fmt.Sprintf("\nProject %s\n%s\n", ui.Line(p.Root), DescribeProject(p, columns, tty.Color)),
		About: about + "\n", Question: "Trust this project?",
	})
}

// GrantTrust stores trust in the project in its current state.
func (c *Config) GrantTrust(ctx context.Context, p *settings.Project) error {
	store, err := c.TrustStore()
	if err != nil {
		return err
	}
	aside, err := store.Grant(ctx, p.Root, p.Covered, time.Now())
	if err != nil {
		return err
	}
	if aside != "" {
		c.io.Warn(registry.Diagnostic{Severity: registry.SeverityWarning, Code: "trust_damaged",
			Message: "the file of earlier grants was damaged and has been moved to " + aside})
	}
	if c.DeclinedTrust(p) {
		c.saveRefusal(ctx, p, "")
	}
	if !c.io.Quiet && !c.io.JSON {
		c.io.Note("toolreg: " + ui.Line(p.Root) + " is trusted\n")
	}
	return nil
}

// offerTrust asks once on a terminal whether to trust an untrusted project. A no is
// stored for exactly what was shown; later runs only warn. p may be nil.
func (c *Config) offerTrust(ctx context.Context, p *settings.Project) (agreed bool, err error) {
	if p == nil || p.Trusted || p.Obstacle != "" || p.Hash == "" || !c.mayOffer() || c.DeclinedTrust(p) {
		return false, nil
	}
	if _, err := c.Folders.State(); err != nil {
		return false, nil // the answer could not be stored
	}
	tty, err := c.person.OpenTTY()
	if err != nil {
		return false, nil // nobody can be asked; the warning says what to do
	}
	defer tty.Close()
	agreed, err = AskTrust(ctx, tty, p)
	switch {
	case errors.Is(err, ui.ErrNoAnswer):
		return false, nil
	case err != nil:
		return false, err
	case !agreed:
		c.saveRefusal(ctx, p, p.Hash)
		return false, nil
	}
	if err := c.GrantTrust(ctx, p); err != nil {
		return false, fmt.Errorf("saving the grant: %w", err)
	}
	return true, nil
}

// mayOffer reports whether a person would see the question: not in commands
// that must be silent, and not inside a tool's run.
func (c *Config) mayOffer() bool {
	switch c.command.CommandPath() {
	case "toolreg list", "toolreg call", "toolreg schema", "toolreg discover", "toolreg servers":
		return c.io.ErrTTY && !c.person.NonInteractive && !c.io.Quiet && !process.InsideTool(c.Environ)
	}
	return false
}

// refusalFile returns the name of the state file that stores a person's refusal to trust a
// project: the hash of what they were shown. With any other content there is no refusal.
func refusalFile(p *settings.Project) string {
	sum := sha256.Sum256([]byte(p.Root))
	return "declined-" + hex.EncodeToString(sum[:8])
}

// DeclinedTrust reports whether the person refused to trust the project in its current
// state.
func (c *Config) DeclinedTrust(p *settings.Project) bool {
	d, err := c.Folders.State()
	if err != nil {
		return false
	}
	data, err := d.Read(refusalFile(p))
	return err == nil && string(data) == p.Hash+"\n"
}

// saveRefusal stores the hash of what the person refused to trust; "" deletes it.
func (c *Config) saveRefusal(ctx context.Context, p *settings.Project, hash string) {
	d, err := c.Folders.State()
	if err == nil {
		err = d.Update(ctx, refusalFile(p), func([]byte) ([]byte, error) { return []byte(hash + "\n"), nil })
	}
	if err != nil {
		c.io.Warn(registry.Diagnostic{Severity: registry.SeverityWarning, Code: "answer_not_saved",
			Message: "the answer cannot be remembered, so the next run asks again: " + err.Error()})
	}
}

// withRefusal replaces the diagnostics about a project that the person refused to trust by a
// single line, because they know the rest. p may be nil.
func (c *Config) withRefusal(p *settings.Project, diags []registry.Diagnostic) []registry.Diagnostic {
	if p == nil || p.Trusted || len(p.Covered) == 0 || !c.DeclinedTrust(p) {
		return diags
	}
	what := p.Covered[0].Name
	if n := len(p.Covered) - 1; n > 0 {
		what += " and " + Counted(n, "more file")
	}
	diags = slices.DeleteFunc(diags, func(d registry.Diagnostic) bool {
		return d.Code == settings.CodeProjectUntrusted || d.Code == "project_settings_invalid"
	})
	return append(diags, registry.Diagnostic{Severity: registry.SeverityWarning, Code: settings.CodeProjectUntrusted,
		Message: "not loaded, because you declined to trust this project: " + what + "; run toolreg trust grant to change that"})
}
