// Package consent describes what a project's settings would do if they applied,
// for the trust question: which programs they run, which addresses they connect
// to, what they loosen, and which variables and files they read.
//
// It examines files that are not trusted yet and may contain mistakes. Package
// settings reads the files, calls this package, and applies the settings only if
// the exact bytes of everything they can run were granted.
package consent

import (
	"slices"
	"strconv"
	"strings"

	"github.com/toolreg/toolreg/internal/expand"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/secret"
	"github.com/toolreg/toolreg/internal/settings/document"
	"github.com/toolreg/toolreg/internal/settings/layers"
	"github.com/toolreg/toolreg/internal/settings/table"
	"github.com/toolreg/toolreg/internal/trust"
)

// Program is a command that settings would run, an address that they would connect to, or
// an OpenAPI document that they would read. Its strings are not expanded.
type Program struct {
	Place    string   // file:line of the setting
	Key      string   // the setting, with dots
	Argv     []string // empty for an address
	Whole    []string // Argv if its first words are the name of one file, as in "my server"; nil if they are not
	URL      string
	API      bool     // whether the requests of an API go to URL, or without one to the servers that Document names
	Document string   // relative to the project root
	Cwd      string   // folder in which it runs, relative to the project root
	Literal  bool     // ~ at the beginning of a word of Argv, or of Cwd, is not the home folder
	Env      []string // "NAME=value" from the settings
	Shown    []string // those entries of Env to show with the program
}

// Programs lists what a file would run or connect to, in file order.
func Programs(f *File) []Program {
	var out []Program
	for _, s := range f.Settings {
		run := func(argv, env []string) {
			out = append(out, Program{Key: s.Key, Place: f.place(s.Origin.Line), Argv: argv, Env: env})
		}
		switch {
		case s.Row.Type == table.Command:
			argv, _ := table.ParseCommand(s.Value) // a command that cannot be split does not run
			run(argv, f.env())
		case s.Row.Name == "mcpServers":
			out = append(out, f.servers(s)...)
		case s.Row.Name == "openapi":
			out = append(out, f.apis(s)...)
		case s.Row.Name == "composites":
			for _, entry := range s.Value.Members {
				if file := entry.Value.Get("script").Text(); file != "" {
					run([]string{"./" + strings.TrimPrefix(file, "./")}, nil)
				}
			}
		case s.Row.Name == "env":
			all := valuesOf(s.Value) // variables such as BASH_ENV and NODE_OPTIONS name code to run
			out = append(out, Program{Key: s.Key, Place: f.place(s.Origin.Line), Env: all, Shown: all})
		case s.Row.Runs && s.Row.Type == table.Strings:
			for _, path := range s.Value.Strings() {
				run([]string{path}, nil)
			}
		case s.Row.Runs:
			for _, argv := range rawCommands(s.Value) {
				run(argv, f.env())
			}
		}
		out = append(out, f.references(s)...)
	}
	return slices.DeleteFunc(out,
		func(p Program) bool { return len(p.Argv) == 0 && p.URL == "" && p.Document == "" && len(p.Env) == 0 })
}

func (f *File) place(line int) string {
	if line == 0 {
		return f.File
	}
	return f.File + ":" + strconv.Itoa(line)
}

// env returns the file's top-level setting env as "NAME=value".
func (f *File) env() []string {
	for _, s := range f.Settings {
		if s.Row.Name == "env" {
			return valuesOf(s.Value)
		}
	}
	return nil
}

// valuesOf returns the string members of an unchecked object as "NAME=value".
func valuesOf(n *jsonx.Value) []string {
	var out []string
	for _, f := range n.Fields() {
		if f.Value.Kind == jsonx.String {
			out = append(out, f.Name+"="+f.Value.Text())
		}
	}
	return out
}

// servers lists what the entries of mcpServers run and connect to.
func (f *File) servers(s layers.Setting) []Program {
	var out []Program
	for _, entry := range s.Value.Members {
		v := entry.Value
		p := Program{Key: s.Key + "." + entry.Name, Place: f.place(int(entry.Line)), Literal: v.Get("from") != nil,
			Cwd: v.Get("cwd").Text(), Env: valuesOf(v.Get("env"))}
		p.Shown = p.Env
		if address := v.Get("httpUrl").Text() + v.Get("url").Text(); address != "" {
			out = append(out, Program{Key: p.Key, Place: p.Place, URL: address})
		}
		out = append(out, f.logins(p.Key, v.Get("oauth"))...)
		if command := v.Get("command").Text(); command != "" {
			p.Argv = append([]string{command}, v.Get("args").Strings()...)
			if words := table.CommandWords(command); words != nil {
				p.Whole, p.Argv = p.Argv, append(words, p.Argv[1:]...)
			}
			out = append(out, p)
		}
	}
	return out
}

// apis lists what the entries of openapi connect to.
func (f *File) apis(s layers.Setting) []Program {
	var out []Program
	for _, entry := range s.Value.Members {
		p := Program{Key: s.Key + "." + entry.Name, Place: f.place(int(entry.Line))}
		spec, base := entry.Value.Get("spec").Text(), entry.Value.Get("baseUrl").Text()
		if strings.Contains(spec, "://") {
			p.URL, p.API = spec, base == ""
			out = append(out, p)
		}
		if base != "" || p.URL == "" {
			p.URL, p.API, p.Document = base, true, spec
			out = append(out, p)
		}
		if auth := entry.Value.Get("auth"); auth != nil {
			for _, one := range append([]*jsonx.Value{auth}, auth.Items...) {
				out = append(out, f.logins(p.Key+".auth", one.Get("oauth"))...)
			}
		}
	}
	return out
}

// logins lists the addresses to which a login to a server sends credentials.
func (f *File) logins(key string, oauth *jsonx.Value) []Program {
	var out []Program
	for _, field := range oauth.Fields() {
		if field.Value.Kind == jsonx.String && slices.Contains([]string{"issuer",
			"authorizationUrl", "tokenUrl", "registrationUrl", "idpIssuer"}, field.Name) {
			out = append(out, Program{Key: key + ".oauth." + field.Name,
				Place: f.place(int(field.Line)), URL: field.Value.Text()})
		}
	}
	return out
}

// references lists the cmd: references in a setting.
func (f *File) references(s layers.Setting) []Program {
	var out []Program
	s.Value.Walk(s.Key, func(key string, n *jsonx.Value) {
		if kind, target := secret.Reference(n.Text()); kind == "cmd" {
			out = append(out, Program{Key: key, Place: f.place(int(n.Line)), Argv: splitOrFields(target)})
		}
	})
	return out
}

// splitOrFields splits a command like a shell, or at blanks if its quoting is
// invalid.
func splitOrFields(line string) []string {
	if argv, err := process.Split(line); err == nil {
		return argv
	}
	return strings.Fields(line)
}

// rawCommands returns the commands in a value of unknown structure.
func rawCommands(n *jsonx.Value) [][]string {
	var out [][]string
	for _, item := range n.Items {
		out = append(out, rawCommands(item)...)
	}
	for _, f := range n.Members {
		switch {
		case f.Name == "command" && f.Value.Kind == jsonx.String:
			out = append(out, append(splitOrFields(f.Value.Text()), n.Get("args").Strings()...))
		case f.Name == "command" && f.Value.Kind == jsonx.Array:
			out = append(out, f.Value.Strings())
		default:
			out = append(out, rawCommands(f.Value)...)
		}
	}
	return out
}

// Describe renders one program per line, with all arguments, the folder and the
// variables, because each can decide what runs. v expands variables as far as they are
// known.
func Describe(programs []Program, v Variables) []string {
	out := make([]string, 0, len(programs))
	for _, p := range programs {
		if len(p.Argv) == 0 && p.URL == "" && p.Document == "" && len(p.Shown) == 0 {
			continue
		}
		line := p.Place + ": " + document.Printable(p.Key) + ":"
		switch {
		case p.API && p.URL == "":
			line += " connects to the API at the servers that " + quoteWord(p.Document) + " names"
		case p.API:
			line += " connects to the API at " + quoteWord(p.URL)
		case p.URL != "":
			line += " connects to " + quoteWord(p.URL)
		}
		for _, word := range p.Argv {
			line += " " + quoteWord(word)
		}
		if p.Whole != nil {
			line += " (or " + quoteWord(p.Whole[0]) + ", if there is such a file)"
		}
		if len(p.Argv) > 0 && p.Cwd != "" {
			line += " (in " + quoteWord(p.Cwd) + ")"
		}
		switch vars := strings.Join(shownVariables(p.Shown), ", "); {
		case vars == "":
		case len(p.Argv) == 0:
			line += " sets " + vars
		default:
			line += " (sets " + vars + ")"
		}
		if p.holdsCode() {
			line += " (files that this code uses without naming them are not covered)"
		}
		if runners := trust.Runners(slices.Concat(p.Argv, p.words(v).expandAll(p.Argv))); len(runners) > 0 {
			line += " (" + strings.Join(runners, ", ") + " may run files of the project that are not covered)"
		}
		out = append(out, line)
	}
	return out
}

// shownVariables renders variables with their values, unless their names say that these are
// secret. A name that ends like ASKPASS or COMMAND says that the value is a program.
func shownVariables(env []string) []string {
	var out []string
	for _, entry := range env {
		name, value, _ := strings.Cut(entry, "=")
		runs := slices.ContainsFunc([]string{"ASKPASS", "COMMAND", "CMD", "HELPER", "PROGRAM"}, func(end string) bool {
			return strings.HasSuffix(strings.ToUpper(name), end)
		})
		switch {
		case runs:
		case secret.Named(name):
			entry = name + "=" + secret.Source(value)
		default: // what looks like a secret in the middle of a value may be code
			entry = secret.MaskKnown(entry)
		}
		out = append(out, quoteWord(entry))
	}
	return out
}

// holdsCode reports whether the command line contains code that may use files
// without naming them.
func (p Program) holdsCode() bool {
	for i, word := range p.Argv {
		if i > 0 && slices.Contains([]string{"-c", "-e", "-E", "-p",
			"-r", "--eval", "--print", "--command", "-Command"},
			p.Argv[i-1]) && strings.ContainsAny(word, "$`(*?[{~") {
			return true
		}
	}
	return false
}

// quoteWord quotes a word if it is empty or contains blanks, quotes or unprintable
// characters.
func quoteWord(word string) string {
	plain := strings.IndexFunc(word, func(r rune) bool {
		return r <= ' ' || r == '"' || r == '\'' || r == '\\' || !strconv.IsPrint(r)
	}) < 0
	if plain && word != "" {
		return word
	}
	return strconv.Quote(word)
}

// Variables is a function that expands the variables in a string. If it fails, the
// string is used unchanged.
type Variables func(string) (string, error)

func (v Variables) expand(s string) string {
	if expanded, err := v(s); err == nil {
		return expanded
	}
	return s
}

func (v Variables) expandAll(in []string) []string {
	out := make([]string, len(in))
	for i, s := range in {
		out[i] = v.expand(s)
	}
	return out
}

// words returns the function that expands the program's words.
func (p *Program) words(v Variables) Variables {
	if !p.Literal {
		return v
	}
	return func(s string) (string, error) {
		rest := strings.TrimLeft(s, "~")
		out, err := v(rest)
		return s[:len(s)-len(rest)] + out, err
	}
}

// Expand expands the words of the programs of the project at root, as far as the
// variables are known, to find the files that they name. inherited is the part of
// our environment that the programs receive.
func Expand(programs []Program, root string, v Variables, inherited []string) []trust.Program {
	out := make([]trust.Program, 0, len(programs))
	for _, p := range programs {
		if p.Document != "" {
			if file := v.expand(p.Document); !strings.Contains(file, "://") {
				out = append(out, trust.Program{Document: expand.From(root, file)})
			}
			continue
		}
		words := p.words(v)
		dir := expand.From(root, words.expand(p.Cwd))
		out = append(out, trust.Program{Argv: words.expandAll(p.Argv),
			Dir: dir, Env: v.expandAll(p.Env), Inherited: inherited})
		if p.Whole != nil {
			out = append(out, trust.Program{Argv: words.expandAll(p.Whole),
				Dir: dir, Env: v.expandAll(p.Env), Inherited: inherited})
		}
	}
	return out
}

// File is a settings file that is not trusted yet and may contain mistakes.
type File struct {
	*layers.Layer
	// Project is the root of the project, and Expand expands the variables in a text, for
	// [Loosens].
	Project string
	Expand  Variables
}
