package exec

import (
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
)

// contentEdit is a person's edit of the content that a call proposed. nil means
// no edit.
type contentEdit struct {
	file            string
	proposed, final string
	accepted        *registry.Preview // the change that the person accepted with the new content; nil means none
}

// Limits, in bytes, on the contents to compare and on the diff in the note about an
// edit.
const (
	maxCompared = 1 << 20
	maxDiff     = 64 << 10
)

// next returns the edit after another answer with new content to a question that shows p.
func (e *contentEdit) next(p *registry.Preview, a Answer) *contentEdit {
	if e == nil {
		e = &contentEdit{proposed: p.NewContent}
	}
	if a.Sure {
		e.accepted = &registry.Preview{FileName: p.FileName, OriginalContent: p.OriginalContent, NewContent: a.Content}
	}
	return e
}

// accepts reports whether the person has accepted a change. The tool may end the last line
// and each line as the file does.
func (e *contentEdit) accepts(p *registry.Preview) bool {
	lines := func(s string) string { return strings.TrimRight(strings.ReplaceAll(s, "\r\n", "\n"), "\n") }
	return e != nil && e.accepted != nil && e.accepted.FileName == p.FileName &&
		e.accepted.OriginalContent == p.OriginalContent && lines(e.accepted.NewContent) == lines(p.NewContent)
}

// repeats reports whether new content changes nothing about what p shows, or is what the person accepted
// before.
func (e *contentEdit) repeats(p *registry.Preview, content string) bool {
	return content == p.NewContent ||
		e != nil && e.accepted != nil && e.accepted.FileName == p.FileName && e.accepted.NewContent == content
}

// agreed returns the edit with the content that was finally accepted, or nil if
// that is the proposed content.
func (e *contentEdit) agreed(p registry.Preview) *contentEdit {
	if e == nil || p.NewContent == e.proposed {
		return nil
	}
	return &contentEdit{file: p.FileName, proposed: e.proposed, final: p.NewContent}
}

// addTo adds a note for the model to the result of the call, which says that
// the person changed the content.
func (e *contentEdit) addTo(r registry.Result) registry.Result {
	if e == nil {
		return r
	}
	note := "The user edited the content before approving it."
	if len(e.proposed)+len(e.final) > maxCompared {
		note += " It is too long to show the difference; read the file."
	} else {
		diff := udiff.Unified("yours", "the user's", e.proposed, e.final)
		if len(diff) > maxDiff {
			diff = text.Head(diff, maxDiff) + "\n… (cut; read the file)\n"
		}
		note += " The difference from yours, in " + e.file + ":\n" + diff
	}
	return r.WithNote(note)
}
