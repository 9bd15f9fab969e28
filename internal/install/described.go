package install

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/toolreg/toolreg/internal/bundle"
	"github.com/toolreg/toolreg/internal/expand"
	"github.com/toolreg/toolreg/internal/mcpregistry"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/serverjson"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/trust"
)

const maxDescription = 1 << 20 // the maximum size of a server.json, in bytes

// Described is a server that a registry, a file or a bundle describes. Its owner closes it.
type Described struct {
	*mcpregistry.Entry
	Source string // the registry or the file, for messages

	from       settings.From // Registry and Name are set
	bundle     *openBundle   // nil without a bundle
	deprecated string        // a warning
}

// Close removes a downloaded bundle.
func (d *Described) Close() {
	if d.bundle != nil {
		d.bundle.close()
	}
}

// IsDescribed reports whether an argument names a server of a registry, a server.json or a
// bundle, as opposed to the name of an entry.
func IsDescribed(arg string) bool {
	return isBundle(arg) || strings.HasSuffix(arg, ".json") ||
		strings.ContainsAny(arg, `/\`) && !strings.HasPrefix(arg, "{") && !strings.Contains(arg, "://")
}

// Find gets the description that an argument names: NAME or NAME@VERSION in a registry, or the
// path of a server.json or the path or address of a bundle. A version that its publisher deleted is an error
// of [serverjson.Refuse].
func (i *Installer) Find(ctx context.Context, arg string) (*Described, error) {
	switch {
	case isBundle(arg):
		return i.describedByBundle(ctx, arg)
	case strings.HasSuffix(arg, ".json"):
		return i.describedByFile(arg)
	}
	name, version, found := strings.Cut(arg, "@")
	switch {
	case !found:
		version = mcpregistry.Latest
	case version == "":
		return nil, &settings.InputError{Err: fmt.Errorf("%s: the version is missing", arg),
			Hint: "without @ it is the latest one"}
	}
	if err := serverjson.CheckName(cmp.Or(name, arg)); err != nil { // a package of npm begins with @
		return nil, &settings.InputError{Err: err, Hint: "toolreg servers find searches for names; " +
			"a package that you know is added by its command: toolreg servers add NAME -- npx -y PACKAGE"}
	}
	registries, err := i.Registries(ctx)
	if err != nil {
		return nil, err
	}
	return FindIn(ctx, registries, name, version)
}

// FindIn asks registries in order. If one fails, the search ends, because a later one may have
// another server of that name.
func FindIn(ctx context.Context, registries []*mcpregistry.Registry, name, version string) (*Described, error) {
	var missing error
	for _, r := range registries {
		entry, err := r.Get(ctx, name, version)
		if errors.Is(err, registry.ErrNotFound) {
			missing = err
			continue
		}
		if err != nil {
			return nil, err
		}
		d := &Described{Entry: entry, Source: r.URL, from: settings.From{Registry: r.URL, Name: name}}
		return d, d.checkStatus()
	}
	return nil, missing
}

func (d *Described) checkStatus() error {
	message := ""
	if d.StatusMessage != "" {
		message = ": " + d.StatusMessage
	}
	switch d.Status {
	case mcpregistry.Deleted:
		return serverjson.Refuse("", "%s %s was deleted by its publisher%s", d.Server.Name, d.Server.Version, message)
	case mcpregistry.Deprecated:
		d.deprecated = "it is deprecated" + message
	}
	return nil
}

// absolute returns a path that is relative to the working directory as an absolute one.
func (i *Installer) absolute(path string) string {
	return filepath.Clean(expand.From(i.Dir, path))
}

func (i *Installer) describedByFile(name string) (*Described, error) {
	path := i.absolute(name)
	f, err := trust.Read(path, maxDescription)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("there is no file %s", name)
		}
		return nil, &settings.InputError{Err: err}
	}
	server, err := serverjson.Parse(f.Data)
	if err != nil {
		return nil, &settings.InputError{Err: fmt.Errorf("%s is not a server.json: %w", name, err)}
	}
	entry := &mcpregistry.Entry{Server: server, Status: mcpregistry.Active}
	return &Described{Entry: entry, Source: path, from: settings.From{Name: server.Name}}, nil
}

// isBundle reports whether an argument names a bundle: a file or an address.
func isBundle(arg string) bool {
	path, _, _ := strings.Cut(arg, "?")
	return strings.HasSuffix(path, ".mcpb")
}

// openBundle is an open bundle and the folder to which it is unpacked.
type openBundle struct {
	*bundle.Bundle
	temp   string // the downloaded file; "" for a file of the person
	folder string // of all bundles
}

// close closes the bundle and removes what was downloaded.
func (b *openBundle) close() {
	_ = b.Close() // it was only read
	if b.temp != "" {
		_ = os.Remove(b.temp) // it is in the folder for temporary files
	}
}

// getBundle opens a bundle. address is a file or an address; a registry gives the SHA-256 of
// its bundles. allow are hosts that may be asked though they are not public.
func (i *Installer) getBundle(ctx context.Context, address, sum string, allow ...string) (b *openBundle, err error) {
	folder, err := i.Folders.Bundles()
	if err != nil {
		return nil, err
	}
	b = &openBundle{folder: folder.Path}
	name := address
	if strings.Contains(address, "://") {
		to, err := os.CreateTemp("", "toolreg-*.mcpb")
		if err != nil {
			return nil, err
		}
		b.temp, name = to.Name(), to.Name()
		err = bundle.Fetch(ctx, address, i.Agent, append(allow, i.Settings.FetchAllow.Values()...), sum != "", to)
		if err = errors.Join(err, to.Close()); err != nil {
			return nil, errors.Join(err, os.Remove(b.temp))
		}
	}
	if b.Bundle, err = bundle.Open(name, sum); err != nil {
		if b.temp != "" {
			err = errors.Join(err, os.Remove(b.temp))
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil, &settings.InputError{Err: fmt.Errorf("there is no file %s", address)}
		}
		return nil, fmt.Errorf("%s: %w", address, err)
	}
	return b, nil
}

func (b *openBundle) dir() string { return filepath.Join(b.folder, b.SHA256) }

func (b *openBundle) describe(environ []string) (*serverjson.Server, error) {
	return b.Manifest.Describe(b.dir(), expand.NewEnviron(environ).Home())
}

func (i *Installer) describedByBundle(ctx context.Context, arg string) (*Described, error) {
	var allow []string
	if !strings.Contains(arg, "://") {
		arg = i.absolute(arg)
	} else if u, err := url.Parse(arg); err == nil {
		allow = []string{u.Host} // the person names it; redirects stay there
	}
	b, err := i.getBundle(ctx, arg, "", allow...)
	if err != nil {
		return nil, err
	}
	server, err := b.describe(i.Environ)
	if err != nil {
		b.close()
		return nil, fmt.Errorf("%s: %w", arg, err)
	}
	entry := &mcpregistry.Entry{Server: server, Status: mcpregistry.Active}
	d := &Described{Entry: entry, Source: arg, from: settings.From{Name: server.Name, Bundle: b.SHA256}, bundle: b}
	if b.Manifest.Author.Name != "" {
		d.Source = b.Manifest.Author.Name + ", as the bundle says, " + arg
	}
	return d, nil
}

// unpackedWay returns the way of a bundle that was unpacked before.
func (i *Installer) unpackedWay(sum string) (*serverjson.Way, error) {
	folder, err := i.Folders.Bundles()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(folder.Path, filepath.Base(sum))
	m, err := bundle.ReadManifest(dir)
	if err != nil {
		return nil, err
	}
	server, err := m.Describe(dir, expand.NewEnviron(i.Environ).Home())
	if err != nil {
		return nil, err
	}
	return &server.Ways()[0], nil
}
