package middleware

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/state"
	"github.com/toolreg/toolreg/internal/text"
)

// Limits on the files with complete outputs.
const (
	spillAge   = 7 * 24 * time.Hour
	spillFiles = 100
)

// spill collects the output of a call, first in memory and then in a file. Its
// methods are safe for concurrent use, because tools may call Emit concurrently.
type spill struct {
	limit   int64 // output up to this size is not written to a file
	largest int64 // maximum size of the file
	dir     func() (*state.Dir, error)
	tool    string

	mu       sync.Mutex
	chunks   []string
	buffered int64 // bytes in chunks
	total    int64
	written  int64
	file     *os.File
	path     string
	err      error
	closed   bool
}

// maxBuffered is the size up to which output is kept in memory before a file is
// created. No file is created for a call within its limit.
const maxBuffered = 1 << 20

// add adds the next piece.
func (s *spill) add(part string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed { // an abandoned tool may still emit
		return
	}
	s.total += int64(len(part))
	if s.file == nil && s.buffered+int64(len(part)) <= min(s.limit, maxBuffered) {
		s.chunks = append(s.chunks, part)
		s.buffered += int64(len(part))
		return
	}
	s.flush()
	s.write(part)
}

// flush writes the buffered output to the file.
func (s *spill) flush() {
	if s.file == nil && s.err == nil {
		s.open()
	}
	for _, c := range s.chunks {
		s.write(c)
	}
	s.chunks, s.buffered = nil, 0
}

func (s *spill) open() {
	dir, err := s.dir()
	if err != nil {
		s.err = err
		return
	}
	if s.err = dir.Sweep(time.Now(), state.Bounds{Age: spillAge, Files: spillFiles - 1}); s.err != nil {
		return
	}
	name := fmt.Sprintf("%s-%s.txt", registry.ValidName(s.tool), rand.Text()[:10])
	if s.file, s.err = dir.Create(name); s.err == nil {
		s.path = s.file.Name()
	}
}

// write appends to the file, up to its maximum size.
func (s *spill) write(part string) {
	if s.file == nil || s.err != nil {
		return
	}
	room := s.largest - s.written
	if int64(len(part)) > room {
		part = text.Head(part, int(max(room, 0)))
		s.largest = s.written + int64(len(part)) // what follows does not continue it
	}
	n, err := s.file.WriteString(part)
	s.written += int64(n)
	s.err = err
}

// finish writes the rest of the output and returns a note with the path of the
// file.
func (s *spill) finish(what string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.flush()
	if s.file != nil {
		if err := s.file.Close(); s.err == nil {
			s.err = err
		}
	}
	return fileNote(what, s.path, s.written, s.total, s.err)
}

// discard drops all output and removes the file.
func (s *spill) discard() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed, s.chunks = true, nil
	if s.file != nil {
		_ = s.file.Close()
		_ = os.Remove(s.path)
	}
}

// fileNote returns the note that names the file with the complete output.
func fileNote(what string, path string, written, total int64, err error) string {
	switch {
	case err != nil:
		return fmt.Sprintf("[the %s of %d bytes is cut, and the whole could not be saved: %v]", what, total, err)
	case written < total:
		return fmt.Sprintf("[the %s is cut; the first %d of the %d bytes that were read (limits.spill) are in %s]",
			what, written, total, filepath.ToSlash(path))
	}
	return fmt.Sprintf("[the %s is cut; all %d bytes that were read are in %s]", what, total, filepath.ToSlash(path))
}

// Save writes a tool's result to a file in the folder of cut outputs, and returns
// its path.
func (o Output) Save(ctx context.Context, tool string, data []byte) (path string, err error) {
	s := o.spill(ctx, tool)
	s.add(string(data))
	s.finish("")
	return filepath.ToSlash(s.path), s.err
}
