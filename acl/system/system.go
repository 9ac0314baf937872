// Package system is the one bypass of the access lists. It serves ingestion
// and the operator's own commands, which must see every document to count,
// verify and remove it. Only retrieval/ingest, cmd and tests import it (a test
// enforces that), so every use is found with one grep.
package system

import (
	"footnote/acl"
	"footnote/acl/internal/bypass"
)

// Grant admits every document that has an access list.
//
// SECURITY: never pass it to anything that answers a person.
func Grant() acl.Grant { return acl.Bypass(bypass.Token{}) }
