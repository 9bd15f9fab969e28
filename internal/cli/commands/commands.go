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
		{Title: "Core commands", Commands: list{listcmd.New, discovercmd.New, schemacmd.New, callcmd.New, serverscmd.New}},
		{Title: "Tools", Commands: list{searchcmd.New, runcmd.New, taskscmd.New, whycmd.New}},
		{Title: "Agents", Commands: list{servecmd.New, rpccmd.New}},
		{Title: "Sources", Commands: list{pluginscmd.New, lockcmd.New, cachecmd.New}},
		{Title: "Trust and records", Commands: list{trustcmd.New, policycmd.New, approvalscmd.New, auditcmd.New, auditcmd.NewStats}},
		{Title: "Setup", Commands: list{initcmd.New, settingscmd.New, doctorcmd.New, completioncmd.New, cli.NewVersionCommand}},
		{Commands: append(cli.InternalCommands(), completioncmd.NewComplete)},
	}
}
