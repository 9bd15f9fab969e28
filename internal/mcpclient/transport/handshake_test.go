package transport

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const window = time.Second

const (
	modernResult = `{"supportedVersions":["2026-07-28"]}`
	legacyResult = `{"protocolVersion":"2025-06-18"}`
)

// said is what a server does about a method: its result after a while. Without
// one it never answers; "!" refuses.
type said struct {
	result string
	after  time.Duration
}

// pipe returns a Conn and the server's end of what it is over.
func pipe(t *testing.T, o Options) (*Conn, mcp.Connection) {
	t.Helper()
	near, far := mcp.NewInMemoryTransports()
	server, err := far.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	o.Logger = slog.New(slog.DiscardHandler)
	through := &Transport{Inner: near, Options: o}
	if _, err := through.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = through.Conn.Close()
		_ = server.Close()
		through.Conn.Wait()
	})
	return through.Conn, server
}

// connected returns a Conn, and what its server gets: a method a line.
func connected(t *testing.T, mode Mode, answers map[string]said) (*Conn, *strings.Builder) {
	t.Helper()
	c, server := pipe(t, Options{Mode: mode, ProbeWindow: window, InitializeParams: func() json.RawMessage { return json.RawMessage(`{"ours":true}`) }})
	ctx := context.WithoutCancel(t.Context())
	var got strings.Builder
	go func() {
		for {
			m, err := server.Read(ctx)
			if err != nil {
				return
			}
			r := m.(*jsonrpc.Request)
			fmt.Fprintln(&got, r.Method)
			a, ok := answers[r.Method]
			if !ok {
				continue
			}
			go func() {
				<-time.After(a.after)
				answer := &jsonrpc.Response{ID: r.ID, Result: json.RawMessage(a.result)}
				if a.result == "!" {
					answer.Result, answer.Error = nil, refusedHere("unknown method")
				}
				_ = server.Write(ctx, answer)
			}()
		}
	}()
	return c, &got
}

// request makes a request as the SDK does and returns its answer, and when that
// came.
func request(t *testing.T, c *Conn, id int64, method string, start time.Time) string {
	t.Helper()
	rid, err := jsonrpc.MakeID(float64(id))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Write(t.Context(), &jsonrpc.Request{ID: rid, Method: method, Params: json.RawMessage(`{}`)}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	m, err := c.Read(ctx)
	at := time.Since(start)
	switch r, _ := m.(*jsonrpc.Response); {
	case err != nil:
		return err.Error()
	case r.ID != rid:
		return fmt.Sprintf("an answer to %v", r.ID.Raw())
	case r.Error != nil:
		return fmt.Sprintf("%s: %v", at, r.Error)
	default:
		return fmt.Sprintf("%s: %s", at, r.Result)
	}
}

func TestHandshake(t *testing.T) {
	tests := []struct {
		name    string
		mode    Mode
		answers map[string]said
		sdk     []string // what the SDK gets for server/discover and, where that fails, for initialize
		server  string   // what the server gets
		result  string   // that counts
	}{
		{"modern", ModeAuto, map[string]said{"server/discover": {result: modernResult}},
			[]string{"0s: " + modernResult}, "server/discover\n", modernResult},
		{"legacy that refuses the probe", ModeAuto, map[string]said{"server/discover": {result: "!"}, "initialize": {result: legacyResult}},
			[]string{"0s: unknown method", "0s: " + legacyResult}, "server/discover\ninitialize\n", legacyResult},
		{"legacy that ignores the probe", ModeAuto, map[string]said{"initialize": {result: legacyResult}},
			[]string{"1s: initialize succeeded", "1s: " + legacyResult}, "server/discover\ninitialize\n", legacyResult},
		{"legacy that starts slowly", ModeAuto, map[string]said{"server/discover": {"!", 5 * time.Second}, "initialize": {legacyResult, 5 * time.Second}},
			[]string{"5s: unknown method", "6s: " + legacyResult}, "server/discover\ninitialize\n", legacyResult},
		{"modern that starts slowly and ignores initialize", ModeAuto, map[string]said{"server/discover": {result: modernResult, after: 3 * time.Second}},
			[]string{"4s: " + modernResult}, "server/discover\ninitialize\n", modernResult},
		{"modern that starts slowly and refuses initialize", ModeAuto, map[string]said{"server/discover": {modernResult, 3 * time.Second}, "initialize": {"!", 3 * time.Second}},
			[]string{"4s: " + modernResult}, "server/discover\ninitialize\n", modernResult},
		{"one that speaks both, slowly", ModeAuto, map[string]said{"server/discover": {modernResult, 3 * time.Second}, "initialize": {legacyResult, 2500 * time.Millisecond}},
			[]string{"3.5s: initialize succeeded", "3.5s: " + legacyResult}, "server/discover\ninitialize\n", legacyResult},
		{"modern alone is waited for", ModeModern, map[string]said{"server/discover": {modernResult, 20 * time.Second}},
			[]string{"20s: " + modernResult}, "server/discover\n", modernResult},
		{"modern alone is wanted", ModeModern, map[string]said{"server/discover": {result: "!"}},
			[]string{"0s: unknown method", "0s: the server does not speak revision 2026-07-28 or later"}, "server/discover\n", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, server := connected(t, tt.mode, tt.answers)
				start := time.Now()
				sdk := []string{request(t, c, 1, "server/discover", start)}
				if len(tt.sdk) > 1 {
					sdk = append(sdk, request(t, c, 2, "initialize", start))
				}
				synctest.Wait()
				if diff := cmp.Diff(tt.sdk, sdk); diff != "" {
					t.Errorf("the SDK (-want +got):\n%s", diff)
				}
				if got := server.String(); got != tt.server {
					t.Errorf("the server got %q, want %q", got, tt.server)
				}
				if got := string(c.HandshakeResult()); got != tt.result {
					t.Errorf("result %q, want %q", got, tt.result)
				}
			})
		})
	}
}

// A slow modern server that answers our initialize with nothing in particular is modern.
func TestProbeOutweighsEmptyInitialize(t *testing.T) {
	id := func(v any) jsonrpc.ID {
		id, err := jsonrpc.MakeID(v)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	for result, legacy := range map[string]bool{`{}`: false, `{"protocolVersion":"2025-11-25"}`: true} {
		h := &handshake{probeID: id("probe"), initializeID: id(initializeID)}
		h.initializeAnswer = &jsonrpc.Response{ID: h.initializeID, Result: json.RawMessage(result)}
		h.probeAnswer = &jsonrpc.Response{ID: h.probeID, Result: json.RawMessage(`{"supportedVersions":["2026-07-28"]}`)}
		if answer, _ := h.decide(); answer == nil || (answer.Error != nil) != legacy {
			t.Errorf("initialize gave %s: %+v", result, answer)
		}
	}
}
