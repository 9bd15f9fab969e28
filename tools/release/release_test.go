package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/licenseclassifier/v2/assets"
	"github.com/santhosh-tekuri/jsonschema/v5"
)

const root = "../.." // the folder of the program's module

// TestBuildIsReproducible builds the program in two folders, as releases are built.
func TestBuildIsReproducible(t *testing.T) {
	if testing.Short() {
		t.Skip("building with -trimpath takes a minute at first")
	}
	t.Chdir(root)
	var binaries [2][]byte
	for i := range binaries {
		var err error
		if binaries[i], err = os.ReadFile(build(t, filepath.Join(t.TempDir(), strings.Repeat("deeper/", i)))); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(binaries[0], binaries[1]) {
		t.Error("make build produces different binaries in different folders")
	}
}

// build copies the sources to dir and returns the program that make builds.
func build(t *testing.T, dir string) string {
	t.Helper()
	for _, part := range []string{"cmd", "internal"} {
		if err := os.CopyFS(filepath.Join(dir, part), os.DirFS(part)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"go.mod", "go.sum", "Makefile"} {
		data, err := os.ReadFile(name)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), data, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	make := exec.CommandContext(t.Context(), "make", "build", "VERSION=v1.2.3")
	make.Dir = dir
	if out, err := make.CombinedOutput(); err != nil {
		t.Fatalf("make build: %v\n%s", err, out)
	}
	return filepath.Join(dir, "bin", "toolreg")
}

// TestSBOM validates a bill of materials against the schema of CycloneDX 1.6 and checks its
// most important entries.
func TestSBOM(t *testing.T) {
	t.Chdir(root)
	binary := filepath.Join(t.TempDir(), "toolreg")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "./cmd/toolreg").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	var bom, again bytes.Buffer
	if err := errors.Join(run([]string{"sbom", "-version", "v1.2.3", binary}, &bom), run([]string{"sbom", "-version", "v1.2.3", binary}, &again)); err != nil {
		t.Fatal(err)
	}
	if bom.String() != again.String() {
		t.Errorf("the documents of the same binary differ:\n%s\n%s", &bom, &again)
	}
	var document any
	if err := json.Unmarshal(bom.Bytes(), &document); err != nil {
		t.Fatal(err)
	}
	if err := cycloneDX(t).Validate(document); err != nil {
		t.Errorf("%#v", err)
	}
	for _, want := range []string{`"pkg:golang/github.com/spf13/cobra@v`, `"pkg:golang/std@1.`, `"expression": "MIT"`, `"version": "v1.2.3"`} {
		if !strings.Contains(bom.String(), want) {
			t.Errorf("no %s in\n%s", want, &bom)
		}
	}
}

// cycloneDX returns the schema that comes with the library.
func cycloneDX(t *testing.T) *jsonschema.Schema {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/CycloneDX/cyclonedx-go")
	list.Dir = filepath.Join("tools", "release")
	dir, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat = true
	for name, file := range map[string]string{"bom-1.6": "bom-1.6.schema.json", "spdx": "spdx.schema.json", "jsf-0.82": "jsf-0.82.schemax.json"} {
		f, err := os.Open(filepath.Join(strings.TrimSpace(string(dir)), "schema", file))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if err := compiler.AddResource("http://cyclonedx.org/schema/"+name+".schema.json", f); err != nil {
			t.Fatal(err)
		}
	}
	schema, err := compiler.Compile("http://cyclonedx.org/schema/bom-1.6.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// TestEveryModuleHasItsLicense compares the texts with the modules in go.mod
// that are known to be linked.
func TestEveryModuleHasItsLicense(t *testing.T) {
	t.Chdir(root)
	var out bytes.Buffer
	if err := run([]string{"licenses"}, &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"\n  github.com/spf13/cobra v", "\n  std 1.", " (BSD-3-Clause)\n",
		"\n  github.com/inconshreveable/mousetrap v", // only on Windows
		"Copyright (c) 2019 Yusuke Inuzuka",          // goldmark's
		"Copyright 2009 The Go Authors.",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q among the licenses", want)
		}
	}
}

// TestUnacceptedLicensesFail checks that a module without an accepted license stops the
// release.
func TestUnacceptedLicensesFail(t *testing.T) {
	gpl, err := assets.ReadLicenseFile("License/GPL-2.0/license.txt")
	if err != nil {
		t.Fatal(err)
	}
	classify, err := newClassifier()
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct{ file, content, want string }{
		"no license":      {"README", "free for all", "no known license"},
		"unknown license": {"LICENSE", "You may look at it on Sundays.", "no known license"},
		"not accepted":    {"COPYING.txt", string(gpl), "GPL-2.0, which is not among those accepted"},
	} {
		t.Run(name, func(t *testing.T) {
			m := &module{Path: "example.com/m", folders: []string{t.TempDir()}}
			if err := os.WriteFile(filepath.Join(m.folders[0], tt.file), []byte(tt.content), 0o644); err != nil {
				t.Fatal(err)
			}
			if err := m.readTexts(); err != nil {
				t.Fatal(err)
			}
			if _, err := classify(m); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
		})
	}
}
