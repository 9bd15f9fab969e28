package servecmd

import (
	"context"
	"errors"
	"io"
	"net/http"
	"path/filepath"

	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/cli/auditcmd"
	"github.com/toolreg/toolreg/internal/cli/listcmd"
	"github.com/toolreg/toolreg/internal/console"
	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/engine/sources"
	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/openapi"
	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/serve"
	"github.com/toolreg/toolreg/internal/text"
	"github.com/toolreg/toolreg/internal/ui/page"
)

// newConsole returns the console; nil without --console.
func (o *options) newConsole(e *cli.Env) (*console.Console, error) {
	switch {
	case !o.console:
		return nil, nil
	case process.InsideTool(e.Config.Environ):
		return nil, &registry.Failure{Kind: registry.ErrDenied,
			Text: "--console: this server was started by a tool, which could answer questions about its own calls there"}
	}
	return console.New(), nil
}

func serversOf(server *serve.Server) (out []console.Server) {
	_ = server.Current(func(s *engine.Session, reg *registry.Registry) error { // without tools it shows none
		on, off, err := s.Servers.Named()
		if err != nil {
			return err
		}
		for _, info := range sources.Infos(reg, on, off) {
			out = append(out,
				console.Server{
					Name:   info.Name,
					State:  string(info.State),
					Error:  info.Error,
					Tools:  info.Tools,
					Starts: info.State != mcpclient.StateDisabled,
				})
		}
		for _, api := range s.Servers.APIs() {
			one := console.Server{Name: api.Settings().Name, State: "API",
				Tools: len(reg.ByServer(api.Settings().Name))}
			if info := api.Info(); info.State == openapi.Failed {
				one.State, one.Error = string(mcpclient.StateFailed), info.Err.Error()
			}
			out = append(out, one)
		}
		return nil
	})
	return out
}

// restart starts a server again whose name is exactly this one.
func restart(ctx context.Context, server *serve.Server, name string) error {
	if text.IsGlob(name) {
		return errors.New("there is no such server")
	}
	return server.Restart(ctx, name)
}

func loginPage(w io.Writer, p serve.LoginPage) { _ = page.WriteLogin(w, page.Login(p)) } // the browser may be gone

func pages(e *cli.Env, server *serve.Server, c *console.Console) *serve.ConsolePages {
	title := filepath.Base(e.Config.Dir)
	mux := http.NewServeMux()
	html := func(path string, write func(*http.Request) ([]byte, error)) {
		mux.HandleFunc("GET "+serve.ConsolePath+path, func(w http.ResponseWriter, r *http.Request) {
			data, err := write(r)
			if err != nil {
				http.Error(w, err.Error(), http.StatusUnprocessableEntity)
				return
			}
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = w.Write(data)
		})
	}
	html("/charts", func(r *http.Request) (data []byte, err error) {
		err = server.Current(func(s *engine.Session, _ *registry.Registry) error {
			if !s.Settings.Audit.Enabled {
				return errors.New("the charts are drawn from the audit log, which the settings disable (audit.enabled)")
			}
			data, err = auditcmd.Charts(r.Context(), e, s.Settings, r.URL.Query().Get("since"))
			return err
		})
		return data, err
	})
	html("/tools", func(r *http.Request) (data []byte, err error) {
		err = server.Current(func(s *engine.Session, reg *registry.Registry) error {
			data, err = listcmd.Page(r.Context(), e, s, reg)
			return err
		})
		return data, err
	})
	mux.HandleFunc("GET "+serve.ConsolePath+"/{$}", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, serve.ConsolePath, http.StatusSeeOther)
	})
	mux.HandleFunc("GET "+serve.ConsolePath, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_ = page.WriteConsole(w, title, e.Version, serve.ConsolePath, []page.Link{
			{Text: "Tools and their cost", Path: serve.ConsolePath + "/tools"},
			{Text: "Charts: 24 hours", Path: serve.ConsolePath + "/charts?since=24h"},
			{Text: "7 days", Path: serve.ConsolePath + "/charts?since=7d"},
			{Text: "30 days", Path: serve.ConsolePath + "/charts?since=30d"},
		})
	})
	mux.Handle(serve.ConsolePath+"/", c.Handler(serve.ConsolePath, console.Options{
		Servers: func() []console.Server { return serversOf(server) },
		Restart: func(ctx context.Context, name string) error { return restart(ctx, server, name) },
		Visitor: serve.Visitor, Stopping: server.Stopping(), Log: e.IO.Log,
	}))
	return &serve.ConsolePages{
		SignIn: func(w http.ResponseWriter, reason string) {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			if reason != "" {
				w.WriteHeader(http.StatusForbidden)
			}
			_ = page.WriteSignIn(w, title, serve.ConsolePath, reason)
		},
		Signed: mux,
	}
}
