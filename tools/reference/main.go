// Reference generates the man pages ("make man") and the generated parts of the
// README and the pages in docs ("make docs") from the commands' help, the table of settings, the
// built-in tools and the source. It is a separate program, so that none of it is in the
// shipped binary.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	version := flag.String("version", "dev", "version of toolreg in the footer of each page")
	date := flag.String("date", "", "date in the footer of each page")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: reference [-version V] [-date D] man DIR | docs")
		flag.PrintDefaults()
	}
	flag.Parse()
	if err := run(flag.Args(), footer{*version, *date}); err != nil {
		fmt.Fprintln(os.Stderr, "reference:", err)
		os.Exit(1)
	}
}

func run(argv []string, f footer) error {
	switch {
	case len(argv) == 2 && argv[0] == "man":
		return writeManual(argv[1], f)
	case len(argv) == 1 && argv[0] == "docs":
		return writeReference(".")
	}
	flag.Usage()
	return flag.ErrHelp
}

// writeManual writes the man pages to a folder, in one folder per section.
func writeManual(dir string, f footer) error {
	pages, err := manual("docs", f)
	if err != nil {
		return err
	}
	for _, p := range pages {
		path := filepath.Join(dir, "man"+p.section, p.name+"."+p.section)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(p.text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
