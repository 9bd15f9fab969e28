package serverscmd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/toolreg/toolreg/internal/bundle"
	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/expand"
	"github.com/toolreg/toolreg/internal/mcpregistry"
	"github.com/toolreg/toolreg/internal/serverjson"
	"github.com/toolreg/toolreg/internal/settings"
)

// isBundle reports whether an argument of add names a bundle: a file or an address.
func isBundle(arg string) bool {
	path, _, _ := strings.Cut(arg, "?")
	return strings.HasSuffix(path, ".mcpb")
}

// openBundle is an open bundle and the folder to which it is unpacked.
type openBundle struct {
	*bundle.Bundle
	temp   string // the downloaded file; "" = a file of the person
	folder string // of all bundles
}

// close closes the bundle and removes what was downloaded.
func (b *openBundle) close() {
	if b == nil {
		return
	}
	_ = b.Close() // it was only read
	if b.temp != "" {
		_ = os.Remove(b.temp) // it is in the folder for temporary files
	}
}

// getBundle opens a bundle. address is a file or an address; a registry gives the SHA-256 of
// its bundles.
func getBundle(ctx context.Context, e *cli.Env, s *settings.Settings, address, sum string) (b *openBundle, err error) {
	folder, err := e.Config.Folders.Bundles()
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
		err = bundle.Fetch(ctx, address, "toolreg/"+e.Version, s.FetchAllow.Values(), sum != "", to)
		if err = errors.Join(err, to.Close()); err != nil {
			return nil, errors.Join(err, os.Remove(b.temp))
		}
	}
	if b.Bundle, err = bundle.Open(name, sum); err != nil {
		if b.temp != "" {
			err = errors.Join(err, os.Remove(b.temp))
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil, &cli.UsageError{Err: fmt.Errorf("there is no file %s", address)}
		}
		return nil, fmt.Errorf("%s: %w", address, err)
	}
	return b, nil
}

// dir returns the folder to which the bundle is unpacked.
func (b *openBundle) dir() string { return filepath.Join(b.folder, b.SHA256) }

// describe returns the server that the manifest describes.
func (b *openBundle) describe(e *cli.Env) (*serverjson.Server, error) {
	return b.Manifest.Describe(b.dir(), expand.NewEnviron(e.Config.Environ).Home())
}

// describedByBundle describes a server by its bundle.
func describedByBundle(ctx context.Context, e *cli.Env, s *settings.Settings, arg string) (*described, error) {
	if !strings.Contains(arg, "://") {
		arg = e.Config.Absolute(arg)
	}
	b, err := getBundle(ctx, e, s, arg, "")
	if err != nil {
		return nil, err
	}
	server, err := b.describe(e)
	if err != nil {
		b.close()
		return nil, fmt.Errorf("%s: %w", arg, err)
	}
	d := &described{Entry: &mcpregistry.Entry{Server: server, Status: mcpregistry.Active}, source: arg, from: settings.From{Name: server.Name, Bundle: b.SHA256}, bundle: b}
	if b.Manifest.Author.Name != "" {
		d.source = b.Manifest.Author.Name + ", as the bundle says, " + arg
	}
	return d, nil
}

// openWay gets the bundle of the chosen way, if it is one that has not been read.
func (in *installation) openWay(ctx context.Context, e *cli.Env) error {
	if in.way.Runtime != serverjson.Bundle || in.way.Package.Command != "" {
		return nil
	}
	b, err := getBundle(ctx, e, in.settings, in.way.Package.Identifier, in.way.Package.SHA256)
	if err != nil {
		return err
	}
	in.bundle, in.from.Bundle = b, b.SHA256
	server, err := b.describe(e)
	if err != nil {
		return fmt.Errorf("%s: %w", in.way.Package.Identifier, err)
	}
	in.way = &server.Ways()[0]
	return nil
}

// unpack unpacks the bundle, if it is one, and returns a function that removes it again
// unless it was there before.
func (in *installation) unpack() (undo func() error, err error) {
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

// noteBundle says where the bundle is that a server had. It stays, because a server of
// another project may be the same.
func noteBundle(e *cli.Env, s *settings.Settings, name string) {
	for _, server := range s.Servers {
		if server.Name != name || server.From == nil || server.From.Bundle == "" {
			continue
		}
		if folder, err := e.Config.Folders.Bundles(); err == nil {
			e.IO.Notef("its bundle stays in %s; delete it if no other project uses it", filepath.Join(folder.Path, filepath.Base(server.From.Bundle)))
		}
	}
}

// unpackedWay returns the way of a bundle that was unpacked before.
func unpackedWay(e *cli.Env, sum string) (*serverjson.Way, error) {
	folder, err := e.Config.Folders.Bundles()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(folder.Path, filepath.Base(sum))
	m, err := bundle.ReadManifest(dir)
	if err != nil {
		return nil, err
	}
	server, err := m.Describe(dir, expand.NewEnviron(e.Config.Environ).Home())
	if err != nil {
		return nil, err
	}
	return &server.Ways()[0], nil
}
