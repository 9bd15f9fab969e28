package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// Every run pays for what packages do before main. The test limits their memory, because
// their time depends on the machine.
func TestPackagesInitializeLittle(t *testing.T) {
	const (
		maxOwn    = 3 << 10   // of toolreg's packages: no tables, no regular expressions
		maxOthers = 980 << 10 // of all libraries but the schema library, which compiles its drafts
	)
	_, command := inProject(t)
	cmd := command("version")
	cmd.Env = append(cmd.Env, "GODEBUG=inittrace=1")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	own, others := 0, 0
	for line := range strings.Lines(stderr.String()) {
		var name string
		var at, took float64
		var size, count int
		if _, err := fmt.Sscanf(line, "init %s @%f ms, %f ms clock, %d bytes, %d allocs", &name, &at, &took, &size, &count); err != nil {
			continue
		}
		switch {
		case strings.HasPrefix(name, "github.com/toolreg/toolreg/internal/"):
			own += size
		case !strings.HasPrefix(name, "github.com/santhosh-tekuri/jsonschema/"):
			others += size
		}
	}
	t.Logf("toolreg's packages %d bytes, libraries %d", own, others)
	if others == 0 || own > maxOwn || others > maxOthers {
		t.Errorf("toolreg's packages take %d bytes, at most %d; libraries %d, at most %d:\n%s", own, maxOwn, others, maxOthers, stderr.String())
	}
}
