// Package state stores small files in the user's state and cache folders: approvals,
// trust, caches, the audit log.
//
// Every change reads the file, writes a new one and renames it while holding a
// lock that is released when its holder dies. Concurrent runs lose nothing, and
// a run that is killed leaves either the old or the new file. Files have mode
// 0600 in folders with mode 0700, regardless of the umask. All access goes
// through the opened folder, which must be a real folder that belongs to us.
//
// If something cannot be stored, the run continues: such errors wrap
// [ErrUnavailable], and the caller warns. The package imports no other package
// of this module.
package state
