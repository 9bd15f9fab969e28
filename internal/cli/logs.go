package cli

import (
	"context"
	"fmt"
	"sync"

	"github.com/toolreg/toolreg/internal/audit"
	"github.com/toolreg/toolreg/internal/engine/record"
	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/text"
)

// maxServerLog is how many log messages of a server one run shows without
// --verbose.
const maxServerLog = 50

// logLevel returns the lowest level of log messages that is requested from servers.
func (o *IO) logLevel() string {
	switch {
	case o.Verbose:
		return "debug"
	case o.Quiet:
		return "error"
	}
	return "info"
}

// serverLog returns a function that creates the log handler of a server. The handler
// prints warnings and above on stderr. It shows the rest on the live line of a call or,
// with infos or --verbose, prints it on stderr too. With --quiet it shows nothing.
func (o *IO) serverLog(infos bool) func() func(mcpclient.LogMessage) {
	return func() func(mcpclient.LogMessage) {
		l := &serverLog{io: o, infos: infos && !o.Quiet}
		return l.show
	}
}

// serverLog shows the log messages of one server.
type serverLog struct {
	io    *IO
	infos bool

	mu    sync.Mutex
	shown int
}

func (l *serverLog) show(m mcpclient.LogMessage) {
	o, severity := l.io, registry.SeverityInfo
	switch m.Level {
	case "warning", "error", "critical", "alert", "emergency":
		severity = registry.SeverityWarning
	case "debug", "info", "notice":
	default: // a level that the protocol does not define
		m.Level = "message"
	}
	if !o.shows(severity) && !l.infos {
		if m.Level != "debug" { // shown only during a call
			o.Screen.Line(m.Server+" logs", m.Text)
		}
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.shown++; l.shown > maxServerLog && !o.Verbose {
		if l.shown == maxServerLog+1 {
			l.print(m.Server, registry.SeverityWarning,
				fmt.Sprintf("server %q logged more than %d messages; use -v to see them all", m.Server, maxServerLog))
		}
		return
	}
	logger := ""
	if m.Logger != "" {
		logger = " (" + m.Logger + ")"
	}
	l.print(m.Server, severity, fmt.Sprintf("server %q logs %s%s: %s", m.Server, m.Level, logger, m.Text))
}

func (l *serverLog) print(server string, severity registry.Severity, message string) {
	defer l.io.Screen.Pause()()
	l.io.noteDiagnostic(registry.Diagnostic{Severity: severity,
		Code: "server_log", Source: registry.MCPPrefix + server, Message: message})
}

// Audit opens the audit log.
func (c *Config) Audit(ctx context.Context) (*audit.Log, error) {
	set, err := c.Settings(ctx)
	if err != nil {
		return nil, err
	}
	return record.OpenLog(c.Folders, set.Audit)
}

// ScanAudit visits every entry of the log of the settings, oldest first.
func (c *Config) ScanAudit(ctx context.Context, set *settings.Settings, visit func(*audit.Entry)) error {
	log, err := record.OpenLog(c.Folders, set.Audit)
	if err != nil {
		return err
	}
	damaged, err := log.Scan(ctx, audit.ScanOptions{}, func(entry audit.Entry) error {
		visit(&entry)
		return context.Cause(ctx)
	})
	c.io.WarnDamagedAudit(damaged)
	return err
}

// WarnDamagedAudit warns about unreadable lines of the log, if there are any.
func (o *IO) WarnDamagedAudit(lines int) {
	if lines > 0 {
		o.Warn(registry.Diagnostic{Severity: registry.SeverityWarning, Code: "audit_damaged",
			Message: "skipped " + text.Count(lines, "damaged line") + " of the audit log"})
	}
}
