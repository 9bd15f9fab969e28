package exec

import (
	"github.com/aymanbagabas/go-udiff"

	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
)

// contentEdit is a person's edit of the content that a call proposed. nil means
// no edit.
type contentEdit struct {
	file            string
	proposed, final string
}

// Limits, in bytes, on the contents to compare and on the diff in the note about an
// edit.
const (
	maxCompared = 1 << 20
	maxDiff     = 64 << 10
)

// agreed returns the edit with the content that was finally accepted, or nil if
// that is the proposed content.
func (e *contentEdit) agreed(p registry.Preview) *contentEdit {
	if e == nil || p.NewContent == e.proposed {
		return nil
	}
	return &contentEdit{p.FileName, e.proposed, p.NewContent}
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
