package audit

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/toolreg/toolreg/internal/state"
)

// Defaults for [Log].
const (
	DefaultMaxSize = 10 << 20
	DefaultKeep    = 5
)

// fileName is the log's name in the state folder; rotated logs are audit.log.1
// and so on.
const fileName = "audit.log"

// Log is the audit log. It is safe for concurrent use, also by several processes.
// The caller must close it after adding entries.
type Log struct {
	Dir     *state.Dir
	MaxSize int64 // maximum size of one file in bytes; 0 means DefaultMaxSize
	Keep    int   // number of rotated logs to keep; 0 means DefaultKeep

	once sync.Once
	to   *state.Appender
}

// Add writes one entry and rotates a full log. Errors wrap
// [state.ErrUnavailable].
func (l *Log) Add(ctx context.Context, e Entry) error {
	data, err := e.line()
	if err != nil {
		return fmt.Errorf("%w: encoding an entry of the audit log: %w", state.ErrUnavailable, err)
	}
	size, err := l.appender().Append(ctx, data)
	if err != nil {
		return err
	}
	limit := cmp.Or(l.MaxSize, DefaultMaxSize)
	if size+int64(len(data)) < limit {
		return nil
	}
	return l.Dir.Rotate(ctx, fileName, limit, cmp.Or(l.Keep, DefaultKeep))
}

func (l *Log) appender() *state.Appender {
	l.once.Do(func() { l.to = l.Dir.Appender(fileName) })
	return l.to
}

// Close closes the log file. More entries can be added afterwards.
func (l *Log) Close() error { return l.appender().Close() }

// ScanOptions are the options of [Log.Scan]. The zero value reads the existing
// entries.
type ScanOptions struct {
	// Follow continues with new entries until ctx is done.
	Follow bool
	// Poll is the interval between checks for new entries; 0 means 200 ms.
	Poll time.Duration
	// Current is called once, when all existing entries have been read. May be
	// nil.
	Current func() error
}

// Scan calls each for every entry, oldest first. If each returns an error, Scan
// stops and returns it. Lines that are not valid entries are skipped; damaged is
// their number. With Follow, Scan returns no error when ctx is done.
func (l *Log) Scan(ctx context.Context, o ScanOptions, each func(Entry) error) (damaged int, err error) {
	s := &scanner{log: l, each: each}
	defer s.close()
	if err := s.advance(); err != nil {
		return s.damaged, err
	}
	if o.Current != nil {
		if err := o.Current(); err != nil {
			return s.damaged, err
		}
	}
	if !o.Follow {
		return s.damaged, nil
	}
	tick := time.Tick(cmp.Or(o.Poll, 200*time.Millisecond))
	for {
		select {
		case <-ctx.Done():
			return s.damaged, nil
		case <-tick:
		}
		if err := s.advance(); err != nil {
			return s.damaged, err
		}
	}
}

// scanner reads the files of the log, the current one last.
type scanner struct {
	log     *Log
	each    func(Entry) error
	file    *os.File // the newest file that was read
	in      *bufio.Reader
	partial []byte // an incomplete line
	damaged int
}

func (s *scanner) close() {
	if s.file != nil {
		_ = s.file.Close() // opened only for reading
	}
}

// advance reads to the current end of the log.
func (s *scanner) advance() error {
	newer, err := s.newer()
	if err != nil {
		return err
	}
	for i, f := range newer {
		// A newer file exists, so no more lines are added to this one.
		err := s.readLines()
		s.close()
		s.file, s.in = f, bufio.NewReaderSize(f, 64<<10)
		s.damage(s.partial)
		s.partial = nil
		if err != nil {
			for _, f := range newer[i+1:] {
				_ = f.Close()
			}
			return err
		}
	}
	return s.readLines()
}

// newer opens the files that are newer than the one being read, and returns
// them oldest first.
func (s *scanner) newer() ([]*os.File, error) {
	for {
		out, err := s.openFiles()
		if err != nil || len(out) < 2 || s.isNewest(out[len(out)-1]) {
			return out, err
		}
		closeAll(out) // files that were rotated meanwhile may be in the wrong order
	}
}

// isNewest reports whether f is the newest file. Between a rotation and the next
// entry that is the file that was rotated last.
func (s *scanner) isNewest(f *os.File) bool {
	newest, err := s.log.Dir.Open(fileName)
	if errors.Is(err, fs.ErrNotExist) {
		newest, err = s.log.Dir.Open(fileName + ".1")
	}
	if err != nil {
		return false
	}
	defer newest.Close()
	return sameFile(f, newest)
}

// openFiles opens the files newest first: after a concurrent rotation a file may be
// seen twice, which is detected, but is never missed.
func (s *scanner) openFiles() ([]*os.File, error) {
	var out []*os.File
	for i := range cmp.Or(s.log.Keep, DefaultKeep) + 1 {
		name := fileName
		if i > 0 {
			name = fmt.Sprintf("%s.%d", fileName, i)
		}
		f, err := s.log.Dir.Open(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			closeAll(out)
			return nil, err
		}
		if s.file != nil && sameFile(s.file, f) {
			_ = f.Close()
			break // the remaining files are older
		}
		if slices.ContainsFunc(out, func(other *os.File) bool { return sameFile(other, f) }) {
			_ = f.Close()
			continue
		}
		out = slices.Insert(out, 0, f)
	}
	return out, nil
}

func sameFile(a, b *os.File) bool {
	x, err := a.Stat()
	y, err2 := b.Stat()
	return err == nil && err2 == nil && os.SameFile(x, y)
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}

// readLines reads the complete lines up to the end of the file.
func (s *scanner) readLines() error {
	if s.in == nil {
		return nil
	}
	for {
		chunk, err := s.in.ReadSlice('\n')
		if len(s.partial)+len(chunk) <= 2*state.MaxLine {
			s.partial = append(s.partial, chunk...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("reading the audit log: %w", err)
		}
		line := s.partial
		s.partial = s.partial[:0]
		if err := s.line(line); err != nil {
			return err
		}
	}
}

func (s *scanner) line(line []byte) error {
	var e Entry
	if json.Unmarshal(line, &e) != nil || e.Outcome == "" || e.Time.IsZero() {
		s.damage(line)
		return nil
	}
	return s.each(e)
}

// damage counts a line that is not a valid entry; empty lines are ignored.
func (s *scanner) damage(line []byte) {
	if len(bytes.Trim(line, "\n ")) > 0 {
		s.damaged++
	}
}
