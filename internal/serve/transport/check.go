package transport

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/mcpclient/wire"
	"github.com/toolreg/toolreg/internal/text"
)

// Refusal is why a request goes no further, and the answer to it.
type Refusal struct {
	Status     int
	Reason     string
	RetryAfter int             // in seconds. Zero means that the client is not told to try again
	Code       int64           // of the JSON-RPC error that is the answer. Zero means that it is the Reason
	ID         json.RawMessage // of the message that has a JSON-RPC error
}

func (r *Refusal) Error() string { return r.Reason }

// ErrNoSession refuses a request of a session that has ended, or is not that of its sender.
var ErrNoSession error = &Refusal{Status: http.StatusNotFound, Reason: "session not found"}

// Refuse answers a request that goes no further. An error other than a [Refusal] means that the request cannot
// be handled now, but may be in a moment.
func Refuse(w http.ResponseWriter, err error) {
	no, ok := errors.AsType[*Refusal](err)
	if !ok {
		no = &Refusal{Status: http.StatusServiceUnavailable, Reason: err.Error(), RetryAfter: 1}
	}
	if no.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(no.RetryAfter))
	}
	if no.Code == 0 {
		http.Error(w, no.Reason, no.Status)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(no.Status)
	_ = json.NewEncoder(w).Encode(map[string]any{"jsonrpc": "2.0", "id": no.ID,
		"error": jsonrpc.Error{Code: no.Code, Message: no.Reason}})
}

// badRequest refuses a request that is malformed.
func badRequest(err error) error { return &Refusal{Status: http.StatusBadRequest, Reason: err.Error()} }

// CheckBody returns an error if there is not exactly one JSON value, of which the SDK would
// read the first, or if a message, or one of a batch, fails [checkMessage]. Otherwise it makes each
// message what [mendEmpty] says, in place.
func CheckBody(body json.RawMessage) error {
	if err := jsonx.Check(body, jsonx.Options{}); err != nil {
		return badRequest(err)
	}
	for _, message := range Messages(body) {
		if err := checkMessage(message); err != nil {
			return badRequest(err)
		}
		mendEmpty(message)
	}
	return nil
}

// mendEmpty makes an empty object of each empty list where the protocol has objects alone. Clients in PHP
// cannot tell the two apart.
func mendEmpty(message json.RawMessage) {
	params := jsonx.Get(message, "params")
	capabilities := jsonx.Get(params, "capabilities")
	objects := []json.RawMessage{params, jsonx.Get(params, "_meta"), jsonx.Get(params, "arguments"), capabilities}
	for _, capability := range jsonx.Members(capabilities) {
		objects = append(objects, capability)
	}
	for _, object := range objects {
		if jsonx.IsEmptyList(object) {
			object[0], object[len(object)-1] = '{', '}'
		}
	}
}

// Messages returns the message of a body, or those of the batch.
func Messages(body json.RawMessage) []json.RawMessage {
	if batch, ok := jsonx.Elements(body); ok {
		return batch
	}
	return []json.RawMessage{body}
}

// checkMessage returns an error if a message could be understood in two ways, or has an
// id that the SDK would change.
func checkMessage(message json.RawMessage) error {
	params := jsonx.Get(message, "params")
	for _, object := range []json.RawMessage{message, params, jsonx.Get(params, "_meta")} {
		seen := map[string]bool{}
		for name := range jsonx.Members(object) {
			if seen[name] {
				return fmt.Errorf("it has the member %s twice", text.Quote(name))
			}
			seen[name] = true
		}
	}
	const most = 1<<53 - 1 // the SDK reads ids as float64 and drops fractions, so the response would have another id
	if id := jsonx.Get(message, "id"); jsonx.KindOf(id) == jsonx.Number && jsonx.Get(message, "method") != nil {
		if n, err := strconv.ParseInt(string(id), 10, 64); err != nil || n < -most || n > most {
			return errors.New("the id of a request must be a string, or an integer between -(2^53-1) and 2^53-1")
		}
	}
	return nil
}

// NameOf returns the header Mcp-Name, decoded.
func NameOf(h http.Header) string { return wire.DecodeHeader(h.Get("Mcp-Name")) }

// CheckHeaders rejects requests that a proxy in front of the server may have interpreted
// differently.
func CheckHeaders(r *http.Request) error {
	for name, values := range r.Header {
		if len(values) > 1 && (name == "Content-Type" || strings.HasPrefix(name, "Mcp-")) {
			return badRequest(fmt.Errorf("the header %s is given more than once", name))
		}
	}
	return nil
}

// CheckOrigin rejects requests from web pages of other origins, and requests for a host
// whose name was made to resolve to this machine (DNS rebinding) if loopback
// says that only this machine can reach the server.
func CheckOrigin(r *http.Request, loopback bool) error {
	if loopback && !IsLoopback(r.Host) {
		return errors.New("this server accepts only requests for localhost")
	}
	for _, origin := range r.Header.Values("Origin") {
		u, err := url.Parse(origin)
		if err != nil || u.Host != r.Host {
			return errors.New("requests from web pages of other origins are refused")
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
