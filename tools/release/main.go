// Command release writes what packages of toolreg contain in addition to the program: the
// licenses of all linked modules, and a bill of materials for a binary. It is a separate
// module, so that the program does not depend on its libraries. Run it in the repository.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
)

const usage = `usage: release licenses                  write the licenses of all linked modules to stdout
       release sbom [-version V] [-o FILE] BINARY
                                         write the CycloneDX document of a binary`

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	if len(args) == 0 {
		return errors.New(usage)
	}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	version := flags.String("version", "", "the version of toolreg")
	file := flags.String("o", "", "where to write; stdout if not given")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	switch {
	case args[0] == "licenses" && flags.NArg() == 0:
		modules, err := linkedModules("linux", "darwin", "windows")
		if err != nil {
			return err
		}
		return writeLicenses(out, modules)
	case args[0] == "sbom" && flags.NArg() == 1:
		var document bytes.Buffer
		if err := writeSBOM(&document, flags.Arg(0), *version); err != nil {
			return err
		}
		if *file != "" {
			return os.WriteFile(*file, document.Bytes(), 0o644)
		}
		_, err := document.WriteTo(out)
		return err
	}
	return errors.New(usage)
}
