package cli

import (
	"context"
	"net/http"

	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/settings/values"
	"github.com/toolreg/toolreg/internal/telemetry"
)

// startTelemetry starts to export what the run does, once.
func (x *Engine) startTelemetry(ctx context.Context, set *settings.Settings) error {
	if x.exporter != nil {
		return nil
	}
	headers, err := values.NewExpander(set.ProjectRoot, x.config.Environ).Headers(ctx, set.Telemetry.Headers)
	if err != nil {
		return &UsageError{Err: err}
	}
	o := telemetry.Options{Endpoint: set.Telemetry.Endpoint, Headers: map[string]string{}, Getenv: x.config.Getenv, Version: x.version, Scrape: x.Scrape, Log: x.io.Log, Warn: func(message string) {
		x.io.Warn(registry.Diagnostic{Severity: registry.SeverityWarning, Code: "telemetry", Message: message})
	}}
	for _, h := range headers {
		o.Headers[h.Name] = h.Value
	}
	x.exporter = telemetry.Start(ctx, o)
	return nil
}

// endTelemetry sends what is left, even if ctx has ended.
func (x *Engine) endTelemetry(ctx context.Context) {
	if err := x.exporter.Close(context.WithoutCancel(ctx)); err != nil {
		x.io.Log.Debug("exporting telemetry", "err", err)
	}
}

// WriteMetrics answers a request for the metrics, for Prometheus.
func (x *Engine) WriteMetrics(w http.ResponseWriter, r *http.Request, numbers *telemetry.Numbers) {
	w.Header().Set("Content-Type", telemetry.PrometheusType)
	if err := x.exporter.WritePrometheus(r.Context(), w, numbers); err != nil {
		http.Error(w, "the metrics cannot be collected", http.StatusInternalServerError)
	}
}
