package openapi

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/toolreg/toolreg/internal/openapi/spec"
)

// Memory remembers the operations of a document, so that a later run need not read it again.
type Memory interface {
	// Load returns what is known. An error means that the document must not be asked for and
	// nothing is known of it.
	Load(context.Context) (Known, error)
	// Save stores what a run found: the operations, that they are still those of the
	// document, or a failure.
	Save(context.Context, Known)
}

// Known is what is known of a document.
type Known struct {
	Operations []byte // as spec.Encode writes them; nil means none
	Facts      Facts  // of the document that they are from
	Asked      time.Time
	Fresh      bool  // do not ask whether the document has changed
	Failure    error // that of a recent run, for a document at an address; nil means none
}

// Facts identify the content of a document.
type Facts struct {
	Title   string     `json:"title,omitempty"`
	Version string     `json:"version,omitempty"`
	Server  string     `json:"server,omitempty"`
	Files   []fileFact `json:"files"` // the document comes first
}

// fileFact identifies the content of one file.
type fileFact struct {
	Name     string `json:"name"`
	Sum      string `json:"sum,omitempty"`   // sha256, hex
	Stamp    string `json:"stamp,omitempty"` // with the same one, a file need not be read again
	ETag     string `json:"etag,omitempty"`
	Modified string `json:"modified,omitempty"` // as the server wrote it
}

func sumOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// document returns the document of which the operations are known; nil if none are.
func (k *Known) document() *spec.Document {
	if k.Operations == nil {
		return nil
	}
	operations, err := spec.Decode(k.Operations)
	if err != nil || len(operations) == 0 {
		return nil // a damaged record is replaced
	}
	return &spec.Document{Title: k.Facts.Title, Version: k.Facts.Version, Server: k.Facts.Server, Operations: operations}
}

// noMemory remembers nothing.
type noMemory struct{}

func (noMemory) Load(context.Context) (Known, error) { return Known{}, nil }
func (noMemory) Save(context.Context, Known)         {}

// remember stores the operations of a document.
func (s *Source) remember(ctx context.Context, doc *spec.Document, files []fileFact) {
	s.mu.Lock()
	s.files = files
	s.mu.Unlock()
	encoded, err := spec.Encode(doc)
	if err != nil {
		return
	}
	s.opts.Memory.Save(ctx, Known{Operations: encoded, Facts: Facts{doc.Title, doc.Version, doc.Server, files}})
}
