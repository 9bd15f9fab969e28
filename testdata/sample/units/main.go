// Command units is the MCP server of the sample project: it converts lengths
// and temperatures.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type convertParams struct {
	Value float64 `json:"value" jsonschema:"the number to convert"`
	From  string  `json:"from" jsonschema:"unit of the number: m, km, mi, ft, C or F"`
	To    string  `json:"to" jsonschema:"unit wanted: m, km, mi, ft, C or F"`
}

type convertResult struct {
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
}

func main() {
	server := mcp.NewServer(&mcp.Implementation{Name: "units", Version: "1.0.0"}, nil)
	mcp.AddTool(server, &mcp.Tool{
		Name:        "convert",
		Description: "Converts a length or a temperature from one unit to another.",
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true},
	}, convert)
	if err := server.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		log.Fatal(err)
	}
}

func convert(_ context.Context, _ *mcp.CallToolRequest, p convertParams) (*mcp.CallToolResult, convertResult, error) {
	metres := map[string]float64{"m": 1, "km": 1000, "mi": 1609.344, "ft": 0.3048}
	from, okFrom := metres[p.From]
	to, okTo := metres[p.To]
	var value float64
	switch {
	case okFrom && okTo:
		value = p.Value * from / to
	case p.From == "C" && p.To == "F":
		value = p.Value*9/5 + 32
	case p.From == "F" && p.To == "C":
		value = (p.Value - 32) * 5 / 9
	case p.From == p.To:
		value = p.Value
	default:
		return nil, convertResult{}, fmt.Errorf("cannot convert %q to %q", p.From, p.To)
	}
	text := fmt.Sprintf("%g %s = %g %s", p.Value, p.From, value, p.To)
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, convertResult{value, p.To}, nil
}
