package bot

// Weight says how much a finding matters.
type Weight string

// Weights of findings.
const (
	Good    Weight = "ok"
	Warning Weight = "warning" // a part of the bot does not work, or is unsafe
	Problem Weight = "problem" // the bot does not work
)

// Finding is one thing that was looked at in a platform's set-up, for footnote
// doctor.
type Finding struct {
	Weight Weight
	What   string // is the case
	Do     string // what to click or set, "" if nothing
}
