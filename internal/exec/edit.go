package exec

import (
	"github.com/aymanbagabas/go-udiff"

	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
)

// contentEdit is what a person made of the content that a call proposed. A nil
// one is no edit.
type contentEdit struct {
	file            string
	proposed, final string
}

// Limits on what is told of an edit, in bytes: of the contents that are compared,
// and of the diff.
const (
	maxCompared = 1 << 20
	maxDiff     = 64 << 10
)

// agreed completes the edit with what was agreed to in the end; nil where that is
// what was proposed.
func (e *contentEdit) agreed(p registry.Preview) *contentEdit {
	if e == nil || p.NewContent == e.proposed {
		return nil
	}
	return &contentEdit{p.FileName, e.proposed, p.NewContent}
}

// addTo tells the model, behind the result of the call, that its content is not
// what the call was made with.
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
