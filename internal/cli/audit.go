package cli

import (
	"context"

	"github.com/toolreg/toolreg/internal/audit"
	"github.com/toolreg/toolreg/internal/engine/record"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
)

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
			Message: "skipped " + Counted(lines, "damaged line") + " of the audit log"})
	}
}
