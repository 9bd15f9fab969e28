// Package imports reads MCP servers in the files of other programs as layers of settings. An
// Importer knows the programs and the formats of their files. Package settings decides whether a
// file applies and whether a project's file is trusted.
package imports

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/settings/document"
	"github.com/toolreg/toolreg/internal/text"
	"github.com/toolreg/toolreg/internal/trust"
)

// maxImport limits the size of another program's file: some keep their history
// in it.
const maxImport = 16 << 20

// Importer finds the MCP servers that other programs are configured with.
type Importer interface {
	// Programs returns the names that the setting imports accepts.
	Programs() []string
	// Program describes one of them; the zero value for an unknown name.
	Program(name string) Program
	// Files returns the files of one program in order of precedence, whether or not
	// they exist.
	Files(program, root string, environ []string) []File
}

// File is a file in which another program keeps MCP servers.
type File struct {
	Path    string // absolute
	Project bool   // part of the project: it applies once the project is trusted
	// Read returns the servers in the bytes of the file, in file order.
	Read func(docs *document.Foreign, path string, data []byte) ([]Server, []document.Problem)
	// With are other files that turn off servers of this one, or some of their tools, and Switch
	// applies an existing one. They are read even if the project is not trusted, because they can
	// only remove. Switch may be nil.
	With   []string
	Switch func(servers []Server, with *document.Document)
}

// Open reads the file; the Path of the result is empty if it does not exist.
func (f *File) Open() (trust.File, *document.Problem) {
	limit := int64(maxImport)
	if f.Project {
		limit = document.MaxFile
	}
	file, err := trust.ReadOwned(f.Path, limit)
	if err == nil || isMissing(err) {
		return file, nil
	}
	p := document.Unreadable(f.Path, err)
	if errors.Is(err, trust.ErrTooLarge) {
		p.Message = fmt.Sprintf("is larger than %d MiB", limit>>20)
	}
	return trust.File{}, &p
}

func isMissing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// servers returns the servers in the bytes of the file.
func (f *File) servers(docs *document.Foreign, data []byte) ([]Server, []document.Problem) {
	servers, problems := f.Read(docs, f.Path, data)
	if f.Switch == nil || len(servers) == 0 {
		return servers, problems
	}
	for _, path := range f.With {
		file, err := trust.ReadOwned(path, maxImport)
		if isMissing(err) || err == nil && len(bytes.TrimSpace(file.Data)) == 0 {
			continue
		}
		var doc *document.Document
		if err == nil {
			doc, _ = docs.Parse(path, file.Data)
		}
		if doc != nil {
			f.Switch(servers, doc)
			continue
		}
		for i := range servers {
			servers[i].Problem = cmp.Or(servers[i].Problem, "it may be switched off in "+path+", which cannot be read")
		}
	}
	return servers, problems
}

// Server is a server of another program.
type Server struct {
	Name    string
	JSON    json.RawMessage // an entry of mcpServers
	Pos     jsonx.Pos
	Problem string // why it is not imported; "" if it is
	// Enabled is set if the entry only turns a server in another file of the program on or off.
	// JSON is then nil.
	Enabled *bool
}

// Program describes another program whose MCP servers can be imported.
type Program struct {
	Name  string // in the setting imports
	Title string // as the program calls itself
	// Format is the name of the only format in which it declares tools; "" if it uses models of
	// several providers.
	Format string
	// Prefix precedes the names of a server's tools when the program shows them to its model;
	// {server} stands for the server's name. It is "" if the program shows the server's own names,
	// or its rule is unknown.
	Prefix string
}

// ToolPrefix returns what precedes the names of a server's tools for the model; "" if nothing does.
// p may be nil.
func (p *Program) ToolPrefix(server string) string {
	if p == nil {
		return ""
	}
	return strings.Replace(p.Prefix, "{server}", text.Plain(server, "_-"), 1)
}
