package tracing

import (
	"context"
	"slices"
	"strings"
	"testing"
)

const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

func handedOn(ctx context.Context) map[string]string {
	out := map[string]string{}
	Inject(ctx, func(name, value string) { out[name] = value })
	return out
}

func TestHandOn(t *testing.T) {
	for name, tt := range map[string]struct {
		given map[string]string
		want  map[string]string
	}{
		"all":                 {map[string]string{"traceparent": parent, "tracestate": "a=b", "baggage": "k=v"}, map[string]string{"traceparent": parent, "tracestate": "a=b", "baggage": "k=v"}},
		"none":                {nil, map[string]string{}},
		"baggage alone":       {map[string]string{"baggage": "k=v"}, map[string]string{"baggage": "k=v"}},
		"malformed parent":    {map[string]string{"traceparent": parent[:50], "tracestate": "a=b", "baggage": "k=v"}, map[string]string{"baggage": "k=v"}},
		"malformed state":     {map[string]string{"traceparent": parent, "tracestate": "="}, map[string]string{"traceparent": parent}},
		"zero id":             {map[string]string{"traceparent": "00-00000000000000000000000000000000-b7ad6b7169203331-01"}, map[string]string{}},
		"line end":            {map[string]string{"traceparent": parent + "\r\nX: y", "baggage": "k=v\nX: y"}, map[string]string{}},
		"malformed baggage":   {map[string]string{"traceparent": parent, "baggage": "no value"}, map[string]string{"traceparent": parent}},
		"baggage is too long": {map[string]string{"traceparent": parent, "baggage": "k=" + strings.Repeat("v", 8192)}, map[string]string{"traceparent": parent}},
	} {
		ctx := Extract(t.Context(), func(name string) string { return tt.given[name] })
		got := handedOn(ctx)
		if len(got) != len(tt.want) {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
		for k, v := range tt.want {
			if got[k] != v {
				t.Errorf("%s: %s is %q, want %q", name, k, got[k], v)
			}
		}
	}
}

func TestEnviron(t *testing.T) {
	given := []string{"A=1", "TRACEPARENT=" + parent, "BAGGAGE=k=v"}
	ctx := FromEnviron(t.Context(), given)
	if got := Environ(ctx, []string{"B=2"}); !slices.Equal(got, []string{"B=2", "TRACEPARENT=" + parent, "BAGGAGE=k=v"}) {
		t.Errorf("the child gets %q", got)
	}
	if got := Environ(t.Context(), given[:1]); !slices.Equal(got, given[:1]) {
		t.Errorf("without a trace the child gets %q", got)
	}
}

// BenchmarkOff is what a span costs if nothing is exported.
func BenchmarkOff(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		_, span := Start(b.Context(), Call, "execute_tool")
		span.Set("a", 1)
		span.End()
	}
}
