// Package tracing carries the trace of a request on to those who take part in it, as in W3C
// Trace Context and Baggage, and makes spans for a provider of OpenTelemetry. Without a
// provider there are no spans, and the trace is handed on unchanged.
package tracing

import (
	"context"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// The names of what is handed on, as in HTTP headers and in _meta of MCP.
func names() []string { return []string{"traceparent", "tracestate", "baggage"} }

// Extract returns a context with the trace that get has by these names. What is malformed
// or too long is dropped. Without a trace it returns ctx.
func Extract(ctx context.Context, get func(name string) string) context.Context {
	carrier := propagation.MapCarrier{}
	for _, name := range names() {
		if value := get(name); value != "" {
			carrier[name] = value
		}
	}
	if len(carrier) == 0 {
		return ctx
	}
	return propagation.Baggage{}.Extract(propagation.TraceContext{}.Extract(ctx, carrier), carrier)
}

// Inject calls set with what the context has to hand on.
func Inject(ctx context.Context, set func(name, value string)) {
	if !trace.SpanContextFromContext(ctx).IsValid() && baggage.FromContext(ctx).Len() == 0 {
		return
	}
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	propagation.Baggage{}.Inject(ctx, carrier)
	for _, name := range names() {
		if value := carrier[name]; value != "" {
			set(name, value)
		}
	}
}

// FromEnviron is Extract from the variables of a process, "K=V".
func FromEnviron(ctx context.Context, environ []string) context.Context {
	return Extract(ctx, func(name string) string {
		for _, entry := range environ {
			if value, ok := strings.CutPrefix(entry, strings.ToUpper(name)+"="); ok {
				return value
			}
		}
		return ""
	})
}

// Environ returns the variables of a child, with those that hand on the trace.
func Environ(ctx context.Context, environ []string) []string {
	added := false
	Inject(ctx, func(name, value string) {
		if !added {
			environ, added = slices.Clip(environ), true
		}
		environ = append(environ, strings.ToUpper(name)+"="+value)
	})
	return environ
}
