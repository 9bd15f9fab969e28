// stub is the cheapest MCP server over stdio: its answers are made before it is
// asked, and it looks at a message no closer than for its method and id.
//
//	stub [-tools N] [-schema BYTES] [-result BYTES] [-delay D] [-ignore]
package main

import (
	"bufio"
	"os"
	"time"

	"github.com/toolreg/toolreg/testdata/bench/messages"
)

func main() {
	s := messages.Parse(os.Args[1:])
	time.Sleep(s.Delay)
	in := bufio.NewReaderSize(os.Stdin, 1<<16)
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return
		}
		if answer := s.Answer(line); answer != nil {
			os.Stdout.Write(append(answer, '\n'))
		}
	}
}
