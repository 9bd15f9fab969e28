package cache

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"
	"time"

	"github.com/toolreg/toolreg/internal/jsonx"
)

// Source identifies the record of a source.
type Source struct {
	Name string
	Key  string // hash of everything that the whole record depends on
}

// format is the version of the file format. Files of other versions are
// ignored.
const format = 2

// Kind is a kind of data about a source.
type Kind string

// The kinds of data. Sources may use others for what they offer besides tools.
const (
	Listing  Kind = "listing"  // what it listed
	Protocol Kind = "protocol" // how it was reached
	Failure  Kind = "failure"  // how it failed
	Seen     Kind = "seen"     // what it listed last, for completion
)

// Record is the cached data of a source, by kind.
type Record map[Kind]Entry

// Entry is the cached data of one kind. Saving an entry without Facts and Parts removes
// the data of that kind.
type Entry struct {
	Key    string          // what the data depends on in addition to the key of the record; "" means nothing
	Facts  json.RawMessage // a JSON value defined by the source
	Parts  [][]byte        // output of the source, byte for byte
	Stored time.Time       // set when it is stored
}

func (r Record) isEmpty() bool {
	for _, e := range r {
		if !e.isEmpty() {
			return false
		}
	}
	return true
}

// equal reports whether two entries differ at most in when they were stored.
func (e Entry) equal(other Entry) bool {
	return e.Key == other.Key && bytes.Equal(e.Facts, other.Facts) &&
		slices.EqualFunc(e.Parts, other.Parts, bytes.Equal)
}

func (e Entry) isEmpty() bool { return len(e.Facts) == 0 && e.Parts == nil }

// header is the first line of a file. The parts of all entries follow it.
type header struct {
	Format  int           `json:"format"`
	Key     string        `json:"key"`
	Source  string        `json:"source"`
	CRC     uint32        `json:"crc"` // of the facts and the parts
	Entries []entryHeader `json:"entries"`
}

type entryHeader struct {
	Kind   Kind            `json:"kind"`
	Key    string          `json:"key,omitempty"`
	Stored time.Time       `json:"stored"`
	Sizes  []int           `json:"sizes,omitempty"` // of the parts, in bytes
	Facts  json.RawMessage `json:"facts,omitempty"`
}

func (r Record) encode(s Source) ([]byte, error) {
	h := header{Format: format, Key: s.Key, Source: s.Name}
	var parts [][]byte
	for _, kind := range slices.Sorted(maps.Keys(r)) {
		e := r[kind]
		var facts bytes.Buffer // compact, as the encoder writes it, because the checksum covers these bytes
		if len(e.Facts) > 0 {
			if err := json.Compact(&facts, e.Facts); err != nil {
				return nil, fmt.Errorf("encoding the %s of %s: %w", kind, s.Name, err)
			}
		}
		eh := entryHeader{
			Kind:   kind,
			Key:    e.Key,
			Stored: e.Stored,
			Facts:  facts.Bytes(),
			Sizes:  make([]int, len(e.Parts)),
		}
		for i, p := range e.Parts {
			eh.Sizes[i] = len(p)
		}
		h.Entries, parts = append(h.Entries, eh), append(parts, e.Parts...)
	}
	h.CRC = checksum(h.Entries, parts)
	out, err := jsonx.Marshal(h)
	if err != nil {
		return nil, fmt.Errorf("encoding the record of %s: %w", s.Name, err)
	}
	return slices.Concat(append([][]byte{append(out, '\n')}, parts...)...), nil
}

func splitHeader(data []byte) (header, []byte, error) {
	line, rest, ok := bytes.Cut(data, []byte("\n"))
	var h header
	if !ok || json.Unmarshal(line, &h) != nil {
		return h, nil, errors.New("the file is damaged")
	}
	if h.Format != format {
		return h, nil, fmt.Errorf("the file has format %d, but this toolreg supports %d", h.Format, format)
	}
	return h, rest, nil
}

// decode decodes a file that was written for a source. The parts are slices of
// data.
func decode(data []byte, s Source) (Record, error) {
	h, rest, err := splitHeader(data)
	if err != nil {
		return nil, err
	}
	if h.Key != s.Key || h.Source != s.Name {
		return nil, errors.New("the file belongs to another source")
	}
	out, all := Record{}, [][]byte{}
	for _, eh := range h.Entries {
		e := Entry{Key: eh.Key, Facts: eh.Facts, Stored: eh.Stored}
		for _, n := range eh.Sizes {
			if n < 0 || n > len(rest) {
				return nil, errors.New("the file is damaged")
			}
			e.Parts, rest = append(e.Parts, rest[:n:n]), rest[n:]
		}
		out[eh.Kind], all = e, append(all, e.Parts...)
	}
	if len(rest) > 0 || checksum(h.Entries, all) != h.CRC {
		return nil, errors.New("the file is damaged")
	}
	return out, nil
}

// checksum detects damage by a disk or a crash; it does not protect against anyone who
// can write our files.
func checksum(entries []entryHeader, parts [][]byte) uint32 {
	var sum uint32
	for _, e := range entries {
		sum = crc32.Update(sum, crc32.IEEETable, e.Facts)
	}
	for _, p := range parts {
		sum = crc32.Update(sum, crc32.IEEETable, p)
	}
	return sum
}
