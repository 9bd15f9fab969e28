package table

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/settings/document"
	"github.com/toolreg/toolreg/internal/webaddr"
)

// The settings that hold servers and APIs, each with its entries by name.
const (
	ServersKey = "mcpServers"
	APIsKey    = "openapi"
)

// ServerNameChars are the characters of a server's name.
const ServerNameChars = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"

// CheckServerName rejects invalid names of servers.
func CheckServerName(name string) error {
	if name == "" || strings.Trim(name, ServerNameChars) != "" {
		return fmt.Errorf("%q cannot be the name of a server; use letters, digits, and _ . -", name)
	}
	return nil
}

// The functions below are values of Row.CheckName and Row.CheckEntry.

func checkVariableName(name string) (problem, hint string) {
	if name == "" || strings.ContainsAny(name, "=\x00") {
		problem = fmt.Sprintf("%q is not a valid variable name", name)
	}
	return problem, ""
}

func checkHeaderName(name string) (problem, hint string) {
	if !httpguts.ValidHeaderFieldName(name) {
		problem = fmt.Sprintf("%q is not a valid header name", name)
	}
	return problem, ""
}

func checkHeader(name string, n *jsonx.Value) error {
	if !httpguts.ValidHeaderFieldName(name) {
		return nil // it is reported
	}
	return CheckHeaderValue(name, n.Text())
}

func checkOrigin(name string) (problem, hint string) {
	if _, err := ParseOrigin(name); err != nil {
		return err.Error(), "write it as in https://api.example.com"
	}
	return "", ""
}

func checkProfileName(name string) (problem, hint string) {
	if strings.Trim(name, ServerNameChars) != "" || strings.Trim(name, ".") == "" {
		return fmt.Sprintf("%q cannot be the name of a profile, because it is part of an address", name),
			"use letters, digits, and _ . -, not dots alone"
	}
	return "", ""
}

func checkRegistry(n *jsonx.Value) (problem, hint string) {
	if n.Is(jsonx.String) {
		if err := CheckRegistry(n.Text()); err != nil {
			problem = err.Error()
		}
	}
	return problem, ""
}

func checkServer(_ string, n *jsonx.Value) error {
	if n.Get("disabled").Is(jsonx.True) {
		return nil
	}
	for _, name := range []string{"command", "url", "httpUrl"} {
		if v := n.Get(name); v != nil && v.Kind != jsonx.String && v.Kind != jsonx.Null {
			return nil // its type is reported; it is not missing
		}
	}
	command, address := strings.TrimSpace(n.Get("command").Text()), n.Get("url").Text()
	if a := n.Get("httpUrl").Text(); a != "" {
		address = a
	}
	switch n.Get("type").Text() {
	case "stdio":
		if command == "" {
			return errors.New(`type stdio needs a command`)
		}
	case "http", "sse", "streamable-http", "streamableHttp":
		if address == "" {
			return fmt.Errorf("type %s needs a url", n.Get("type").Text())
		}
	}
	if command == "" && address == "" {
		return errors.New("needs a command, a url or an httpUrl")
	}
	if login := n.Get("oauth"); login.Is(jsonx.Object) {
		if grant := login.Get("grant").Text(); login.Get("per").Text() == "client" &&
			(address == "" || grant != "" && grant != "authorization_code") {
			return errors.New(
				"oauth.per: client needs a url, and the grant authorization_code: clients log in with a browser")
		}
		if redirect := login.Get("redirectUri").Text(); !strings.Contains(redirect, "$") {
			// Variables are expanded later.
			if err := CheckRedirectURI(redirect); err != nil {
				return err
			}
		}
	}
	return CheckURL(address)
}

func checkAPI(_ string, n *jsonx.Value) error {
	if n.Get("disabled").Is(jsonx.True) {
		return nil
	}
	spec, base := n.Get("spec").Text(), n.Get("baseUrl").Text()
	isRemote := strings.Contains(spec, "://")
	if isRemote {
		if err := checkAPIAddress(spec); err != nil {
			return fmt.Errorf("spec: %w", err)
		}
	}
	if err := checkAPIAddress(base); err != nil {
		return fmt.Errorf("baseUrl: %w", err)
	}
	auth := n.Get("auth")
	if base == "" && !isRemote && (auth != nil || n.Get("headers") != nil) {
		return errors.New("headers and auth need baseUrl, because they are sent only there")
	}
	ways := []*jsonx.Value{auth}
	if auth.Is(jsonx.Array) {
		ways = auth.Items
	}
	authorizations := 0
	for _, way := range ways {
		if !way.Is(jsonx.Object) {
			continue
		}
		if len(way.Members) != 1 {
			return errors.New("auth: each way is one of bearer, basic, apiKey, oauth; several are a list")
		}
		if key := way.Get("apiKey"); key.Is(jsonx.Object) && key.Get("in").Text() != "query" &&
			(!httpguts.ValidHeaderFieldName(key.Get("name").Text()) ||
				strings.EqualFold(key.Get("name").Text(), "Host")) {
			return errors.New("auth.apiKey.name is not a valid name")
		}
		if way.Get("apiKey") == nil {
			authorizations++
		}
		// An API's login does not depend on what a server says, unlike that of an MCP server.
		if login := way.Get("oauth"); login.Is(jsonx.Object) &&
			login.Get("issuer").Text() == "" && (login.Get("tokenUrl").Text() == "" ||
			login.Get("authorizationUrl").Text() == "" &&
				(login.Get("grant") == nil || login.Get("grant").Text() == "authorization_code")) {
			return errors.New("auth.oauth needs issuer, or tokenUrl and authorizationUrl")
		}
	}
	if authorizations > 1 {
		return errors.New(
			"auth: only one of bearer, basic and oauth can be used, because each is the header Authorization")
	}
	return nil
}

// checkAPIAddress is [CheckURL] for an address that must not have credentials, because it is
// shown.
func checkAPIAddress(address string) error {
	if err := CheckURL(address); err != nil {
		return err
	}
	if u, err := url.Parse(address); err == nil && u.User != nil {
		return errors.New("the URL must not have a user; auth sends credentials")
	} else if err == nil && u.Fragment != "" {
		return errors.New("the URL must not have a fragment")
	}
	return nil
}

// CheckURL rejects an address that is not an http or https URL. It accepts an
// empty address and any address that contains variables.
func CheckURL(address string) error {
	if address == "" || strings.Contains(address, "$") {
		return nil
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return errors.New("the URL must begin with http:// or https:// and name a host") // the URL could hold a secret
	}
	return nil
}

// CheckRedirectURI rejects an oauth.redirectUri that is neither https nor http on this machine. It
// accepts an empty one.
func CheckRedirectURI(address string) error {
	if address == "" {
		return nil
	}
	if err := webaddr.Check(address); err != nil {
		return fmt.Errorf("oauth.redirectUri: %w", err)
	}
	return nil
}

// CheckHeaderValue rejects control characters. The error does not contain the
// value.
func CheckHeaderValue(name, value string) error {
	if !httpguts.ValidHeaderFieldValue(value) {
		return fmt.Errorf("the value of header %s contains a control character", name)
	}
	return nil
}

// CheckRegistry rejects an address that a registry cannot have, because commands that a
// registry names are run: it must be encrypted, or on this machine. It accepts any address
// that contains variables.
func CheckRegistry(address string) error {
	if strings.Contains(address, "$") {
		return nil
	}
	if strings.ContainsAny(address, "?#") {
		return fmt.Errorf("its address has a query or a fragment")
	}
	return webaddr.Check(address)
}

// IsScope reports whether a text is one scope (RFC 6749 section 3.3).
func IsScope(s string) bool {
	return s != "" && !strings.ContainsFunc(s,
		func(r rune) bool { return r < 0x21 || r > 0x7e || r == '"' || r == '\\' })
}

// ParseOrigin reads scheme://host[:port]. The error does not include the text,
// which could be an address with a secret.
func ParseOrigin(s string) (string, error) {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return "", fmt.Errorf("an entry name is not an http or https origin")
	}
	if u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
		return "", fmt.Errorf("the entry for %s has more than scheme, host and port", document.Printable(u.Host))
	}
	return webaddr.Origin(u), nil
}
