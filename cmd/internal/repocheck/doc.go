// Package repocheck holds tests of the repository itself: which package may
// import which, where third-party libraries live, that every package says
// what it does, and that no tracked file holds a path of one machine or the
// host of a package registry.
//
// Its one idea: what the design says about the tree is a table that a test
// reads, so that breaking it is a failing test and not an opinion.
package repocheck
