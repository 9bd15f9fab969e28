package transport

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// decodeName decodes the header Mcp-Name, because the SDK does not.
func decodeName(h http.Header) {
	if h.Get("Mcp-Name") != "" {
		h.Set("Mcp-Name", NameOf(h))
	}
}

// NameOf returns the header Mcp-Name, decoded.
func NameOf(h http.Header) string {
	name := h.Get("Mcp-Name")
	if encoded, ok := strings.CutPrefix(name, "=?base64?"); ok {
		encoded, whole := strings.CutSuffix(encoded, "?=")
		if decoded, err := base64.StdEncoding.DecodeString(encoded); err == nil && whole {
			return string(decoded)
		}
	}
	return name
}

// CheckHeaders rejects requests that a proxy in front of the server may have interpreted
// differently.
func CheckHeaders(r *http.Request) error {
	for name, values := range r.Header {
		if len(values) > 1 && (name == "Content-Type" || strings.HasPrefix(name, "Mcp-")) {
			return fmt.Errorf("the header %s is given more than once", name)
		}
	}
	return nil
}

// CheckOrigin rejects requests from web pages of other origins, and requests for a host
// whose name was made to resolve to this machine (DNS rebinding) if loopback
// says that only this machine can reach the server.
func CheckOrigin(r *http.Request, loopback bool) error {
	if loopback && !IsLoopback(r.Host) {
		return errors.New("forbidden: this server accepts only requests for localhost")
	}
	for _, origin := range r.Header.Values("Origin") {
		u, err := url.Parse(origin)
		if err != nil || u.Host != r.Host {
			return errors.New("forbidden: requests from web pages of other origins are refused")
		}
	}
	return nil
}

// IsLoopback reports whether a host, of which a port may be part, is this machine.
func IsLoopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.Trim(host, "[]")
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
