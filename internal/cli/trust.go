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

	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/state"
	"github.com/toolreg/toolreg/internal/text"
	"github.com/toolreg/toolreg/internal/trust"
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
	if len(p.Runs)+len(p.Loosens) > 0 {
		section("what trust means:", []string{
			"the programs run with your rights, and the project may add tools, servers, rules that come after yours, and overrides;",
			"your own rules, exclusions, hooks and approvals hold for all of it, and nothing but the settings listed here loosens them",
		})
	}
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
	about := "Project " + ui.Line(p.Root) + ": " + text.Count(len(p.Files), "file")
	if n := len(p.Runs); n > 0 {
		about += ", " + text.Count(n, "program") + " to run or reach"
	}
	return askYes(ctx, tty, ui.Query{
		Text:  fmt.Sprintf("\nProject %s\n%s\n", ui.Line(p.Root), DescribeProject(p, columns, tty.Color)),
		About: about + "\n", Question: "Trust this project?",
	})
}

// Trust asks the person whether to trust a project, and keeps the answers.
type Trust struct {
	person  *Person
	folders *state.Folders
}

// Store returns the store of trust grants.
func (t *Trust) Store() (*trust.Store, error) {
	d, err := t.folders.State()
	if err != nil {
		return nil, err
	}
	return trust.NewStore(d), nil
}

// Grant stores trust in the project in its current state.
func (t *Trust) Grant(ctx context.Context, p *settings.Project) error {
	store, err := t.Store()
	if err != nil {
		return err
	}
	aside, err := store.Grant(ctx, p.Root, p.Covered, time.Now())
	if err != nil {
		return err
	}
	if aside != "" {
		t.person.io.Warn(registry.Diagnostic{Severity: registry.SeverityWarning, Code: "trust_damaged",
			Message: "the file of earlier grants was damaged and has been moved to " + aside})
	}
	if t.Declined(p) {
		t.saveRefusal(ctx, p, "")
	}
	t.person.io.Notef("%s is trusted", p.Root)
	return nil
}

// offer asks once, at a terminal, whether to trust a project that is untrusted or now runs other
// programs outside it than when it was trusted. It reports whether the settings must be read again.
// A refusal is stored for exactly what was shown; later runs only warn. p may be nil.
func (t *Trust) offer(ctx context.Context, command string, p *settings.Project) (changed bool, err error) {
	if p == nil || p.Trusted && !p.Outside || p.Obstacle != "" ||
		p.Hash == "" || !t.mayOffer(command) || t.Declined(p) {
		return false, nil
	}
	if _, err := t.folders.State(); err != nil {
		return false, nil // the answer could not be stored
	}
	tty, err := t.person.OpenTTY()
	if err != nil {
		return false, nil // nobody can be asked; the warning says what to do
	}
	defer tty.Close()
	agreed, err := AskTrust(ctx, tty, p)
	switch {
	case errors.Is(err, ui.ErrNoAnswer):
		return false, nil
	case err != nil:
		return false, err
	case !agreed:
		t.saveRefusal(ctx, p, p.Hash)
		if !p.Trusted {
			return false, nil
		}
		store, err := t.Store()
		if err == nil {
			_, err = store.Revoke(ctx, p.Root)
		}
		return true, err
	}
	if err := t.Grant(ctx, p); err != nil {
		return false, fmt.Errorf("saving the grant: %w", err)
	}
	return true, nil
}

// mayOffer reports whether a person would see the question: not in commands
// that must be silent, and not inside a tool's run.
func (t *Trust) mayOffer(command string) bool {
	switch command {
	case "toolreg list", "toolreg call", "toolreg schema", "toolreg discover", "toolreg servers":
		return t.person.io.ErrTTY && !t.person.io.Quiet && t.person.nobody() == ""
	}
	return false
}

// refusalFile returns the name of the state file that stores a person's refusal to trust a
// project: the hash of what they were shown. With any other content there is no refusal.
func refusalFile(p *settings.Project) string {
	sum := sha256.Sum256([]byte(p.Root))
	return "declined-" + hex.EncodeToString(sum[:8])
}

// Declined reports whether the person refused to trust the project in its current
// state.
func (t *Trust) Declined(p *settings.Project) bool {
	d, err := t.folders.State()
	if err != nil {
		return false
	}
	data, err := d.Read(refusalFile(p))
	return err == nil && string(data) == p.Hash+"\n"
}

// saveRefusal stores the hash of what the person refused to trust; "" deletes it.
func (t *Trust) saveRefusal(ctx context.Context, p *settings.Project, hash string) {
	d, err := t.folders.State()
	if err == nil {
		err = d.Update(ctx, refusalFile(p), func([]byte) ([]byte, error) { return []byte(hash + "\n"), nil })
	}
	if err != nil {
		t.person.io.Warn(registry.Diagnostic{Severity: registry.SeverityWarning, Code: "answer_not_saved",
			Message: "the answer cannot be remembered, so the next run asks again: " + err.Error()})
	}
}

// withRefusal replaces the diagnostics about a project that the person refused to trust by a single
// line, since the person knows the rest. p may be nil.
func (t *Trust) withRefusal(p *settings.Project, diags []registry.Diagnostic) []registry.Diagnostic {
	if p == nil || p.Trusted || len(p.Covered) == 0 || !t.Declined(p) {
		return diags
	}
	what := p.Covered[0].Name
	inside := slices.DeleteFunc(slices.Clone(p.Covered), func(f trust.File) bool { return f.Outside || f.Path == "" })
	if n := len(inside) - 1; n > 0 {
		what += " and " + text.Count(n, "more file")
	}
	diags = slices.DeleteFunc(diags, func(d registry.Diagnostic) bool {
		return d.Code == settings.CodeProjectUntrusted || d.Code == "project_settings_invalid"
	})
	return append(diags, registry.Diagnostic{Severity: registry.SeverityWarning, Code: settings.CodeProjectUntrusted,
		Message: "not loaded, because you declined to trust this project: " +
			what + "; run toolreg trust grant to change that"})
}
