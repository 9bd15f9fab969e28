// Package bundle reads MCP bundles (MCPB, manifest 0.1 to 0.4): zip files with a server and a
// manifest that says how to run it. Bundles are not trusted: size, number, kind and names of their
// files are checked before anything is written, and the manifest is converted to a
// [serverjson.Way], whose texts are literal.
package bundle

import (
	"archive/zip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/serverjson"
	"github.com/toolreg/toolreg/internal/text"
	"github.com/toolreg/toolreg/internal/webaddr"
)

// Limits on a bundle.
const (
	maxPacked   = 256 << 20 // bytes of the file
	maxUnpacked = 1 << 30   // bytes of all files in it
	maxFiles    = 100_000
	maxManifest = 1 << 20 // bytes
)

const manifestName = "manifest.json"

// Bundle is an open bundle. The caller must close it.
type Bundle struct {
	Manifest *Manifest
	SHA256   string // hex
	file     *os.File
	zip      *zip.Reader
}

// Open opens and checks a bundle. sum is the SHA-256 that it must have; "" accepts any. Errors
// about its content are those of [serverjson.Refuse].
func Open(name, sum string) (*Bundle, error) {
	info, err := os.Stat(name)
	if err == nil && !info.Mode().IsRegular() { // opening a pipe would wait
		return nil, refuse("it is not a regular file")
	}
	if err != nil {
		return nil, err
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	b := &Bundle{file: f}
	if err := b.readArchive(sum); err != nil {
		_ = f.Close() // it was only read
		return nil, err
	}
	return b, nil
}

// Close closes the file.
func (b *Bundle) Close() error { return b.file.Close() }

func (b *Bundle) readArchive(sum string) error {
	info, err := b.file.Stat()
	switch {
	case err != nil:
		return err
	case info.Size() > maxPacked:
		return refuse("it exceeds %d bytes", maxPacked)
	}
	hash := sha256.New()
	if _, err := io.Copy(hash, io.LimitReader(b.file, maxPacked)); err != nil {
		return err
	}
	b.SHA256 = hex.EncodeToString(hash.Sum(nil))
	if sum != "" && !strings.EqualFold(sum, b.SHA256) {
		return refuse("its SHA-256 is %s instead of %s", b.SHA256, sum)
	}
	if b.zip, err = zip.NewReader(b.file, info.Size()); err != nil {
		return refuse("it is not a zip file: %v", err)
	}
	if err := checkFiles(b.zip.File); err != nil {
		return err
	}
	f, err := b.zip.Open(manifestName)
	if err != nil {
		return refuse("it has no %s", manifestName)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxManifest+1))
	if err != nil || len(data) > maxManifest {
		return refuse("its %s cannot be read", manifestName)
	}
	b.Manifest, err = parseManifest(data)
	return err
}

func refuse(format string, args ...any) error {
	return serverjson.Refuse("", "the bundle is refused: "+format, args...)
}

// checkFiles checks the declared names, kinds and sizes of a bundle's files.
func checkFiles(files []*zip.File) error {
	if len(files) > maxFiles {
		return refuse("it has more than %d files", maxFiles)
	}
	var size uint64
	seen := map[string]bool{} // names in lower case: whether they are files
	for _, f := range files {
		name := strings.TrimSuffix(f.Name, "/")
		isFolder := name != f.Name
		quoted := text.Quote(f.Name)
		mode := f.Mode()
		switch {
		case name == "" || len(name) > 1000 || !filepath.IsLocal(filepath.FromSlash(name)) ||
			path.Clean(name) != name || strings.ContainsAny(name, "\\:\x00"):
			return refuse("%s is a path that leads out of it or has special characters", quoted)
		case isFolder && !mode.IsDir(), !isFolder && !mode.IsRegular():
			return refuse("%s is neither a regular file nor a folder", quoted)
		case f.Flags&1 != 0:
			return refuse("%s is encrypted", quoted)
		case f.Method != zip.Store && f.Method != zip.Deflate:
			return refuse("%s is compressed in an unknown way", quoted)
		}
		lower := strings.ToLower(name)
		if _, again := seen[lower]; again && !isFolder {
			return refuse("%s occurs twice", quoted)
		}
		seen[lower] = seen[lower] || !isFolder
		if size += f.UncompressedSize64; f.UncompressedSize64 > maxUnpacked || size > maxUnpacked {
			return refuse("it has more than %d bytes when it is unpacked", maxUnpacked)
		}
	}
	for name := range seen {
		for parent := path.Dir(name); parent != "."; parent = path.Dir(parent) {
			if seen[parent] {
				return refuse("%s is both a file and a folder", text.Quote(parent))
			}
		}
	}
	return nil
}

// Unpack unpacks the bundle to a subfolder of folder that is named after its SHA-256, unless that
// exists, and returns its path. It unpacks either everything or nothing.
func (b *Bundle) Unpack(folder string) (dir string, err error) {
	dir = filepath.Join(folder, b.SHA256)
	if _, err := os.Lstat(filepath.Join(dir, manifestName)); err == nil {
		return dir, nil
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", err
	}
	temp, err := os.MkdirTemp(folder, ".unpacking-")
	if err != nil {
		return "", err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(temp))
		}
	}()
	root, err := os.OpenRoot(temp)
	if err != nil {
		return "", err
	}
	left := int64(maxUnpacked)
	for _, f := range b.zip.File {
		if err = b.unpackFile(root, f, &left); err != nil {
			return "", errors.Join(err, root.Close())
		}
	}
	if err = root.Close(); err != nil {
		return "", err
	}
	if err = os.Rename(temp, dir); err != nil {
		if _, there := os.Lstat(filepath.Join(dir, manifestName)); there == nil { // another run has already unpacked it
			return dir, os.RemoveAll(temp)
		}
	}
	return dir, err
}

// unpackFile writes one file. left is how many bytes may still be written, regardless of the sizes
// declared in the zip file.
func (b *Bundle) unpackFile(root *os.Root, f *zip.File, left *int64) error {
	name := filepath.FromSlash(strings.TrimSuffix(f.Name, "/"))
	if strings.HasSuffix(f.Name, "/") {
		return root.MkdirAll(name, 0o755)
	}
	if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	mode := fs.FileMode(0o644)
	if f.Mode()&0o111 != 0 || b.Manifest.Server.Type == "binary" && path.Clean(b.Manifest.Server.EntryPoint) == f.Name {
		mode = 0o755
	}
	in, err := f.Open()
	if err != nil {
		return refuse("%s cannot be unpacked: %v", text.Quote(f.Name), err)
	}
	defer in.Close()
	out, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	n, err := io.Copy(out, io.LimitReader(in, *left+1))
	*left -= n
	closeErr := out.Close()
	switch {
	case *left < 0:
		return refuse("it has more than %d bytes when it is unpacked", maxUnpacked)
	case err != nil:
		return refuse("%s cannot be unpacked: %v", text.Quote(f.Name), err)
	}
	return errors.Join(closeErr, root.Chtimes(name, time.Time{}, f.Modified))
}

// Manifest is what a bundle says about itself.
type Manifest struct {
	Name        string `json:"name"`
	DisplayName string `json:"display_name"`
	Version     string `json:"version"`
	Description string `json:"description"`
	Author      struct {
		Name string `json:"name"`
	} `json:"author"`
	Repository struct {
		URL string `json:"url"`
	} `json:"repository"`
	Server struct {
		Type       string  `json:"type"` // node, python, binary, uv
		EntryPoint string  `json:"entry_point"`
		Config     *config `json:"mcp_config"`
	} `json:"server"`
	Compatibility struct {
		Platforms []string `json:"platforms"`
	} `json:"compatibility"`
	UserConfig json.RawMessage `json:"user_config"` // an object of [setting] in its order
}

// config says how to run the server.
type config struct {
	Command   string             `json:"command"`
	Args      []string           `json:"args"`
	Env       map[string]string  `json:"env"`
	Overrides map[string]*config `json:"platform_overrides"`
}

// setting is a value that the person supplies.
type setting struct {
	Type        string          `json:"type"` // string, number, boolean, directory, file
	Title       string          `json:"title"`
	Description string          `json:"description"`
	Required    bool            `json:"required"`
	Default     json.RawMessage `json:"default"`
	Multiple    bool            `json:"multiple"`
	Sensitive   bool            `json:"sensitive"`
	Min         *float64        `json:"min"`
	Max         *float64        `json:"max"`
}

func parseManifest(data []byte) (*Manifest, error) {
	m := &Manifest{}
	data = text.WithoutMark(data)
	if err := jsonx.Check(data, jsonx.Options{Strict: true}); err != nil {
		return nil, refuse("its %s is not valid: %v", manifestName, err)
	}
	if err := jsonx.Unmarshal(data, m); err != nil {
		return nil, refuse("its %s is not valid: %v", manifestName, err)
	}
	switch {
	case m.Name == "" || m.Version == "":
		return nil, refuse("its %s has no name or no version", manifestName)
	case len(m.Compatibility.Platforms) > 0 && !slices.Contains(m.Compatibility.Platforms, platform()):
		return nil, refuse("it runs on %s, not on %s",
			text.Escape(strings.Join(m.Compatibility.Platforms, ", ")), platform())
	}
	return m, nil
}

func platform() string {
	if runtime.GOOS == "windows" {
		return "win32"
	}
	return runtime.GOOS
}

// ReadManifest reads the manifest of an unpacked bundle.
func ReadManifest(dir string) (*Manifest, error) {
	data, err := os.ReadFile(filepath.Join(dir, manifestName))
	if err != nil {
		return nil, err
	}
	return parseManifest(data)
}

const (
	maxRedirects = 5
	fetchTimeout = 10 * time.Minute
)

// Fetch downloads a bundle to a file. It connects only to public addresses and to the hosts in
// allow. If the bundle must have a certain SHA-256, which [Open] checks, redirects may lead to
// another host, as those of releases do; otherwise they may not. Errors match
// [registry.ErrSourceFailed].
func Fetch(ctx context.Context, address, agent string, allow []string, pinned bool, to *os.File) error {
	ctx, cancel := context.WithTimeoutCause(ctx, fetchTimeout, fmt.Errorf("it takes longer than %s", fetchTimeout))
	defer cancel()
	err := fetch(ctx, address, agent, allow, pinned, to)
	if err == nil {
		return nil
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	err = webaddr.Explained(err)
	return &registry.Failure{Text: fmt.Sprintf("fetching %s: %v", text.Escape(address), err),
		Kind: registry.ErrSourceFailed, Cause: err}
}

func fetch(ctx context.Context, address, agent string, allow []string, pinned bool, to *os.File) error {
	if err := webaddr.Check(address); err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return err
	}
	req.Header.Set("User-Agent", agent)
	transport := webaddr.NewTransport(256 << 10)
	transport.DisableCompression = true
	(&webaddr.Dialer{Allow: allow}).Through(transport, func(u *url.URL) (*url.URL, error) {
		return http.ProxyFromEnvironment(&http.Request{URL: u})
	})
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, CheckRedirect: func(next *http.Request, via []*http.Request) error {
		switch {
		case len(via) > maxRedirects:
			return fmt.Errorf("more than %d redirects", maxRedirects)
		case !pinned && webaddr.Origin(next.URL) != webaddr.Origin(via[0].URL):
			return fmt.Errorf("it redirects to another host, %s", text.Escape(next.URL.Host))
		}
		return webaddr.Check(next.URL.String())
	}}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return webaddr.StatusError(resp.StatusCode)
	}
	n, err := io.Copy(to, io.LimitReader(resp.Body, maxPacked+1))
	if err == nil && n > maxPacked {
		err = fmt.Errorf("it exceeds %d bytes", maxPacked)
	}
	return err
}
