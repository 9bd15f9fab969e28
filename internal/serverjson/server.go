// Package serverjson reads server.json, the description of an MCP server that its publisher
// gives to registries (schema 2025-12-11 and earlier ones), and translates it to a command line or an address
// with the values that a person gives.
//
// The description is hostile: it is checked before anything of it is used, and its texts
// become literal text in the settings. Only a person's values can be references. Package
// mcpregistry gets descriptions; package bundle makes one of a bundle's manifest.
package serverjson

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/lazy"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
)

// Server is a description of a server.
type Server struct {
	Name        string      `json:"name"` // namespace/name
	Title       string      `json:"title"`
	Description string      `json:"description"`
	Version     string      `json:"version"`
	WebsiteURL  string      `json:"websiteUrl"`
	Repository  Repository  `json:"repository"`
	Packages    []Package   `json:"packages"`
	Remotes     []Transport `json:"remotes"`
}

// Repository is where the source of a server is.
type Repository struct {
	URL       string `json:"url"`
	Subfolder string `json:"subfolder"`
}

// Package is a package of a package registry, or a bundle.
type Package struct {
	Type             string     `json:"registryType"`
	BaseURL          string     `json:"registryBaseUrl"`
	Identifier       string     `json:"identifier"`
	Version          string     `json:"version"`
	SHA256           string     `json:"fileSha256"`
	RuntimeHint      string     `json:"runtimeHint"`
	Transport        Transport  `json:"transport"`
	RuntimeArguments []Argument `json:"runtimeArguments"`
	PackageArguments []Argument `json:"packageArguments"`
	Variables        []KeyValue `json:"environmentVariables"`

	// Command is the program of a bundle that has been read; "" means it has to be read first.
	Command string `json:"-"`
	// Folder is where the bundle is unpacked.
	Folder string `json:"-"`
}

// Transport is how a server is reached.
type Transport struct {
	Type      string           `json:"type"` // stdio, streamable-http, sse
	URL       string           `json:"url"`
	Headers   []KeyValue       `json:"headers"`
	Variables map[string]Value `json:"variables"` // of the URL
}

// Value is a value, or the description of one that the person gives.
type Value struct {
	Description string           `json:"description"`
	Required    bool             `json:"isRequired"`
	Format      string           `json:"format"` // string, number, boolean, filepath
	Value       string           `json:"value"`  // fixed; {name} stands for one of Variables
	Secret      bool             `json:"isSecret"`
	Default     string           `json:"default"`
	Placeholder string           `json:"placeholder"`
	Choices     []string         `json:"choices"`
	Variables   map[string]Value `json:"variables"`

	// Only bundles have these.
	Min, Max *float64 `json:"-"`
	Defaults []string `json:"-"` // the default of a value that can be repeated
	Repeated bool     `json:"-"`
}

// KeyValue is an environment variable or a header.
type KeyValue struct {
	Name string `json:"name"`
	Value
}

// Argument is an argument of a command line.
type Argument struct {
	Type       string `json:"type"` // positional, named
	Name       string `json:"name"` // of a named one, with its dashes
	ValueHint  string `json:"valueHint"`
	IsRepeated bool   `json:"isRepeated"`
	Value
}

// Limits on a description.
const (
	maxName    = 200
	maxVersion = 255
	maxWays    = 50
	maxValues  = 200 // arguments, variables and headers of one way
)

var validName = lazy.NewRegexp(`^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$`)

// CheckName rejects what is not the name of a server in a registry. Names consist of ASCII,
// so that no name looks like another.
func CheckName(name string) error {
	if len(name) > maxName || !validName.Get().MatchString(name) {
		return fmt.Errorf("%s is not the name of a server in a registry, such as io.github.owner/server",
			text.Quote(text.Clip(name, 100)))
	}
	return nil
}

// Parse reads a description and checks its size, name and version. [Way.Plan] checks how it runs
// the server.
func Parse(data []byte) (*Server, error) {
	root, err := jsonx.Parse(text.WithoutMark(data), jsonx.Options{Strict: true})
	if err != nil {
		return nil, err
	}
	if inner := root.Get("server"); inner.Is(jsonx.Object) && root.Get("name") == nil {
		root = inner // an answer of a registry
	}
	modernize(root)
	s := &Server{}
	if err := jsonx.Unmarshal(root.JSON(), s); err != nil {
		return nil, err
	}
	if err := CheckName(s.Name); err != nil {
		return nil, err
	}
	if s.Version == "" || len(s.Version) > maxVersion || !isPlain(s.Version) {
		return nil, errors.New("its version is missing or cannot be used")
	}
	if len(s.Packages)+len(s.Remotes) > maxWays {
		return nil, fmt.Errorf("it has more than %d packages and remotes", maxWays)
	}
	return s, nil
}

// isPlain reports whether a text is printable ASCII without white space.
func isPlain(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r >= 0x7f })
}

// Short returns the part of the name behind the slash.
func (s *Server) Short() string { return s.Name[strings.IndexByte(s.Name, '/')+1:] }

// Namespace returns the part of the name that belongs to the publisher; "" for a bundle that
// is not in a registry.
func (s *Server) Namespace() string {
	return strings.TrimSuffix(s.Name[:len(s.Name)-len(s.Short())], "/")
}

// Remote is the runtime of a server that is reached at an address; other runtimes are the
// types of packages.
const Remote = "remote"

// Bundle is the runtime of a bundle.
const Bundle = "mcpb"

// Runtimes lists the runtimes that can be used, in the order in which they are offered.
func Runtimes() []string { return []string{"npm", "pypi", "oci", "nuget", Bundle, Remote} }

// Way is one way to run a server: a package or an address.
type Way struct {
	Runtime string
	Package *Package   // nil for a remote
	Remote  *Transport // nil for a package
}

// Ways returns the ways to run a server, in the order of the description, but addresses of the older transport
// last. Those with another runtime than [Runtimes] are included.
func (s *Server) Ways() []Way {
	var out []Way
	for i := range s.Packages {
		out = append(out, Way{Runtime: s.Packages[i].Type, Package: &s.Packages[i]})
	}
	for _, older := range []bool{false, true} {
		for i := range s.Remotes {
			if (s.Remotes[i].Type == "sse") == older {
				out = append(out, Way{Runtime: Remote, Remote: &s.Remotes[i]})
			}
		}
	}
	return out
}

// Origin describes what runs: the package, or the address.
func (w Way) Origin() string {
	switch {
	case w.Remote != nil:
		return w.Remote.URL
	case w.Package.Version == "" || w.Runtime == "oci" || w.Runtime == Bundle:
		return w.Package.Identifier
	}
	return w.Package.Identifier + "@" + w.Package.Version
}

// Refuse returns the error about a part of a description that must not be used or cannot be run,
// with advice, which may be empty. It matches [registry.ErrDenied].
func Refuse(advice, format string, args ...any) error {
	return &registry.Failure{Text: fmt.Sprintf(format, args...), Help: advice, Kind: registry.ErrDenied}
}

// Input is a value that the person gives.
type Input struct {
	Name     string // by which --set names it
	Argument bool   // it is on the command line or in the address, which other programs can see
	Value
}

// piece is one value of a command line, of the environment or of a request.
type piece struct {
	name  string // of the input that is the value
	label string // what messages call it
	value Value
	arg   *Argument // nil for a variable or a header

	isOption bool // of docker or podman
}

func (w Way) pieces() []piece {
	if w.Remote != nil {
		return w.Remote.headers()
	}
	return slices.Concat(w.Package.options(),
		argumentPieces(w.Package.PackageArguments, "argument"), w.Package.variables())
}

func (t *Transport) headers() []piece { return pairPieces(t.Headers, "header") }

// variables returns the variables of the environment.
func (p *Package) variables() []piece { return pairPieces(p.Variables, "variable") }

func pairPieces(list []KeyValue, label string) []piece {
	out := make([]piece, len(list))
	for i, v := range list {
		out[i] = piece{name: v.Name, label: label + " " + v.Name, value: v.Value}
	}
	return out
}

// options returns the arguments of the program that runs the package.
func (p *Package) options() []piece {
	out := argumentPieces(p.RuntimeArguments, "runtime argument")
	for i := range out {
		out[i].isOption = p.Type == "oci"
	}
	return out
}

func argumentPieces(list []Argument, label string) []piece {
	out := make([]piece, len(list))
	for i := range list {
		a := &list[i]
		p := piece{name: a.Name, value: a.Value, arg: a}
		if a.Type != "named" {
			p.name = cmp.Or(a.ValueHint, fmt.Sprintf("argument%d", i+1))
		}
		p.label = label + " " + p.name
		out[i] = p
	}
	return out
}

// Inputs returns the values that the person gives or may change, in the order of the
// description.
func (w Way) Inputs() []Input {
	var out []Input
	add := func(in Input) {
		i := slices.IndexFunc(out, func(have Input) bool { return have.Name == in.Name })
		if i < 0 {
			out = append(out, in)
			return
		}
		have := &out[i]
		have.Required, have.Secret = have.Required || in.Required, have.Secret || in.Secret
		have.Argument, have.Repeated = have.Argument || in.Argument, have.Repeated || in.Repeated
	}
	if w.Remote != nil {
		for _, name := range placeholders(w.Remote.URL) {
			v := w.Remote.Variables[name]
			if v.Value == "" {
				v.Required = true
				add(Input{name, true, v})
			}
		}
	}
	for _, p := range w.pieces() {
		repeated := p.arg != nil && p.arg.IsRepeated
		if p.value.Value == "" {
			if p.isSwitch() {
				continue
			}
			v := p.value
			v.Repeated = repeated
			add(Input{p.name, p.isOnLine(), v})
			continue
		}
		for _, name := range placeholders(p.value.Value) {
			v, ok := p.value.Variables[name]
			if !ok || v.Value != "" {
				continue
			}
			v.Required = v.Required || p.value.Required && v.Default == ""
			v.Secret, v.Repeated = v.Secret || p.value.Secret, repeated || v.Repeated
			add(Input{name, p.isOnLine(), v})
		}
	}
	return out
}

// isOnLine reports whether a value is on the command line. The value of a container's variable is
// passed in the environment, although the publisher writes it as an option.
func (p piece) isOnLine() bool { return p.arg != nil && !p.isVariable() }

// isVariable reports whether an argument is a variable of a container, -e NAME=VALUE.
func (p piece) isVariable() bool {
	return p.arg != nil && (p.arg.Name == "-e" || p.arg.Name == "--env") &&
		strings.Contains(p.value.Value, "=") && p.isOption
}

// isSwitch reports whether an argument is a flag that is always given and has no value, because the
// description says nothing about one.
func (p piece) isSwitch() bool {
	v := p.value
	return p.arg != nil && p.arg.Type == "named" && v.Value == "" && !v.Secret && v.Description == "" &&
		v.Default == "" && v.Placeholder == "" && v.Format == "" && len(v.Choices) == 0 && p.arg.ValueHint == ""
}

// placeholders returns the names in braces in a template.
func placeholders(template string) []string {
	var out []string
	for _, p := range splitTemplate(template) {
		if p.isName && !slices.Contains(out, p.text) {
			out = append(out, p.text)
		}
	}
	return out
}

// span is a part of a template: text, or the name of a variable.
type span struct {
	text   string
	isName bool
}

// splitTemplate divides a template into text and names. Braces around what cannot be a name are
// text.
func splitTemplate(template string) []span {
	var out []span
	for template != "" {
		open := strings.IndexByte(template, '{')
		end := -1
		if open >= 0 {
			end = strings.IndexAny(template[open+1:], "{}\" :,")
		}
		if open < 0 {
			return append(out, span{text: template})
		}
		if end <= 0 || template[open+1+end] != '}' {
			out = append(out, span{text: template[:open+1]})
			template = template[open+1:]
			continue
		}
		if open > 0 {
			out = append(out, span{text: template[:open]})
		}
		out = append(out, span{text: template[open+1 : open+1+end], isName: true})
		template = template[open+1+end+1:]
	}
	return out
}
