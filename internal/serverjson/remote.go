package serverjson

import (
	"net/netip"
	"net/url"
	"strings"

	"github.com/toolreg/toolreg/internal/text"
	"github.com/toolreg/toolreg/internal/webaddr"
)

// The expressions for a value that is a whole host, and for one that is a part of its name.
const (
	wholeHost = `^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[0-9]{1,5})?$`
	partHost  = `^[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?$`
)

// remote plans a server that is reached at an address.
func (b *builder) remote(t *Transport) error {
	switch t.Type {
	case "streamable-http":
		b.Type = "http"
	case "sse":
		b.Type = "sse"
	default:
		return Refuse("", "its transport %s is not supported", text.Quote(t.Type))
	}
	headers := t.headers()
	for _, p := range headers {
		if err := checkHeader(p); err != nil {
			return err
		}
	}
	if err := b.address(t); err != nil || len(b.Missing) > 0 {
		return err
	}
	var err error
	b.Headers, err = b.pairs(headers)
	return err
}

func (b *builder) address(t *Transport) error {
	scheme, rest, ok := strings.Cut(t.URL, "://")
	if !ok || strings.Contains(scheme, "{") {
		return Refuse("add it with toolreg servers add NAME --url URL",
			"its address %s has no fixed scheme", text.Quote(t.URL))
	}
	if strings.ContainsAny(rest, "#") {
		return Refuse("", "its address has a fragment")
	}
	notation, plain := scheme+"://", scheme+"://"
	where := "host"
	spans := splitTemplate(rest)
	for i, s := range spans {
		if !s.isName {
			if where == "host" && strings.ContainsAny(s.text, "/?") {
				where = "path"
			}
			if strings.Contains(s.text, "?") {
				where = "query"
			}
			notation += strings.ReplaceAll(s.text, "$", "$$")
			plain += s.text
			continue
		}
		v := t.Variables[s.text]
		if v.Value != "" { // the publisher's own
			notation, plain = notation+strings.ReplaceAll(v.Value, "$", "$$"), plain+v.Value
			continue
		}
		p := piece{name: s.text}
		values := b.inputValues(s.text, v)
		if len(values) == 0 {
			continue // it is missing
		}
		parts := values[0]
		if parts[0].isRef {
			if where == "host" {
				return &ValueError{s.text, "it is in the name of a host, so it cannot be a reference"}
			}
			reference, err := b.notation(p, parts)
			if err != nil {
				return err
			}
			notation, plain = notation+reference, plain+"x"
			continue
		}
		value := parts[0].text
		switch where {
		case "host":
			isWhole := i == 0 && (len(spans) == 1 || !spans[1].isName && strings.HasPrefix(spans[1].text, "/"))
			if !matches(partHost, value) && !(isWhole && matches(wholeHost, value)) {
				return &ValueError{s.text, "it is in the name of a host, so it consists of letters, digits and -"}
			}
		case "path":
			if value == "" || value == "." || value == ".." || strings.ContainsAny(value, "/\\?#%") {
				return &ValueError{s.text,
					"it must stay within one segment of a path, so it cannot be empty, . or .., nor contain / \\ ? # or %"}
			}
			value = url.PathEscape(value)
		default:
			value = url.QueryEscape(value)
		}
		notation, plain = notation+strings.ReplaceAll(value, "$", "$$"), plain+value
	}
	if len(b.Missing) > 0 {
		return nil
	}
	b.URL = notation
	return checkRemote(plain)
}

// checkRemote refuses an address of a server that a description must not name: it must be encrypted
// or on this machine, and its host must not be link-local.
func checkRemote(address string) error {
	if err := webaddr.Check(address); err != nil {
		return Refuse("", "%s: %v", text.Quote(address), err)
	}
	u, err := url.Parse(address)
	if err != nil {
		return Refuse("", "%s is not an address", text.Quote(address))
	}
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	ip, err := netip.ParseAddr(host)
	if err != nil {
		last := host[strings.LastIndexByte(host, '.')+1:]
		if last == "" || strings.Trim(last, "0123456789") == "" || strings.HasPrefix(last, "0x") ||
			strings.ContainsFunc(host, func(r rune) bool { return r >= 0x80 }) {
			return Refuse("", "%s does not name a host", text.Quote(address))
		}
		return nil
	}
	ip = ip.Unmap()
	if !ip.IsLoopback() && !ip.IsGlobalUnicast() {
		return Refuse("", "%s is a link-local or special address", text.Quote(address))
	}
	return nil
}
