//go:build unix

package main

import (
	"os"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/toolreg/toolreg/internal/store/storetest"
)

// redisCommand starts a server and sets REDIS to its address. After that the command does
// something with the server:
//
//	redis
//	redis kill|again|pause|continue
//	redis WORD...: sends a command of Redis and prints the answer
func redisCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: redis")
	}
	server := storetest.Start(scriptT{ts})
	ts.Setenv("REDIS", server.URL())
	ts.SetCmd("redis", func(ts *testscript.TestScript, neg bool, args []string) {
		switch {
		case neg || len(args) == 0:
			ts.Fatalf("usage: redis kill|again|pause|continue|WORD...")
		case args[0] == "kill":
			server.Kill()
		case args[0] == "again":
			server.Again()
		case args[0] == "pause":
			server.Pause()
		case args[0] == "continue":
			server.Continue()
		default:
			_, _ = ts.Stdout().Write([]byte(server.Do(args...) + "\n"))
		}
	})
}

// scriptT lets storetest use a script.
type scriptT struct{ *testscript.TestScript }

func (scriptT) Helper()             {}
func (t scriptT) Fatal(args ...any) { t.Fatalf("%v", args) }
func (t scriptT) Skip(args ...any)  { t.Fatalf("%v", args) }
func (t scriptT) Cleanup(f func())  { t.Defer(f) }
func (t scriptT) TempDir() string {
	dir, err := os.MkdirTemp(t.Getenv("WORK"), "redis")
	t.Check(err)
	return dir
}
