// sdkclient is the least client on the official Go SDK: what the library costs
// with nothing around it. It initializes at once, since the SDK waits for ever for
// an answer to server/discover that some servers never give.
//
//	sdkclient version
//	sdkclient list|call [-url URL] COMMAND ARG… [-- COMMAND ARG…]…
//	sdkclient tool NAME JSON COMMAND ARG…
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func main() {
	verb, args := os.Args[1], os.Args[2:]
	call := &mcp.CallToolParams{Name: "tool_1", Arguments: map[string]any{}}
	if verb == "tool" {
		call.Name, call.Arguments, args = args[0], json.RawMessage(args[1]), args[2:]
	}
	var transports []mcp.Transport
	switch {
	case verb == "version":
		fmt.Println("sdkclient")
		return
	case args[0] == "-url":
		transports = append(transports, &mcp.StreamableClientTransport{Endpoint: args[1], DisableStandaloneSSE: true, MaxEventSize: -1})
	default:
		for rest := args; len(rest) > 0; {
			i := slices.Index(rest, "--")
			if i < 0 {
				i = len(rest)
			}
			transports = append(transports, &mcp.CommandTransport{Command: exec.Command(rest[0], rest[1:i]...)})
			rest = rest[min(i+1, len(rest)):]
		}
	}
	var wg sync.WaitGroup
	var turn sync.Mutex
	for _, t := range transports {
		wg.Go(func() { ask(t, verb, call, &turn) })
	}
	wg.Wait()
}

func ask(t mcp.Transport, verb string, call *mcp.CallToolParams, turn *sync.Mutex) {
	ctx := context.Background()
	client, err := mcp.NewClient(&mcp.Implementation{Name: "sdkclient", Version: "1"}, nil).Connect(ctx, t, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	check(err)
	defer client.Close()
	var answer any
	if verb == "list" {
		answer, err = client.ListTools(ctx, nil)
	} else {
		answer, err = client.CallTool(ctx, call)
	}
	check(err)
	turn.Lock()
	defer turn.Unlock()
	check(json.NewEncoder(os.Stdout).Encode(answer))
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
