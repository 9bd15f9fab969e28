//go:build !linux

package guards

import (
	"context"
	"time"
)

// isBornBefore is not needed without a report of the names that a program creates.
func isBornBefore(string, time.Time) bool { return false }

// born is not needed either.
func born(string) string { return "" }

// There are no logs, because they would be of little use without these names.

func (g *Guards) startLog() error { return nil }
func (g *Guards) endLog()         {}
func (g *Guards) keepLog()        {}
func (g *Guards) mark() error     { return nil }

func (t *Tree) cleanEarlier(context.Context) (c Cleaned, beside time.Time, err error) { return }

func isChangedAfter(string, time.Time) bool { return false }

func (g *Guards) noteRun(context.Context) error { return nil }

func clock() time.Time { return time.Now() }

// Uncleaned reports whether a folder is still to be cleaned; it is not known here.
func Uncleaned(string, string) bool { return false }

// Changes tells which files sandboxed programs may have changed; it is not known here.
type Changes struct{}

// ReadChanges returns an empty record.
func ReadChanges(string) Changes { return Changes{} }

// Accept does nothing.
func Accept(context.Context, string, []string, time.Time) error { return nil }

// None returns true.
func (Changes) None(string) bool { return true }

// Has returns false.
func (Changes) Has(string, bool) bool { return false }

// HasBelow returns false.
func (Changes) HasBelow(string) bool { return false }
