package main

import (
	"fmt"
	"sync"

	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/registry"
)

// maxServerLog is how many log messages of a server are shown in one run
// without --verbose.
const maxServerLog = 50

// logLevel is the least level of messages that servers are asked for.
func (a *app) logLevel() string {
	switch {
	case a.globals.Verbose:
		return "debug"
	case a.globals.Quiet:
		return "error"
	}
	return "info"
}

// serverLog returns what shows log messages of one server: warnings and worse on
// stderr, the rest on the live line of a call or, with --verbose, on stderr too.
// With --quiet there is nothing.
func (a *app) serverLog() func(mcpclient.LogMessage) {
	var mu sync.Mutex
	shown := 0
	return func(m mcpclient.LogMessage) {
		severity := registry.SeverityInfo
		switch m.Level {
		case "warning", "error", "critical", "alert", "emergency":
			severity = registry.SeverityWarning
		case "debug", "info", "notice":
		default: // a word that the protocol does not have
			m.Level = "message"
		}
		if !a.wants(severity) {
			a.glimpse(m)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if shown++; shown > maxServerLog && !a.globals.Verbose {
			if shown == maxServerLog+1 {
				a.printLog(m.Server, registry.SeverityWarning, fmt.Sprintf("server %q logged more than %d messages; -v shows them all", m.Server, maxServerLog))
			}
			return
		}
		logger := ""
		if m.Logger != "" {
			logger = " (" + m.Logger + ")"
		}
		a.printLog(m.Server, severity, fmt.Sprintf("server %q logs %s%s: %s", m.Server, m.Level, logger, m.Text))
	}
}

// glimpse shows a message that is not worth keeping where a call is shown.
func (a *app) glimpse(m mcpclient.LogMessage) {
	if status := a.status.Load(); status != nil && m.Level != "debug" {
		status.Set(m.Server+" logs", m.Text)
	}
}

// printLog prints one message, however often it comes.
func (a *app) printLog(server string, severity registry.Severity, message string) {
	if resume := a.pauseStatus(); resume != nil {
		defer resume()
	}
	d := registry.Diagnostic{Severity: severity, Code: "server_log", Source: registry.MCPPrefix + server, Message: message}
	a.telling.Lock()
	defer a.telling.Unlock()
	if !a.globals.JSON {
		a.note(diagnosticLine(d))
	} else if line, err := encodeJSON(map[string]registry.Diagnostic{"diagnostic": d}); err == nil {
		a.note(string(line))
	}
}
