// Package console is the terminal as a platform: the people file that says
// who asks, and replies rendered as text.
//
// Its one idea: nothing that came from a document, a question or a file name
// reaches the terminal before Safe has seen it.
//
// It does not read the keyboard and knows no flags: the commands do that.
package console
