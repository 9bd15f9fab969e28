// Package trust stores which projects a person has allowed to run programs.
//
// A grant applies to a project root and to the exact bytes of every file that can
// cause a program to run: settings, the scripts they name, and plugins. If one of
// them changes, the grant no longer applies, and the change can be shown. Package
// settings collects the files; the command line asks the person and calls
// [Store.Grant].
package trust
