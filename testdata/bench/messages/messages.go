// Package messages holds what the stubs of the benchmarks answer, ready to be
// sent. It imports nothing that costs at the start.
package messages

import (
	"bytes"
	"strconv"
	"strings"
	"time"
)

// Server is what a stub answers.
type Server struct {
	Delay  time.Duration // before the first answer; over HTTP before each
	Ignore bool          // answer nothing to methods it does not know
	Addr   string        // to listen at, over HTTP

	tools, schema, result int
}

// Parse reads flags, each -NAME VALUE; package flag would cost a tenth of a start.
func Parse(args []string) *Server {
	s := &Server{tools: 10, result: 10}
	for i := 0; i < len(args); i++ {
		if args[i] == "-ignore" {
			s.Ignore = true
			continue
		}
		value := args[i+1]
		n, _ := strconv.Atoi(value)
		switch args[i] {
		case "-tools":
			s.tools = n
		case "-schema":
			s.schema = n
		case "-result":
			s.result = n
		case "-delay":
			s.Delay, _ = time.ParseDuration(value)
		case "-http":
			s.Addr = value
		default:
			panic("unknown flag " + args[i])
		}
		i++
	}
	return s
}

// Answer returns the answer to a message, nil for none.
func (s *Server) Answer(message []byte) []byte {
	id := after(message, `"id":`)
	if id == nil {
		return nil
	}
	if end := bytes.IndexAny(id, ",}"); end >= 0 {
		id = id[:end]
	}
	out := append(append([]byte(`{"jsonrpc":"2.0","id":`), id...), ',')
	method, _, _ := bytes.Cut(after(message, `"method":"`), []byte(`"`))
	switch string(method) {
	case "initialize":
		return append(out, `"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"bench","version":"1"}}}`...)
	case "tools/list":
		return append(out, s.listing()...)
	case "tools/call":
		return append(append(append(out, `"result":{"content":[{"type":"text","text":"`...), strings.Repeat("x", s.result)...), `"}]}}`...)
	}
	if s.Ignore {
		return nil
	}
	return append(out, `"error":{"code":-32601,"message":"no such method"}}`...)
}

// after returns what stands behind key, which comes before the params in all that
// clients send.
func after(message []byte, key string) []byte {
	_, rest, ok := bytes.Cut(message, []byte(key))
	if !ok {
		return nil
	}
	return rest
}

func (s *Server) listing() []byte {
	param := `"param_":{"type":"string","description":"one of the params of it"}`
	var params []byte
	for j := range max(1, s.schema/80) {
		if j > 0 {
			params = append(params, ',')
		}
		params = append(params, strings.Replace(param, "_", "_"+strconv.Itoa(j), 1)...)
	}
	out := []byte(`"result":{"tools":[`)
	for i := range s.tools {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, `{"name":"tool_`+strconv.Itoa(i)+`","description":"Does things.","inputSchema":{"type":"object","properties":{`...)
		out = append(append(out, params...), `}}}`...)
	}
	return append(out, `]}}`...)
}
