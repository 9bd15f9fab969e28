// Testserver is the MCP server of the tests as a program: its tools are called
// through toolreg by the clients of this folder.
package main

import (
	"os"

	"github.com/toolreg/toolreg/internal/mcptest"
)

func main() { os.Exit(mcptest.Run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
