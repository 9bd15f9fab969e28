// Command toolreg combines all tools that an LLM agent may use in one registry:
// it lists them, declares them to model providers and runs them.
package main

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/cli/approvalscmd"
	"github.com/toolreg/toolreg/internal/cli/auditcmd"
	"github.com/toolreg/toolreg/internal/cli/cachecmd"
	"github.com/toolreg/toolreg/internal/cli/callcmd"
	"github.com/toolreg/toolreg/internal/cli/completioncmd"
	"github.com/toolreg/toolreg/internal/cli/discovercmd"
	"github.com/toolreg/toolreg/internal/cli/doctorcmd"
	"github.com/toolreg/toolreg/internal/cli/initcmd"
	"github.com/toolreg/toolreg/internal/cli/listcmd"
	"github.com/toolreg/toolreg/internal/cli/lockcmd"
	"github.com/toolreg/toolreg/internal/cli/pickcmd"
	"github.com/toolreg/toolreg/internal/cli/pluginscmd"
	"github.com/toolreg/toolreg/internal/cli/policycmd"
	"github.com/toolreg/toolreg/internal/cli/schemacmd"
	"github.com/toolreg/toolreg/internal/cli/searchcmd"
	"github.com/toolreg/toolreg/internal/cli/servecmd"
	"github.com/toolreg/toolreg/internal/cli/serverscmd"
	"github.com/toolreg/toolreg/internal/cli/settingscmd"
	"github.com/toolreg/toolreg/internal/cli/trustcmd"
	"github.com/toolreg/toolreg/internal/cli/whycmd"
)

// version is set by the linker for releases.
var version string

// commands lists every subcommand, in the order of the help.
func commands() []cli.Group {
	type list = []func(*cli.Env) *cobra.Command
	return []cli.Group{
		{Title: "Tools", Commands: list{listcmd.New, searchcmd.New, callcmd.New, schemacmd.New, whycmd.New, discovercmd.New}},
		{Title: "Agents", Commands: list{servecmd.New}},
		{Title: "Sources", Commands: list{serverscmd.New, pluginscmd.New, lockcmd.New, cachecmd.New}},
		{Title: "Trust and records", Commands: list{trustcmd.New, policycmd.New, approvalscmd.New, auditcmd.New, auditcmd.NewStats}},
		{Title: "Setup", Commands: list{initcmd.New, settingscmd.New, doctorcmd.New, completioncmd.New, cli.NewVersionCommand}},
		{Commands: list{completioncmd.NewComplete, cli.NewKeepCommand}},
	}
}

// delayFirstCollection lets the heap grow to 16 MiB before the first garbage
// collection, and to twice the live heap afterwards. Most runs end before that;
// a collection at the usual 4 MiB costs them about a tenth of their time.
func delayFirstCollection() {
	if os.Getenv("GOGC") != "" {
		return
	}
	debug.SetGCPercent(400)
	marker := new([16]byte) // not tiny, because the collector may keep tiny objects for their neighbors
	runtime.AddCleanup(marker, func(percent int) { debug.SetGCPercent(percent) }, 100)
}

func main() {
	delayFirstCollection()
	program := cli.Program{Version: version, Commands: commands(), Pick: pickcmd.Run}
	os.Exit(program.Run(context.Background(), os.Args[1:], cli.NewStreams(os.Stdin, os.Stdout, os.Stderr), os.Environ()))
}
