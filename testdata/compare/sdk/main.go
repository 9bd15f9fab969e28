// Sdk calls a tool of a stdio server with nothing but the Go SDK, as a program does that
// somebody writes with it: sdk list|TOOL JSON COMMAND ARGUMENT…
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func main() {
	if err := run(context.Background(), os.Args[1], json.RawMessage(os.Args[2]), os.Args[3:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, tool string, params json.RawMessage, argv []string) error {
	client := mcp.NewClient(&mcp.Implementation{Name: "sdk", Version: "1"}, nil)
	session, err := client.Connect(ctx, &mcp.CommandTransport{Command: exec.CommandContext(ctx, argv[0], argv[1:]...)}, nil)
	if err != nil {
		return err
	}
	defer session.Close()
	var result any
	if tool == "list" {
		result, err = session.ListTools(ctx, nil)
	} else {
		result, err = session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: params})
	}
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(result)
}
