// Package trust stores which projects a person allows to run programs.
//
// A grant is tied to the project's root and to the exact bytes of every file
// that can cause a program to run: settings, the scripts they name, plugins. If
// one of them changes, the grant no longer applies, and the change can be shown
// (spec section 9). Package settings collects the files; the command line asks
// the person and calls [Store.Grant].
package trust
