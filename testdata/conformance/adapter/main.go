//go:build unix

// The adapter stands between the conformance suite of the Model Context Protocol
// and toolreg. The suite runs it once for each scenario, with the address of a
// server of its own as the last argument; the adapter writes settings that name
// that server into a fresh home and does with the real command what a person
// would do: look at the server, log in where it asks for that, list its tools
// and call them, answer questions at a terminal. What happens on the wire is
// toolreg's alone.
//
// Environment: TOOLREG is the command to test; MCP_CONFORMANCE_SCENARIO and
// MCP_CONFORMANCE_CONTEXT come from the suite.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "adapter:", err)
		os.Exit(1)
	}
}

func run() error {
	if len(os.Args) < 2 || os.Getenv("TOOLREG") == "" {
		return errors.New("usage: TOOLREG=path/to/toolreg adapter URL")
	}
	home, err := os.MkdirTemp("", "conformance")
	if err != nil {
		return err
	}
	defer os.RemoveAll(home)
	p := &person{toolreg: os.Getenv("TOOLREG"), home: home, scenario: os.Getenv("MCP_CONFORMANCE_SCENARIO")}
	if given := os.Getenv("MCP_CONFORMANCE_CONTEXT"); given != "" {
		if err := json.Unmarshal([]byte(given), &p.context); err != nil {
			return fmt.Errorf("reading MCP_CONFORMANCE_CONTEXT: %w", err)
		}
	}
	if err := p.writeSettings(os.Args[len(os.Args)-1]); err != nil {
		return err
	}
	return p.useEverything()
}

// given is what a scenario tells the client beside the address.
type given struct {
	ToolCalls []struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"toolCalls"`
	ClientID     string `json:"client_id"`
	ClientSecret string `json:"client_secret"`
	PrivateKey   string `json:"private_key_pem"`
	Assertion    string `json:"valid_jwt"`
	IDToken      string `json:"idp_id_token"`
	IDPIssuer    string `json:"idp_issuer"`
	IDPClientID  string `json:"idp_client_id"`
}

// person does one scenario.
type person struct {
	toolreg, home, scenario string
	context                 given
	visits                  int // of addresses to log in at
}

func (p *person) writeSettings(url string) error {
	server := map[string]any{"url": url, "trust": true}
	oauth := p.oauth()
	if p.context.ClientSecret+p.context.Assertion != "" {
		var err error
		if oauth["issuer"], err = issuerOf(url); err != nil {
			return err
		}
	}
	if len(oauth) > 0 {
		server["oauth"] = oauth
	}
	settings, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"s": server}})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(p.home, "settings.json"), settings, 0o600)
}

// oauth returns the entry of the settings for a scenario that gives the client
// an identity.
func (p *person) oauth() map[string]string {
	entry := map[string]string{}
	for key, value := range map[string]string{
		"clientId": p.context.ClientID, "clientSecret": p.context.ClientSecret, "privateKey": p.context.PrivateKey,
		"assertion": p.context.Assertion, "idToken": p.context.IDToken, "idpIssuer": p.context.IDPIssuer, "idpClientId": p.context.IDPClientID,
	} {
		if value != "" {
			entry[key] = value
		}
	}
	switch p.scenario {
	case "auth/basic-cimd", "auth/offline-access-scope":
		entry["clientId"] = "https://conformance-test.local/client-metadata.json"
	case "auth/client-credentials-basic", "auth/client-credentials-jwt":
		entry["grant"] = "client_credentials"
	case "auth/enterprise-managed-authorization", "auth/wif-jwt-bearer":
		entry["grant"] = "jwt_bearer"
	}
	return entry
}

// tool is what list says of a tool.
type tool struct {
	ServerTool  string          `json:"serverTool"`
	InputSchema json.RawMessage `json:"inputSchema"`
}

// useEverything looks at the server, lists its tools and calls them, with the
// params of the scenario where it gives some.
func (p *person) useEverything() error {
	if _, err := p.run("-v", "servers", "--strict"); err != nil {
		return err
	}
	out, err := p.run("list", "--source", "mcp:s", "--strict", "--json")
	if err != nil {
		return err
	}
	var listed struct{ Tools []tool }
	if err := json.Unmarshal(out, &listed); err != nil {
		return err
	}
	switch {
	case p.scenario == "json-schema-ref-no-deref":
		// Its tool refers to a schema elsewhere. toolreg refuses the call of such
		// a tool, since nothing may be fetched to check the params.
		_, err := p.run("schema", "--source", "mcp:s")
		return err
	case p.scenario == "http-standard-headers":
		if _, err := p.run("servers", "read", "s", "https://example.com/resource?id=123", "--json"); err != nil {
			return err
		}
		if _, err := p.run("servers", "prompt", "s", "test_prompt", "--json"); err != nil {
			return err
		}
	case p.scenario == "json-schema-2020-12-preservation":
		return p.echoSchema(listed.Tools)
	case len(p.context.ToolCalls) > 0:
		for _, c := range p.context.ToolCalls {
			err = errors.Join(err, p.call(c.Name, string(c.Arguments)))
		}
		return err
	}
	for _, t := range listed.Tools {
		params, schemaErr := paramsFor(t.InputSchema)
		if schemaErr != nil {
			return schemaErr
		}
		err = errors.Join(err, p.call(t.ServerTool, params))
	}
	return err
}

// echoSchema sends a schema back as it was listed.
func (p *person) echoSchema(tools []tool) error {
	for _, t := range tools {
		if t.ServerTool != "json_schema_echo" {
			return p.call("json_schema_echo", `{"schema":`+string(t.InputSchema)+`}`)
		}
	}
	return errors.New("no schema to send back")
}

// call calls a tool at a terminal, where a person takes every default.
func (p *person) call(name, params string) error {
	file := filepath.Join(p.home, "params.json")
	if err := os.WriteFile(file, []byte(params), 0o600); err != nil {
		return err
	}
	return p.atTerminal("call", "s__"+name, "--params-file", file)
}

// paramsFor makes up params with what a schema requires.
func paramsFor(schema json.RawMessage) (string, error) {
	var s struct {
		Properties map[string]struct{ Type string }
		Required   []string
	}
	if err := json.Unmarshal(schema, &s); err != nil {
		return "", err
	}
	params := map[string]any{}
	for _, name := range s.Required {
		params[name] = map[string]any{
			"string": "x", "number": 2.5, "integer": 3, "boolean": true,
			"array": []any{}, "object": map[string]any{}, "null": nil,
		}[s.Properties[name].Type]
	}
	out, err := json.Marshal(params)
	return string(out), err
}
