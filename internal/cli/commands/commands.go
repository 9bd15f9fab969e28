// Package commands lists the commands of toolreg, for the program and for the
// generator of its manual.
package commands

import (
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
	"github.com/toolreg/toolreg/internal/cli/rpccmd"
	"github.com/toolreg/toolreg/internal/cli/runcmd"
	"github.com/toolreg/toolreg/internal/cli/schemacmd"
	"github.com/toolreg/toolreg/internal/cli/searchcmd"
	"github.com/toolreg/toolreg/internal/cli/servecmd"
	"github.com/toolreg/toolreg/internal/cli/serverscmd"
	"github.com/toolreg/toolreg/internal/cli/settingscmd"
	"github.com/toolreg/toolreg/internal/cli/taskscmd"
	"github.com/toolreg/toolreg/internal/cli/trustcmd"
	"github.com/toolreg/toolreg/internal/cli/whycmd"
)

// Program returns the program with all of its commands.
func Program(version string) cli.Program {
	return cli.Program{Version: version, Commands: groups(), Pick: pickcmd.Run}
}

// groups lists every subcommand, in the order of the help.
func groups() []cli.Group {
	type list = []cli.Command
	return []cli.Group{
		{Title: "Core commands", Commands: list{{"list", listcmd.New},
			{"discover", discovercmd.New}, {"schema", schemacmd.New}, {"call", callcmd.New},
			{"servers", serverscmd.New}}},
		{Title: "Tools", Commands: list{{"search", searchcmd.New}, {"run", runcmd.New}, {"tasks", taskscmd.New}, {"why", whycmd.New}}},
		{Title: "Agents", Commands: list{{"serve", servecmd.New}, {"rpc", rpccmd.New}}},
		{Title: "Sources", Commands: list{{"plugins", pluginscmd.New}, {"lock", lockcmd.New}, {"cache", cachecmd.New}}},
		{Title: "Trust and records", Commands: list{{"trust", trustcmd.New},
			{"policy", policycmd.New}, {"approvals", approvalscmd.New},
			{"audit", auditcmd.New}, {"stats", auditcmd.NewStats}}},
		{Title: "Setup", Commands: list{{"init", initcmd.New},
			{"settings", settingscmd.New}, {"", doctorcmd.New}, {"", completioncmd.New},
			{"version", cli.NewVersionCommand}}},
		{Commands: append(cli.InternalCommands(), cli.Command{New: completioncmd.NewComplete})},
	}
}
