// Reference generates the manual from the commands' help, the table of settings
// and the pages in docs: man pages for "make man". It is a program of its own,
// so that the shipped binary has none of it.
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
		fmt.Fprintln(os.Stderr, "usage: reference [-version V] [-date D] man DIR")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() != 2 || flag.Arg(0) != "man" {
		flag.Usage()
		os.Exit(2)
	}
	if err := writeManual(flag.Arg(1), footer{*version, *date}); err != nil {
		fmt.Fprintln(os.Stderr, "reference:", err)
		os.Exit(1)
	}
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
