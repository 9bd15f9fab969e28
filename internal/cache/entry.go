package cache

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"time"

	"github.com/toolreg/toolreg/internal/jsonx"
)

// format is the version of the file format. Files of other versions are
// ignored.
const format = 1

// Entry is the cached data of a source.
type Entry struct {
	Facts  json.RawMessage // a JSON value defined by the source
	Parts  [][]byte        // output of the source, byte for byte
	Stored time.Time       // set when it is stored
}

// header is the first line of a file. The parts follow it.
type header struct {
	Format int             `json:"format"`
	Key    string          `json:"key"`
	Source string          `json:"source"`
	Stored time.Time       `json:"stored"`
	Sizes  []int           `json:"sizes"` // of the parts, in bytes
	CRC    uint32          `json:"crc"`   // of the facts and the parts
	Facts  json.RawMessage `json:"facts,omitempty"`
}

func (e *Entry) encode(source, key string) ([]byte, error) {
	var facts bytes.Buffer // compact, as the encoder writes it, because the checksum covers these bytes
	if len(e.Facts) > 0 {
		if err := json.Compact(&facts, e.Facts); err != nil {
			return nil, fmt.Errorf("encoding the tools of %s: %w", source, err)
		}
	}
	h := header{Format: format, Key: key, Source: source, Stored: e.Stored, Sizes: make([]int, len(e.Parts)), CRC: checksum(facts.Bytes(), e.Parts), Facts: facts.Bytes()}
	total := 0
	for i, p := range e.Parts {
		h.Sizes[i] = len(p)
		total += len(p)
	}
	out, err := jsonx.Marshal(h)
	if err != nil {
		return nil, fmt.Errorf("encoding the tools of %s: %w", source, err)
	}
	out = slices.Grow(append(out, '\n'), total)
	for _, p := range e.Parts {
		out = append(out, p...)
	}
	return out, nil
}

// cut splits a file into its header and the rest.
func cut(data []byte) (header, []byte, error) {
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

// decode decodes a file that was written for a source under a key. The parts
// are slices of data.
func decode(data []byte, source, key string) (Entry, error) {
	h, rest, err := cut(data)
	if err != nil {
		return Entry{}, err
	}
	if h.Key != key || h.Source != source {
		return Entry{}, errors.New("the file belongs to another source")
	}
	e := Entry{Facts: h.Facts, Stored: h.Stored, Parts: make([][]byte, len(h.Sizes))}
	for i, n := range h.Sizes {
		if n < 0 || n > len(rest) {
			return Entry{}, errors.New("the file is damaged")
		}
		e.Parts[i], rest = rest[:n:n], rest[n:]
	}
	if len(rest) > 0 || checksum(e.Facts, e.Parts) != h.CRC {
		return Entry{}, errors.New("the file is damaged")
	}
	return e, nil
}

// checksum detects damage by a disk or a crash; it does not protect against a
// person who can write our files.
func checksum(facts []byte, parts [][]byte) uint32 {
	sum := crc32.ChecksumIEEE(facts)
	for _, p := range parts {
		sum = crc32.Update(sum, crc32.IEEETable, p)
	}
	return sum
}
