// Command toolreg combines all tools that an LLM agent may use in one registry:
// it lists them, declares them to model providers and runs them.
package main

import (
	"context"
	"io"
	"log"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/cli/commands"
)

// version is set by the linker for releases.
var version string

// delayFirstCollection lets the heap grow to 32 MiB before the first garbage
// collection, and to twice the live heap afterwards. Most runs end before that;
// a collection at the usual 4 MiB costs them about a tenth of their time.
func delayFirstCollection() {
	if os.Getenv("GOGC") != "" {
		return
	}
	debug.SetGCPercent(800) // of the 4 MiB that the runtime begins with
	marker := new([16]byte) // not tiny, because the collector may keep tiny objects for their neighbors
	runtime.AddCleanup(marker, func(percent int) { debug.SetGCPercent(percent) }, 100)
}

func main() { os.Exit(program(cli.NewStreams(os.Stdin, os.Stdout, os.Stderr))) }

func program(streams cli.Streams) (code int) {
	log.SetOutput(io.Discard) // net/http writes about odd peers there; what matters to a call is in its error
	delayFirstCollection()
	return commands.Program(version).Run(context.Background(), os.Args, streams, os.Environ())
}
