package servecmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"

	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/serve"
	"github.com/toolreg/toolreg/internal/telemetry"
)

// metricsOn is the value of --metrics for the address of --http.
const metricsOn = "on"

func metricsOf(e *cli.Env, server *serve.Server) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var numbers telemetry.Numbers
		server.Measure(r.Context(), &numbers)
		e.Engine.WriteMetrics(w, r, &numbers)
	}
}

// serveMetrics serves the metrics on an address of their own, if --metrics gives one, until stop is
// called. An address that other machines can reach requires the tokens of clients.
func (o *options) serveMetrics(ctx context.Context, e *cli.Env,
	server *serve.Server, clients *serve.HTTP) (stop func(), err error) {
	if o.metrics == "" || o.metrics == metricsOn {
		return func() {}, nil
	}
	listener, err := listenOn(ctx, "--metrics", o.metrics)
	if err != nil {
		return nil, err
	}
	address, _ := listener.Addr().(*net.TCPAddr)
	handler := metricsOf(e, server)
	if address == nil || !address.IP.IsLoopback() {
		if clients == nil || o.noAuth {
			_ = listener.Close()
			return nil, cli.Usage("--metrics "+o.metrics+": other machines can reach the address, so it needs --http and tokens",
				"listen on 127.0.0.1")
		}
		handler = clients.WithToken(handler)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", handler)
	hs := serve.OwnServer(mux, address != nil && address.IP.IsLoopback())
	e.IO.Announce("metrics at http://%s/metrics", listener.Addr())
	go func() {
		if err := hs.Serve(listener); err != nil && !errors.Is(err, http.ErrServerClosed) {
			e.IO.Log.Warn("metrics are no longer served", "err", err)
		}
	}()
	return func() { _ = hs.Close() }, nil
}

// hostPort splits the address that a flag gives.
func hostPort(flag, address string) (host, port string, err error) {
	host, port, err = net.SplitHostPort(address)
	if err == nil {
		_, err = net.LookupPort("tcp", port)
	}
	if err != nil {
		return "", "", cli.Usage(fmt.Sprintf("%s %q: expected HOST:PORT", flag, address),
			"such as 127.0.0.1:8080; :8080 listens only on this machine")
	}
	return host, port, nil
}

// listenOn opens the address that a flag gives.
func listenOn(ctx context.Context, flag, address string) (net.Listener, error) {
	host, port, err := hostPort(flag, address)
	if err != nil {
		return nil, err
	}
	host = cmp.Or(host, "127.0.0.1")
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(host, port))
	if err != nil {
		return nil, fmt.Errorf("cannot listen: %w", err)
	}
	return listener, nil
}
