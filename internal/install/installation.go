package install

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/args"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/serverjson"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/state"
)

// Installation is a described server with the way to run it and the values that it gets. Its
// steps are, in this order: [Installation.Ways], [Installation.Use], [Installation.MakePlan] until
// the plan lacks nothing, [Installation.Entry], [Installation.Store], and writing the entry, which
// is the caller's.
type Installation struct {
	*Described
	File  string // the settings file with the entry; absolute
	Name  string // of the entry
	Way   *serverjson.Way
	Given serverjson.Given
	Plan  *serverjson.Plan

	Notes    []string // ways that cannot be used, and why
	Warnings []string // what the person should know before the entry is written

	installer *Installer
	was       *settings.Server // the entry to upgrade; nil if the server is being added
	secrets   *state.Dir
}

// New begins the installation of a server as the entry name of a settings file.
func (i *Installer) New(d *Described, file, name string, given serverjson.Given) (*Installation, error) {
	secrets, err := i.Folders.Secrets()
	if err != nil {
		return nil, err
	}
	in := &Installation{Described: d, File: file, Name: name, Given: given, installer: i, secrets: secrets}
	if d.deprecated != "" {
		in.Warnings = append(in.Warnings, d.deprecated)
	}
	in.Warnings = append(in.Warnings, i.seenBefore(d)...)
	return in, nil
}

// options are those of the translation.
func (in *Installation) options() serverjson.Options {
	spec := process.Spec{Env: in.installer.Environ, Dir: in.installer.Dir}
	return serverjson.Options{
		Has: func(program string) bool {
			spec.Argv = []string{program}
			_, err := spec.Program()
			return err == nil
		},
		Keep: in.reference,
	}
}

func (in *Installation) reference(name string) string {
	return "file:" + serverjson.Literal(filepath.Join(in.secrets.Path, secretName(in.File, in.Name, name)))
}

// Ways returns the ways to run the server whose packages and addresses can be used, at least one,
// and notes why the others cannot. Any runtime except "" restricts them to that runtime.
func (in *Installation) Ways(runtime string) ([]serverjson.Way, error) {
	fitting := in.Server.Ways()
	if runtime != "" {
		fitting = in.waysOf(runtime)
	}
	switch {
	case len(fitting) == 0 && runtime != "":
		var known []string
		for _, way := range in.Server.Ways() {
			known = append(known, way.Runtime)
		}
		slices.Sort(known)
		return nil, &settings.InputError{
			Err:  fmt.Errorf("%s cannot be run by --runtime %s", in.Server.Name, runtime),
			Hint: "it has " + strings.Join(slices.Compact(known), ", "),
		}
	case len(fitting) == 0:
		return nil, serverjson.Refuse(in.Server.WebsiteURL, "%s names neither a package nor an address", in.Server.Name)
	}
	var usable []serverjson.Way
	refused := &registry.Failure{Kind: registry.ErrDenied}
	for _, way := range fitting {
		_, err := way.Plan(nil, in.options())
		r, ok := errors.AsType[*registry.Failure](err)
		if !ok || !errors.Is(r, registry.ErrDenied) {
			usable = append(usable, way)
			continue
		}
		in.Notes = append(in.Notes, fmt.Sprintf("%s %s is passed over: %v", way.Runtime, way.Origin(), err))
		refused.Text, refused.Help = strings.TrimPrefix(refused.Text+"; "+r.Text, "; "), r.Help
	}
	if len(usable) == 0 {
		return nil, fmt.Errorf("%s %s: %w", in.Server.Name, in.Server.Version, refused)
	}
	return usable, nil
}

func (in *Installation) waysOf(runtime string) []serverjson.Way {
	return slices.DeleteFunc(in.Server.Ways(), func(w serverjson.Way) bool { return w.Runtime != runtime })
}

// Use chooses the way to run the server and makes the first plan. A bundle is downloaded, because
// only its manifest says how it runs.
func (in *Installation) Use(ctx context.Context, way serverjson.Way) error {
	in.Way = &way
	if way.Runtime == serverjson.Bundle && way.Package.Command == "" { // it has not been read
		b, err := in.installer.getBundle(ctx, way.Package.Identifier, way.Package.SHA256)
		if err != nil {
			return err
		}
		in.bundle, in.from.Bundle = b, b.SHA256
		server, err := b.describe(in.installer.Environ)
		if err != nil {
			return fmt.Errorf("%s: %w", way.Package.Identifier, err)
		}
		in.Way = &server.Ways()[0]
	}
	if in.was != nil {
		in.dropUnknown()
	}
	return in.MakePlan()
}

// dropUnknown removes values of the earlier version that this one does not have.
func (in *Installation) dropUnknown() {
	for name := range in.was.From.Values {
		if !slices.ContainsFunc(in.Way.Inputs(), func(input serverjson.Input) bool { return input.Name == name }) {
			delete(in.Given, name)
			in.Warnings = append(in.Warnings, "this version has no value "+name)
		}
	}
}

// MakePlan makes the plan with the given values; missing values are in Plan.Missing. An invalid
// value is an [*args.Error].
func (in *Installation) MakePlan() error {
	plan, err := in.Way.Plan(in.Given, in.options())
	if wrong, ok := errors.AsType[*serverjson.ValueError](err); ok {
		return &args.Error{Arg: wrong.Name, Message: wrong.Reason}
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", in.Server.Name, in.Server.Version, err)
	}
	in.Plan = plan
	return nil
}

// Entry is an entry of mcpServers, with its members in the order in which they are written.
type Entry struct {
	Type        string          `json:"type,omitempty"`
	Command     string          `json:"command,omitempty"`
	Args        []string        `json:"args,omitempty"`
	URL         string          `json:"url,omitempty"`
	Env         json.RawMessage `json:"env,omitempty"`
	Headers     json.RawMessage `json:"headers,omitempty"`
	Cwd         string          `json:"cwd,omitempty"`
	Description string          `json:"description,omitempty"`
	Trust       bool            `json:"trust,omitempty"`
	From        json.RawMessage `json:"from,omitempty"`
}

// Entry returns the settings entry for the plan.
func (in *Installation) Entry() (json.RawMessage, error) {
	p := in.Plan
	from, err := in.fromEntry()
	if err != nil {
		return nil, err
	}
	return jsonx.Marshal(Entry{
		Type: p.Type, Command: p.Command, Args: p.Args, URL: p.URL,
		Env: pairsJSON(p.Env), Headers: pairsJSON(p.Headers), From: from,
	})
}

// fromEntry returns the member from of the entry, with the given values. Secrets are replaced by
// the references to their files.
func (in *Installation) fromEntry() (json.RawMessage, error) {
	secret := map[string]bool{}
	for _, input := range in.Way.Inputs() {
		secret[input.Name] = input.Secret
	}
	values := map[string][]string{}
	for name, list := range in.Given {
		for _, value := range list {
			notation := serverjson.Notation(value)
			if secret[name] && !serverjson.IsReference(value) && value != "" {
				in.Plan.Secrets = append(in.Plan.Secrets, serverjson.Secret{Name: name, Text: value})
				notation = in.reference(name)
			}
			values[name] = append(values[name], notation)
		}
	}
	return jsonx.Marshal(struct {
		Registry string              `json:"registry,omitempty"`
		Name     string              `json:"name"`
		Version  string              `json:"version"`
		Runtime  string              `json:"runtime"`
		Bundle   string              `json:"bundle,omitempty"`
		Values   map[string][]string `json:"values,omitempty"`
	}{in.from.Registry, in.Server.Name, in.Server.Version, in.Way.Runtime, in.from.Bundle, values})
}

// pairsJSON returns a JSON object of pairs in their order; nil without pairs.
func pairsJSON(pairs []serverjson.Pair) json.RawMessage {
	if len(pairs) == 0 {
		return nil
	}
	object := &jsonx.Value{Kind: jsonx.Object}
	for _, p := range pairs {
		object.Set(p.Name, jsonx.NewString(p.Value))
	}
	return object.JSON()
}

func secretName(file, server, name string) string {
	return secretPrefix(file, server) + strings.Map(func(r rune) rune {
		if r < 0x80 && (r == '_' || r == '-' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z') {
			return r
		}
		return '_'
	}, name)
}

// secretPrefix begins the names of all secrets of a server. Servers of different settings
// files can have the same name. The names of servers do not contain "+".
func secretPrefix(file, server string) string {
	sum := sha256.Sum256([]byte(file))
	return server + "+" + hex.EncodeToString(sum[:4]) + "+"
}

// Store unpacks the bundle and writes the secrets, and returns a function that undoes both.
func (in *Installation) Store() (undo func() error, err error) {
	undo, err = in.unpack()
	for _, s := range in.Plan.Secrets {
		if err != nil {
			break
		}
		name, before := secretName(in.File, in.Name, s.Name), undo
		was, _ := in.secrets.Read(name) // nil if there is none
		undo = func() error {
			if was != nil {
				return errors.Join(in.secrets.Put(name, was), before())
			}
			return errors.Join(os.Remove(filepath.Join(in.secrets.Path, name)), before())
		}
		if err = in.secrets.Put(name, []byte(s.Text+"\n")); err != nil {
			undo, err = before, fmt.Errorf("storing a secret: %w", err)
		}
	}
	if err != nil {
		return nil, errors.Join(err, undo())
	}
	return undo, nil
}

// unpack unpacks the bundle, if it is one, and returns a function that removes it again
// unless it was there before.
func (in *Installation) unpack() (undo func() error, err error) {
	undo = func() error { return nil }
	if in.bundle == nil {
		return undo, nil
	}
	dir := in.bundle.dir()
	if _, err := os.Lstat(dir); err != nil {
		undo = func() error { return os.RemoveAll(dir) }
	}
	_, err = in.bundle.Unpack(in.bundle.folder)
	return undo, err
}

// ForgetSecrets removes the secrets of an entry of a settings file.
func ForgetSecrets(folders *state.Folders, file, server string) error {
	dir, err := folders.Secrets()
	if err != nil {
		return nil // then none are stored
	}
	names, err := dir.Names(secretPrefix(file, server), "")
	for _, name := range names {
		err = errors.Join(err, os.Remove(filepath.Join(dir.Path, name)))
	}
	return err
}
