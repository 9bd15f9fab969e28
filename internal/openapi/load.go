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

// read reads the document.
func (s *Source) read(ctx context.Context, c *client) (*spec.Document, error) {
	o := spec.Options{Name: c.api.Spec, Server: c.base, Normal: registry.ValidName, FileNote: fileNote}
	if c.api.IsRemote() {
		data, err := s.download(ctx, c, c.api.Spec)
		if err != nil {
			return nil, err
		}
		o.Open = func(name string) ([]byte, error) { return s.part(ctx, c, name) }
		return spec.Read(data, o)
	}
	if !filepath.IsAbs(o.Name) {
		o.Name = filepath.Join(s.opts.ProjectRoot, o.Name)
	}
	f, err := trust.Read(o.Name, s.opts.Limits.Document)
	if err != nil {
		return nil, s.unreadable(o.Name, err)
	}
	folder, err := os.OpenRoot(filepath.Dir(o.Name))
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	o.Open = func(name string) ([]byte, error) { return s.beside(folder, name) }
	return spec.Read(f.Data, o)
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

// part gets another file of a document, which must be on its host.
func (s *Source) part(ctx context.Context, c *client, address string) ([]byte, error) {
	own, err := url.Parse(c.api.Spec)
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != own.Scheme || u.Host != own.Host || u.User != nil {
		return nil, errors.New("it is on another host than the document")
	}
	return s.download(ctx, c, address)
}

// download gets a file of the document.
func (s *Source) download(ctx context.Context, c *client, address string) ([]byte, error) {
	resp, err := c.get(ctx, address, http.Header{})
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return nil, fmt.Errorf("getting the document: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		head, _ := io.ReadAll(io.LimitReader(resp.Body, 300)) // what there is of it
		return nil, fmt.Errorf("getting the document: %s: %s", resp.Status, text.Valid(string(head)))
	}
	data, err := s.limited(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("getting the document: %w", err)
	}
	return data, nil
}
