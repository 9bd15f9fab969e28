package openapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/toolreg/toolreg/internal/openapi/spec"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
	"github.com/toolreg/toolreg/internal/trust"
)

// fileNote says in the description of a param that is a file what its value may be.
const fileNote = "A file: its path in the workspace, or its content as a data: URI."

// read reads the document, unless the operations that are known are still those of it.
func (s *Source) read(ctx context.Context, c *client, known Known) (*spec.Document, error) {
	doc := known.document()
	switch {
	case known.Failure != nil:
		return nil, known.Failure
	case doc != nil && known.Fresh:
		s.mu.Lock()
		s.info.CachedAt = known.Asked
		s.mu.Unlock()
		return doc, nil
	}
	o := spec.Options{Name: c.api.Spec, Server: c.base, Normal: registry.ValidName, FileNote: fileNote}
	if c.api.IsRemote() {
		return s.readRemote(ctx, c, o, known, doc)
	}
	if !filepath.IsAbs(o.Name) {
		o.Name = filepath.Join(s.opts.ProjectRoot, o.Name)
	}
	folder, err := os.OpenRoot(filepath.Dir(o.Name))
	if err != nil {
		return nil, s.unreadable(o.Name, err)
	}
	defer folder.Close()
	f, err := trust.Read(o.Name, s.opts.Limits.Document)
	if err != nil {
		return nil, s.unreadable(o.Name, err)
	}
	files := []fileFact{{Name: o.Name, Sum: sumOf(f.Data)}}
	if doc != nil && s.isSame(folder, files[0], known.Facts.Files) {
		return doc, nil
	}
	o.Open = func(name string) ([]byte, error) {
		data, err := s.beside(folder, name)
		if err == nil {
			files = append(files, fileFact{Name: name, Sum: sumOf(data)})
		}
		return data, err
	}
	if doc, err = spec.Read(f.Data, o); err == nil {
		s.remember(ctx, doc, files)
	}
	return doc, err
}

// isSame reports whether the files of a document have the content that they had.
func (s *Source) isSame(folder *os.Root, first fileFact, were []fileFact) bool {
	for i, was := range were {
		now := first
		if i > 0 {
			data, err := s.beside(folder, was.Name)
			if err != nil {
				return false
			}
			now = fileFact{Name: was.Name, Sum: sumOf(data)}
		}
		if now != was {
			return false
		}
	}
	return len(were) > 0
}

// readRemote reads a document at an address; doc is that of which the operations are known.
func (s *Source) readRemote(ctx context.Context, c *client, o spec.Options, known Known, doc *spec.Document) (*spec.Document, error) {
	var first *part
	if doc != nil {
		same := true
		for _, was := range known.Facts.Files {
			p, err := s.download(ctx, c, was.Name, was)
			if err != nil {
				return nil, err
			}
			if was.Name == o.Name {
				first = p
			}
			if same = same && p.same; !same {
				break
			}
		}
		if same {
			s.opts.Memory.Save(ctx, Known{Operations: known.Operations, Facts: known.Facts})
			return doc, nil
		}
	}
	if first == nil || first.same {
		var err error
		if first, err = s.download(ctx, c, o.Name, fileFact{}); err != nil {
			return nil, err
		}
	}
	files := []fileFact{first.fact}
	o.Open = func(name string) ([]byte, error) {
		p, err := s.part(ctx, c, name)
		if err != nil {
			return nil, err
		}
		files = append(files, p.fact)
		return p.data, nil
	}
	doc, err := spec.Read(first.data, o)
	if err == nil {
		s.remember(ctx, doc, files)
	}
	return doc, err
}

// unreadable returns why a file of the document cannot be read.
func (s *Source) unreadable(path string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: no such file", path)
	case errors.Is(err, trust.ErrTooLarge):
		return fmt.Errorf("%s is larger than %d bytes (limits.document)", path, s.opts.Limits.Document)
	}
	return fmt.Errorf("%s: %w", path, err)
}

// beside reads another file of a document, which must be in its folder.
func (s *Source) beside(folder *os.Root, name string) ([]byte, error) {
	rel, err := filepath.Rel(folder.Name(), name)
	if err != nil || !filepath.IsLocal(rel) {
		return nil, errors.New("it is outside the folder of the document")
	}
	info, err := folder.Stat(rel)
	if err == nil && !info.Mode().IsRegular() {
		err = trust.ErrNotRegular
	}
	if err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "statat "+rel+": "))
	}
	f, err := folder.Open(rel)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return s.limited(f)
}

// limited reads at most limits.document bytes.
func (s *Source) limited(r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, s.opts.Limits.Document+1))
	if err == nil && int64(len(data)) > s.opts.Limits.Document {
		err = fmt.Errorf("it is larger than %d bytes (limits.document)", s.opts.Limits.Document)
	}
	return data, err
}

// part is a file of a document at an address.
type part struct {
	data []byte
	fact fileFact
	same bool // it has not changed, so data is nil
}

// part gets another file of a document, which must be on its host.
func (s *Source) part(ctx context.Context, c *client, address string) (*part, error) {
	own, err := url.Parse(c.api.Spec)
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != own.Scheme || u.Host != own.Host || u.User != nil {
		return nil, errors.New("it is on another host than the document")
	}
	return s.download(ctx, c, address, fileFact{})
}

// download gets a file of the document, unless it is still the one that was.
func (s *Source) download(ctx context.Context, c *client, address string, was fileFact) (*part, error) {
	header := http.Header{}
	if was.ETag != "" {
		header.Set("If-None-Match", was.ETag)
	}
	if was.Modified != "" {
		header.Set("If-Modified-Since", was.Modified)
	}
	resp, err := c.get(ctx, address, header)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return nil, fmt.Errorf("getting the document: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusNotModified && len(header) > 1 {
		return &part{fact: was, same: true}, nil
	}
	if resp.StatusCode != http.StatusOK {
		head, _ := io.ReadAll(io.LimitReader(resp.Body, 300)) // what there is of it
		return nil, fmt.Errorf("getting the document: %s: %s", resp.Status, text.Valid(string(head)))
	}
	data, err := s.limited(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("getting the document: %w", err)
	}
	p := &part{data: data, fact: fileFact{address, sumOf(data), resp.Header.Get("ETag"), resp.Header.Get("Last-Modified")}}
	p.same = was.Sum == p.fact.Sum
	return p, nil
}
