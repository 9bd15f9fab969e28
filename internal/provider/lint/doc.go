// Package lint reports parts of declarations that a provider would reject or
// ignore, or that cost more than necessary. It encodes declarations with package
// provider and checks the result.
package lint
