package doctree

// Facts are what extraction knows of a document beyond its text. The zero
// value says nothing: the format has no pages, and all of it was read.
type Facts struct {
	Unit       string   `json:"unit,omitempty"`       // what is counted: page, slide, sheet, part; "" nothing is
	Total      int      `json:"total,omitempty"`      // units that the source has
	Covered    int      `json:"covered,omitempty"`    // of them, those that were read; one that is truly empty counts as read
	Recognised int      `json:"recognised,omitempty"` // of the covered, those read by text recognition
	Confidence int      `json:"confidence,omitempty"` // of recognition, 0 to 100, mean over the recognised
	Hidden     []string `json:"hidden,omitempty"`     // sheets and slides left out because the source hides them
}
