package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/provider"
)

const versionLong = `Print the version of toolreg, of Go, and the system it was built for, as
toolreg --version does. toolreg never looks for newer versions.

--json adds the commit, the revisions of MCP that it speaks, the SDKs of model
providers that its declarations were tested with, and the build settings:

  {"version", "commit", "commitTime", "modified", "go", "os", "arch",
   "mcpRevisions":[…], "providers":{"asOf", "sdks":[{"module", "version"}]},
   "build":{SETTING: VALUE}}

The commit is missing from builds outside a git repository.

Exit codes: 0, 2.`

// NewVersionCommand prints the version.
func NewVersionCommand(e *Env) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Long:  versionLong,
		Example: `  toolreg version
  toolreg version --json
  toolreg version --jq '.mcpRevisions[0]'`,
		Args: NoArgs,
		RunE: func(*cobra.Command, []string) error { return e.printVersion() },
	}
}

func (e *Env) printVersion() error {
	return e.IO.PrintText(newVersionReport(e.Version), fmt.Sprintf("toolreg %s (%s %s/%s)\n",
		e.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH))
}

type versionReport struct {
	Version      string            `json:"version"`
	Commit       string            `json:"commit,omitempty"`
	CommitTime   string            `json:"commitTime,omitempty"`
	Modified     bool              `json:"modified,omitempty"` // there were changes beyond the commit
	Go           string            `json:"go"`
	OS           string            `json:"os"`
	Arch         string            `json:"arch"`
	MCPRevisions []string          `json:"mcpRevisions"` // newest first
	Providers    provider.Tested   `json:"providers"`
	Build        map[string]string `json:"build"`
}

func newVersionReport(version string) versionReport {
	r := versionReport{
		Version: version, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH,
		MCPRevisions: mcpclient.Revisions(), Providers: provider.TestedWith(), Build: map[string]string{},
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return r
	}
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			r.Commit = s.Value
		case s.Key == "vcs.time":
			r.CommitTime = s.Value
		case s.Key == "vcs.modified":
			r.Modified = s.Value == "true"
		case !strings.HasPrefix(s.Key, "vcs"):
			r.Build[s.Key] = s.Value
		}
	}
	return r
}
