package openapi

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/toolreg/toolreg/internal/expand"
	"github.com/toolreg/toolreg/internal/openapi/spec"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
	"github.com/toolreg/toolreg/internal/trust"
	"github.com/toolreg/toolreg/internal/webaddr"
)

// fileNote is added to the description of a param that is a file; it says what its value may be.
const fileNote = "A file: its path in the workspace, or its content as a data: URI."

// readDocument reads the document, unless the known operations are still up to date.
func (s *Source) readDocument(ctx context.Context, c *client, known Known) (*spec.Document, error) {
	doc := known.document()
	if doc != nil && known.Fresh {
		s.mu.Lock()
		s.info.CachedAt = known.Asked
		s.mu.Unlock()
		return doc, nil
	}
	o := spec.Options{
		Name:      c.api.Spec,
		Server:    c.base,
		Supplied:  c.supplies,
		Normal:    registry.ValidName,
		FileNote:  fileNote,
		MaxSchema: int(s.opts.Limits.Schema),
	}
	if c.api.IsRemote() {
		return s.readRemote(ctx, c, o, known, doc)
	}
	o.Name = expand.From(s.opts.ProjectRoot, o.Name)
	return s.readLocal(ctx, o, known, doc)
}

// readLocal reads a document on disk; doc is the known document with its operations.
func (s *Source) readLocal(ctx context.Context, o spec.Options,
	known Known, doc *spec.Document) (*spec.Document, error) {
	folder, err := os.OpenRoot(filepath.Dir(o.Name))
	if err != nil {
		return nil, s.unreadable(o.Name, err)
	}
	defer folder.Close()
	local := &localFiles{&s.opts, o.Name, folder}
	if doc != nil {
		if files, same := local.unchanged(known.Facts.Files); same {
			if !slices.Equal(files, known.Facts.Files) {
				known.Facts.Files = files
				s.opts.Memory.Save(ctx, Known{Operations: known.Operations, Facts: known.Facts})
			}
			return doc, nil
		}
	}
	data, fact, err := local.readFile(o.Name)
	if err != nil {
		return nil, s.unreadable(o.Name, err)
	}
	files := []fileFact{fact}
	o.Open = func(name string) ([]byte, error) {
		data, fact, err := local.readFile(name)
		if err == nil {
			files = append(files, fact)
		}
		return data, err
	}
	return s.parse(ctx, data, o, &files)
}

// parse reads a document and remembers it together with its files.
func (s *Source) parse(ctx context.Context, data []byte, o spec.Options, files *[]fileFact) (*spec.Document, error) {
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte("<")) {
		return nil, fmt.Errorf("%s is a web page, not a document in JSON or YAML", o.Name)
	}
	doc, err := spec.Read(data, o)
	if err == nil {
		s.remember(ctx, doc, *files)
	}
	return doc, err
}

// readRemote reads a document at an address; doc is the known document with its operations.
func (s *Source) readRemote(ctx context.Context, c *client, o spec.Options,
	known Known, doc *spec.Document) (*spec.Document, error) {
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
	return s.parse(ctx, first.data, o, &files)
}

// unreadable returns the error for a file of the document that cannot be read.
func (s *Source) unreadable(path string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: no such file", path)
	case errors.Is(err, trust.ErrTooLarge):
		return fmt.Errorf("%s is larger than %d bytes (limits.document)", path, s.opts.Limits.Document)
	}
	return fmt.Errorf("%s: %w", path, err)
}

type localFiles struct {
	opts     *Options
	document string // path
	folder   *os.Root
}

// unchanged reports whether the files of a document still have the same content, and returns the
// current facts about them.
func (l *localFiles) unchanged(were []fileFact) (now []fileFact, same bool) {
	for _, was := range were {
		if was.Stamp == "" || l.stamp(was.Name) != was.Stamp {
			_, fact, err := l.readFile(was.Name)
			if err != nil || fact.Sum != was.Sum {
				return nil, false
			}
			was = fact
		}
		if l.granted(was) != nil {
			return nil, false
		}
		now = append(now, was)
	}
	return now, len(were) > 0
}

// readFile reads the document, or another file of it, which must be in its folder.
func (l *localFiles) readFile(name string) ([]byte, fileFact, error) {
	fact := fileFact{Name: name, Stamp: l.stamp(name)}
	if name == l.document {
		f, err := trust.Read(name, l.opts.Limits.Document)
		if fact.Sum = f.Sum; err == nil {
			err = l.granted(fact)
		}
		return f.Data, fact, err
	}
	info, err := l.stat(name)
	if err == nil && !info.Mode().IsRegular() {
		err = trust.ErrNotRegular
	}
	if err != nil {
		return nil, fact, err
	}
	f, err := l.folder.Open(l.rel(name))
	if err != nil {
		return nil, fact, err
	}
	defer f.Close()
	data, err := l.opts.limited(f)
	if fact.Sum = sumOf(data); err == nil {
		err = l.granted(fact)
	}
	return data, fact, err
}

func (l *localFiles) granted(f fileFact) error {
	if l.opts.Granted == nil {
		return nil
	}
	return l.opts.Granted(f.Name, f.Sum)
}

// rel returns the path of a file in the document's folder.
func (l *localFiles) rel(name string) string {
	rel, err := filepath.Rel(l.folder.Name(), name)
	if err != nil {
		return name // absolute: not in the folder
	}
	return rel
}

func (l *localFiles) stat(name string) (fs.FileInfo, error) {
	if name == l.document {
		return os.Stat(name)
	}
	rel := l.rel(name)
	if !filepath.IsLocal(rel) {
		return nil, errors.New("it is outside the folder of the document")
	}
	info, err := l.folder.Stat(rel)
	if err != nil {
		err = errors.New(strings.TrimPrefix(err.Error(), "statat "+rel+": "))
	}
	return info, err
}

// settled is the age from which the time of a change identifies it: the system's clock is coarse,
// so a change right after another may get the same time.
const settled = time.Second

// stamp identifies the content of a file without reading it; "" if that is not possible.
func (l *localFiles) stamp(name string) string {
	info, err := l.stat(name)
	if err != nil {
		return ""
	}
	stamp, changed := trust.Stamp(info)
	if stamp == "" || time.Since(changed) < settled {
		return ""
	}
	return fmt.Sprint(stamp, " ", info.Size(), info.ModTime().UnixNano())
}

// limited reads at most limits.document bytes.
func (o *Options) limited(r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, o.Limits.Document+1))
	if err == nil && int64(len(data)) > o.Limits.Document {
		err = fmt.Errorf("it is larger than %d bytes (limits.document)", o.Limits.Document)
	}
	return data, err
}

// part is a file of a document at an address.
type part struct {
	data []byte
	fact fileFact
	same bool // unchanged, so data is nil
}

// part gets another file of a document, which must be on the same host.
func (s *Source) part(ctx context.Context, c *client, address string) (*part, error) {
	own, err := url.Parse(c.api.Spec)
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(address)
	if err != nil || webaddr.Origin(u) != webaddr.Origin(own) || u.User != nil {
		return nil, errors.New("it is on a host other than that of the document")
	}
	return s.download(ctx, c, address, fileFact{})
}

// download gets a file of the document, unless it is unchanged.
func (s *Source) download(ctx context.Context, c *client, address string, was fileFact) (*part, error) {
	header := http.Header{}
	if was.ETag != "" {
		header.Set("If-None-Match", was.ETag)
	}
	if was.Modified != "" {
		header.Set("If-Modified-Since", was.Modified)
	}
	resp, err := c.getDocument(ctx, address, header)
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
		head, _ := io.ReadAll(io.LimitReader(resp.Body, 300)) // as much as can be read
		return nil, fmt.Errorf("getting the document: %s: %s", resp.Status, text.Valid(string(head)))
	}
	data, err := s.opts.limited(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("getting the document: %w", err)
	}
	data = c.hideIn(data) // a document may repeat the credentials of its request, and it is stored
	p := &part{
		data: data,
		fact: fileFact{Name: address, Sum: sumOf(data), ETag: c.hide(resp.Header.Get("ETag")),
			Modified: c.hide(resp.Header.Get("Last-Modified"))},
	}
	p.same = was.Sum == p.fact.Sum
	return p, nil
}

func sumOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// document returns the document that the known operations come from; nil if none are known.
func (k *Known) document() *spec.Document {
	if k.Operations == nil {
		return nil
	}
	operations, err := spec.Decode(k.Operations)
	if err != nil || len(operations) == 0 {
		return nil // a damaged record is replaced
	}
	return &spec.Document{Server: k.Facts.Server, Operations: operations}
}

// remember stores the operations of a document.
func (s *Source) remember(ctx context.Context, doc *spec.Document, files []fileFact) {
	s.mu.Lock()
	s.files = files
	s.mu.Unlock()
	encoded, err := spec.Encode(doc)
	if err != nil {
		return
	}
	s.opts.Memory.Save(ctx, Known{Operations: encoded, Facts: Facts{doc.Server, files}})
}
