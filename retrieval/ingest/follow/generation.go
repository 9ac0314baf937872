package follow

import "footnote/retrieval/ingest"

// tellGeneration logs what a pass made of the generations: once for each reason
// why a new one is not in use. The caller holds mu.
func (l *Loop) tellGeneration(r ingest.Report) {
	if r.Replaced != "" {
		l.o.Log.Warn("the index was made otherwise than the configuration says, and was replaced: if this happens again and again, other processes have another configuration", "was", r.Replaced, "is", r.Generation)
	}
	if r.Withheld != "" && r.Withheld != l.said {
		l.o.Log.Warn("a new generation is not in use", "generation", r.Generation, "why", r.Withheld)
	}
	if l.said != r.Withheld && (r.Withheld != "" || r.Promoted) {
		l.said = r.Withheld
	}
}
