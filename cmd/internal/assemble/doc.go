// Package assemble turns a Config into connected parts. Every command and
// every end-to-end test gets its parts here, so that all run the same wiring.
//
// Its one idea: parts are opened in one order and closed in the reverse; a
// failure on the way closes what was opened.
//
// It reads no flags and prints nothing.
package assemble
