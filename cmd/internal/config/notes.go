package config

// Notes has a chat model say of each chunk what it is about, when it is
// ingested. Off unless URL is set. The key comes from the environment: ChatKey.
type Notes struct {
	URL         string // base address of an OpenAI-compatible server, with its /v1
	Model       string // as the server names it
	PerRun      int    // requests of one ingest, or one pass of serve; 0: no bound
	Concurrency int    // requests at once
}

// chatKey is the variable of the key that chat models are asked with.
const chatKey = "FOOTNOTE_CHAT_KEY"

var defaultNotes = Notes{PerRun: 1000, Concurrency: 4}

func (n *Notes) settings() []setting {
	return []setting{
		address("notes.url", &n.URL),
		{path: "notes.model", accepts: "the name of a model, as its server has it", set: func(v, _ string) error { n.Model = v; return nil }},
		whole("notes.requests", &n.PerRun, 0, 100_000_000),
		whole("notes.concurrency", &n.Concurrency, 1, 64),
	}
}

// check finds what is missing beside the others.
func (n Notes) check(p *Problems) {
	switch {
	case n.URL != "" && n.Model == "":
		p.add("notes.model", "is not set, and notes.url is", "the name of a model, as its server has it")
	case n.URL == "" && n.Model != "":
		p.add("notes.url", "is not set, and notes.model is", "the address of the server, for example http://127.0.0.1:8000/v1")
	}
}

// ChatKey is the key that chat models are asked with, zero for none.
func ChatKey(env Lookup) (Secret, error) { return LookupSecret(chatKey, env) }
