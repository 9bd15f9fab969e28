// Package state keeps small files in the user's state and cache directories:
// approvals, trust, caches, the audit log (spec section 10).
//
// Every change is a read, a new file and a rename under a lock that dies with
// its holder: concurrent runs lose nothing, and a run that is killed leaves the
// old file or the new one. Files are 0600 in 0700 directories, whatever the
// umask. All access goes through the opened directory, which must be a real
// directory of ours.
//
// What cannot be kept does not stop a run: such errors wrap [ErrUnavailable],
// and the caller warns and goes on. The package imports no other package of
// this module.
package state
