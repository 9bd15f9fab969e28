package main

import (
	"cmp"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// writeSBOM writes the bill of materials of a toolreg binary, from the build information in
// it. The document depends only on the binary and the version.
func writeSBOM(out io.Writer, binary, version string) error {
	data, err := os.ReadFile(binary)
	if err != nil {
		return err
	}
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return fmt.Errorf("%s: %w", binary, err)
	}
	modules, err := linkedModules(setting(info, "GOOS"))
	if err != nil {
		return err
	}
	components, err := linkedComponents(info, modules)
	if err != nil {
		return fmt.Errorf("%s: %w", binary, err)
	}
	sum := sha256.Sum256(data)
	bom := cdx.NewBOM()
	bom.SerialNumber = "urn:uuid:" + uuid([16]byte(sum[:]))
	program := cdx.Component{
		BOMRef: "toolreg", Type: cdx.ComponentTypeApplication,
		Name: filepath.Base(binary), Version: cmp.Or(version, info.Main.Version),
		PackageURL: packageURL(info.Main.Path, cmp.Or(version, info.Main.Version)),
		Licenses:   &cdx.Licenses{{License: &cdx.License{ID: "Apache-2.0"}}},
		Hashes:     &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(sum[:])}},
		Properties: buildSettings(info, "GOOS", "GOARCH", "vcs.revision"),
	}
	bom.Metadata = &cdx.Metadata{Timestamp: setting(info, "vcs.time"), Component: &program}
	bom.Components = &components
	var refs []string
	for _, c := range components {
		refs = append(refs, c.BOMRef)
	}
	bom.Dependencies = &[]cdx.Dependency{{Ref: program.BOMRef, Dependencies: &refs}}
	return cdx.NewBOMEncoder(out, cdx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(bom, cdx.SpecVersion1_6)
}

// linkedComponents describes the modules in the build information of a binary, and the
// standard library.
func linkedComponents(info *debug.BuildInfo, modules []*module) ([]cdx.Component, error) {
	byPath := map[string]*module{}
	for _, m := range modules {
		byPath[m.Path] = m
	}
	linked := append(info.Deps, &debug.Module{Path: "std", Version: strings.TrimPrefix(info.GoVersion, "go")})
	var components []cdx.Component
	for _, dep := range linked {
		m := byPath[dep.Path]
		if m == nil || m.Version != dep.Version || dep.Replace != nil {
			return nil, fmt.Errorf("it is linked with %s %s, which this repository does not use", dep.Path, dep.Version)
		}
		url := packageURL(dep.Path, dep.Version)
		components = append(components, cdx.Component{
			BOMRef: url, Type: cdx.ComponentTypeLibrary, Name: dep.Path, Version: dep.Version, PackageURL: url,
			Licenses: &cdx.Licenses{{Expression: m.License}},
		})
	}
	return components, nil
}

// uuid returns a UUID of version 8 (RFC 9562) with the bits of b.
func uuid(b [16]byte) string {
	b[6], b[8] = b[6]&0x0f|0x80, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// packageURL names a Go module; see the type golang of the package-url
// specification.
func packageURL(path, version string) string {
	if version == "" {
		return "pkg:golang/" + path
	}
	return "pkg:golang/" + path + "@" + strings.ReplaceAll(version, "+", "%2B")
}

// buildSettings returns the named build settings of a binary, except missing ones.
func buildSettings(info *debug.BuildInfo, keys ...string) *[]cdx.Property {
	var properties []cdx.Property
	for _, key := range keys {
		if value := setting(info, key); value != "" {
			properties = append(properties, cdx.Property{Name: "toolreg:build:" + key, Value: value})
		}
	}
	return &properties
}

// setting returns a build setting of a binary.
func setting(info *debug.BuildInfo, key string) string {
	for _, s := range info.Settings {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}
