// Package storetest starts Redis for tests, and breaks it.
package storetest
