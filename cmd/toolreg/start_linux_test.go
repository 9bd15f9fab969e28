package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// Every run pays for what packages do before main. The test limits the memory of the libraries,
// because their time depends on the machine. Of toolreg's own packages only two do anything.
func TestPackagesInitializeLittle(t *testing.T) {
	const maxOthers = 980 << 10 // of all libraries but the schema library, which compiles its drafts
	wantOwn := []string{"stack", "sandbox/launcher"}
	_, command := inProject(t)
	cmd := command("version")
	cmd.Env = append(cmd.Env, "GODEBUG=inittrace=1")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	var own []string
	others := 0
	for line := range strings.Lines(stderr.String()) {
		var name string
		var at, took float64
		var size, count int
		if _, err := fmt.Sscanf(line, "init %s @%f ms, %f ms clock, %d bytes, %d allocs", &name, &at, &took, &size, &count); err != nil {
			continue
		}
		if ours, ok := strings.CutPrefix(name, "github.com/toolreg/toolreg/internal/"); ok {
			own = append(own, ours)
		} else if !strings.HasPrefix(name, "github.com/santhosh-tekuri/jsonschema/") {
			others += size
		}
	}
	if others == 0 || others > maxOthers {
		t.Errorf("libraries take %d bytes, at most %d:\n%s", others, maxOthers, stderr.String())
	}
	if !slices.Equal(own, wantOwn) {
		t.Errorf("the packages %q run code before main, want %q; package lazy helps", own, wantOwn)
	}
}
