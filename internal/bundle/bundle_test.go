package bundle

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/serverjson"
)

const minimal = `{"name": "b", "version": "1.0.0", "server": {"type": "node", "entry_point": "i.js", "mcp_config": {"command": "node", "args": ["${__dirname}/i.js"]}}}`

// packed writes a bundle of a manifest and other files, each with its name, text and mode.
func packed(t *testing.T, manifest string, files ...*zip.FileHeader) string {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, f := range append([]*zip.FileHeader{{Name: manifestName, Comment: manifest}}, files...) {
		text := f.Comment // stands for the content
		f.Comment = ""
		out, err := w.CreateHeader(f)
		if err == nil {
			_, err = out.Write([]byte(text))
		}
		if err != nil && !strings.HasSuffix(f.Name, "/") {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return written(t, b.Bytes())
}

func written(t *testing.T, data []byte) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "b.mcpb")
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func header(name, text string, mode fs.FileMode) *zip.FileHeader {
	f := &zip.FileHeader{Name: name, Comment: text, Method: zip.Deflate}
	f.SetMode(mode)
	return f
}

// TestHostileFiles checks that nothing is unpacked of a bundle with such a file.
func TestHostileFiles(t *testing.T) {
	for name, files := range map[string][]*zip.FileHeader{
		"parent":            {header("../x", "x", 0o644)},
		"parent within":     {header("a/../../x", "x", 0o644)},
		"absolute":          {header("/tmp/x", "x", 0o644)},
		"backslash":         {header(`..\x`, "x", 0o644)},
		"drive":             {header("C:x", "x", 0o644)},
		"dot":               {header("./x", "x", 0o644)},
		"link":              {header("x", "/etc/passwd", 0o777|fs.ModeSymlink)},
		"device":            {header("x", "", 0o666|fs.ModeDevice)},
		"pipe":              {header("x", "", 0o666|fs.ModeNamedPipe)},
		"twice":             {header("x", "1", 0o644), header("X", "2", 0o644)},
		"file and folder":   {header("x", "1", 0o644), header("x/y", "2", 0o644)},
		"second manifest":   {header("manifest.json", "{}", 0o644)},
		"unknown algorithm": {{Name: "x", Method: zip.Store, Comment: "\x01unknown"}},
	} {
		t.Run(name, func(t *testing.T) {
			path := packed(t, minimal, files...)
			if name == "unknown algorithm" { // set the method in the central directory
				data, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				at := bytes.LastIndex(data, []byte("PK\x01\x02"))
				binary.LittleEndian.PutUint16(data[at+10:], 99)
				path = written(t, data)
			}
			b, err := Open(path, "")
			if err == nil {
				b.Close()
				t.Fatal("it was opened")
			}
			if !errors.Is(err, registry.ErrDenied) {
				t.Error(err)
			}
		})
	}
}

// TestBombIsMeasured checks that the size that counts is that of what is unpacked, not the
// one that the zip file claims.
func TestBombIsMeasured(t *testing.T) {
	path := packed(t, minimal, header("x", strings.Repeat("x", 1<<20), 0o644))
	b, err := Open(path, "")
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	folder := t.TempDir()
	root, err := os.OpenRoot(folder)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	left := int64(1000)
	if err := b.unpackFile(root, b.zip.File[1], &left); !errors.Is(err, registry.ErrDenied) || !strings.Contains(err.Error(), "more than") {
		t.Error(err)
	}
	big := header("y", "", 0o644)
	big.UncompressedSize64 = maxUnpacked + 1
	if err := checkFiles([]*zip.File{{FileHeader: *big}}); err == nil {
		t.Error("a claimed size beyond the limit is accepted")
	}
}

func TestUnpack(t *testing.T) {
	path := packed(t, strings.Replace(minimal, `"node", "entry`, `"binary", "entry`, 1), header("i.js", "1", 0o644), header("sub/", "", 0o755|fs.ModeDir), header("sub/tool", "2", 0o755), header("sub/data", "3", 0o666))
	if _, err := Open(path, strings.Repeat("0", 64)); err == nil || !strings.Contains(err.Error(), "its SHA-256 is") {
		t.Error(err)
	}
	b, err := Open(path, "")
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	folder := filepath.Join(t.TempDir(), "bundles")
	for range 2 { // the second time it is there
		dir, err := b.Unpack(folder)
		if err != nil || dir != filepath.Join(folder, b.SHA256) {
			t.Fatal(dir, err)
		}
		for name, mode := range map[string]fs.FileMode{"i.js": 0o755, "sub/tool": 0o755, "sub/data": 0o644, manifestName: 0o644} {
			info, err := os.Stat(filepath.Join(dir, name))
			if err != nil || info.Mode().Perm() != mode {
				t.Error(name, info, err)
			}
		}
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) != 1 {
		t.Error(left, err)
	}
}

func TestDescribe(t *testing.T) {
	plan := func(manifest string, given serverjson.Given) (*serverjson.Plan, error) {
		m, err := parseManifest([]byte(manifest))
		if err != nil {
			return nil, err
		}
		s, err := m.Describe("/b", "/home/me")
		if err != nil {
			return nil, err
		}
		return s.Ways()[0].Plan(given, serverjson.Options{Has: func(string) bool { return true }, Keep: func(name string) string { return "file:" + name }})
	}
	with := func(config, user string) string {
		return `{"name": "b", "version": "1", "server": {"type": "node", "entry_point": "i.js", "mcp_config": ` + config + `}, "user_config": ` + user + `}`
	}
	user := `{"list": {"type": "string", "title": "L", "description": "", "multiple": true, "default": ["${HOME}/a", "b"]}, "key": {"type": "string", "sensitive": true, "required": true},
		"n": {"type": "number", "min": 1, "default": 2}}`
	got, err := plan(with(`{"command": "${__dirname}${/}bin", "args": ["${user_config.list}", "-n=${user_config.n}", "$X ${UNKNOWN} {n}"], "env": {"K": "${user_config.key}", "D": "cmd:id"},
		"platform_overrides": {"`+platform()+`": {"env": {"K": "key ${user_config.key}", "D": "cmd:id"}}}}`, user), serverjson.Given{"key": {"s3cret"}})
	if err != nil {
		t.Fatal(err)
	}
	want := &serverjson.Plan{Command: "/b/bin", Args: []string{"/home/me/a", "b", "-n=2", "$$X $${UNKNOWN} {n}"},
		Env: []serverjson.Pair{{Name: "D", Value: "${}cmd:id"}, {Name: "K", Value: "file:K"}}, Secrets: []serverjson.Secret{{Name: "K", Text: "key s3cret"}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	got, err = plan(with(`{"command": "node", "args": ["${user_config.list}"]}`, user), serverjson.Given{"list": {"x", "$HOME"}})
	if err != nil || cmp.Diff([]string{"x", "$HOME"}, got.Args) != "" {
		t.Error(got, err)
	}
	got, err = plan(with(`{"command": "python", "env": {"PYTHONPATH": "${__dirname}/lib"}}`, `{}`), nil)
	if err != nil || len(got.Env) != 1 {
		t.Error("its own code:", got, err)
	}
	for name, manifest := range map[string]string{
		"a program elsewhere":   with(`{"command": "/bin/sh"}`, `{}`),
		"a path out of it":      with(`{"command": "${__dirname}/../../bin/sh"}`, `{}`),
		"a shell":               with(`{"command": "sh", "args": ["-c", "id"]}`, `{}`),
		"no command":            `{"name": "b", "version": "1", "server": {"type": "node"}}`,
		"an unknown value":      with(`{"command": "node", "args": ["${user_config.x}"]}`, `{}`),
		"a command of a value":  with(`{"command": "${user_config.key}"}`, user),
		"another platform":      `{"name": "b", "version": "1", "compatibility": {"platforms": ["plan9"]}}`,
		"a key with a brace":    with(`{"command": "node"}`, `{"a}b": {"type": "string"}}`),
		"a key that is twice":   `{"name": "b", "name": "c", "version": "1"}`,
		"a steering variable":   with(`{"command": "node", "env": {"LD_PRELOAD": "${__dirname}/x.so"}}`, `{}`),
		"options of node":       with(`{"command": "node", "env": {"NODE_OPTIONS": "--import=${__dirname}/x.mjs"}}`, `{}`),
		"code out of it":        with(`{"command": "python", "env": {"PYTHONPATH": "${__dirname}/lib:${__dirname}/../other"}}`, `{}`),
		"a folder of a value":   with(`{"command": "python", "env": {"PYTHONPATH": "${__dirname}/${user_config.key}"}}`, user),
		"no name":               `{"version": "1"}`,
		"something else":        `[]`,
		"a server that is text": `{"name": "b", "version": "1", "server": "x"}`,
	} {
		if got, err := plan(manifest, nil); !errors.Is(err, registry.ErrDenied) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}
