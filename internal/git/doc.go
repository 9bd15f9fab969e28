// Package git reads what git itself would read before it runs programs: its configuration
// files, the folders of repositories and linked worktrees, and the hooks and files that
// these name. It never runs git, and it treats every repository as hostile.
package git
