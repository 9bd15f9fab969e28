package serverscmd

import (
	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/toolscan"
)

// editedServer is the JSON of the commands that change a server.
type editedServer struct {
	Name   string `json:"name"`
	Action string `json:"action"` // added, edited, removed, enabled, disabled
	File   string `json:"file"`
	Runs   string `json:"runs,omitempty"` // for a server of a registry or a bundle: its command or address
	Test   *trial `json:"test,omitempty"` // for an added server: the result of connecting to it

	// Findings are what an added server says to steer a model; see servers check.
	Findings []toolscan.Finding `json:"findings,omitempty"`
	// Disabled says that an added server was disabled because of a finding of severity high.
	Disabled bool `json:"disabled,omitempty"`
}

// trial is the result of connecting to a server; it is the JSON of servers
// test.
type trial struct {
	mcpclient.Info
	ToolNames []string `json:"toolNames"`       // names for calls
	Tried     string   `json:"tried,omitempty"` // of an API: how the call of an operation ended

	err error // the error of connecting
}
