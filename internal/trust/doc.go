// Package trust remembers which projects a person lets run programs.
//
// A grant is tied to the project's root and to the exact bytes of every file
// that can make a program run: settings, the scripts they name, plugins. When
// one of them changes the grant is void, and the change can be shown (spec
// section 9). Package settings collects the files; the command line asks the
// person and calls [Store.Grant].
package trust
