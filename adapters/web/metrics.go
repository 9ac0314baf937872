package web

import (
	"context"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"footnote/bot/desk"
	"footnote/bot/ledger"
	"footnote/bot/outbox"
	"footnote/retrieval/catalog"
	"footnote/retrieval/ingest/follow"
)

// Gathered is where metrics come from; nil ones are left out.
type Gathered struct {
	Desk   func() desk.Health
	Ledger func(ctx context.Context) (map[ledger.State]int, error)
	Outbox map[string]func() outbox.Health // by platform
	// Documents counts the catalog by state.
	Documents func() map[catalog.State]int
	// Levels and Sources are those of the loop that keeps up with the sources.
	Levels  func() []follow.Level
	Sources func() []follow.Status
}

// Metrics serves /metrics from a registry of its own. Labels are names of
// platforms, states, routes and sources of the configuration, never anything that came with a request.
type Metrics struct {
	registry *prometheus.Registry
	http     http.Handler
	requests *prometheus.CounterVec
	took     *prometheus.HistogramVec
}

// NewMetrics makes metrics of what is gathered, of requests and of the
// process.
func NewMetrics(g Gathered) *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "footnote_http_requests_total", Help: "HTTP requests answered.",
		}, []string{"route", "code"}),
		took: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "footnote_http_request_seconds", Help: "Time to answer an HTTP request.", Buckets: []float64{.005, .02, .1, .3, .5, 1, 3, 10},
		}, []string{"route"}),
	}
	m.registry.MustRegister(m.requests, m.took, gatherer(g), collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.http = promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
	return m
}

// Register adds a collector of the caller's.
func (m *Metrics) Register(c prometheus.Collector) error { return m.registry.Register(c) }

func (m *Metrics) ServeHTTP(w http.ResponseWriter, r *http.Request) { m.http.ServeHTTP(w, r) }

func (m *Metrics) request(route, code string, took time.Duration) {
	m.requests.WithLabelValues(route, code).Inc()
	m.took.WithLabelValues(route).Observe(took.Seconds())
}

// gatherer is what the parts of the program say of themselves, as metrics.
type gatherer Gathered

// desc describes a metric of a part.
func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("footnote_"+name, help, labels, nil)
}

var (
	waitingDesc   = desc("questions_waiting", "Questions that wait.")
	runningDesc   = desc("questions_running", "Questions that are worked on.")
	oldestDesc    = desc("questions_oldest_seconds", "Wait of the question that has waited longest.")
	resumedDesc   = desc("questions_resumed_total", "Questions taken over from an earlier or another process.")
	panicsDesc    = desc("handler_panics_total", "Panics of handlers.")
	receivedDesc  = desc("deliveries_received_total", "Deliveries of questions.", "platform")
	endedDesc     = desc("deliveries_turned_away_total", "Deliveries that were not taken as a question.", "platform", "why")
	lastDesc      = desc("deliveries_last_timestamp_seconds", "Time of the latest delivery.", "platform")
	ackDesc       = desc("deliveries_ack_p99_seconds", "Time until a delivery could be acknowledged, 99th percentile of the latest.", "platform")
	ledgerDesc    = desc("ledger_deliveries", "Deliveries in the ledger.", "state")
	outWaitDesc   = desc("outbox_waiting", "Calls to the platform that wait.", "platform")
	outLimitDesc  = desc("outbox_limited_total", "Calls that the platform refused for their rate.", "platform")
	outFullDesc   = desc("outbox_full_total", "Calls not made because too many waited.", "platform")
	documentsDesc = desc("documents", "Documents in the catalog.", "state")
	changesDesc   = desc("changes_total", "Changes of the sources that came in force since the start.", "kind")
	tookDesc      = desc("change_seconds", "Time from a change of a source until it was in force in search and in source opening, since the start.", "kind", "quantile")
	heldDesc      = desc("source_held", "Documents that are missing from a source and were not removed, being too many at once.", "source")
	scannedDesc   = desc("source_scanned_timestamp_seconds", "Start of the last full pass over a source.", "source")
	failingDesc   = desc("source_failing", "1 if the last pass over a source failed as a whole.", "source")
	allGatherings = []*prometheus.Desc{
		documentsDesc, changesDesc, tookDesc, heldDesc, scannedDesc, failingDesc,
		waitingDesc, runningDesc, oldestDesc, resumedDesc, panicsDesc, receivedDesc, endedDesc, lastDesc, ackDesc,
		ledgerDesc, outWaitDesc, outLimitDesc, outFullDesc,
	}
)

// Describe implements prometheus.Collector.
func (g gatherer) Describe(out chan<- *prometheus.Desc) {
	for _, d := range allGatherings {
		out <- d
	}
}

// sink sends metrics.
type sink chan<- prometheus.Metric

func (s sink) gauge(d *prometheus.Desc, v float64, labels ...string) {
	s <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
}

func (s sink) counter(d *prometheus.Desc, n int, labels ...string) {
	s <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
}

// Collect implements prometheus.Collector.
func (g gatherer) Collect(out chan<- prometheus.Metric) {
	s := sink(out)
	if g.Desk != nil {
		s.desk(g.Desk())
	}
	if g.Ledger != nil {
		counts, err := g.Ledger(context.Background())
		if err != nil {
			out <- prometheus.NewInvalidMetric(ledgerDesc, err)
		}
		for state, n := range counts {
			s.gauge(ledgerDesc, float64(n), string(state))
		}
	}
	g.documents(s)
	for platform, health := range g.Outbox {
		h := health()
		s.gauge(outWaitDesc, float64(h.Waiting), platform)
		s.counter(outLimitDesc, h.Limited, platform)
		s.counter(outFullDesc, h.Full, platform)
	}
}

// documents tells of the catalog and the sources.
func (g gatherer) documents(s sink) {
	if g.Documents != nil {
		for state, n := range g.Documents() {
			s.gauge(documentsDesc, float64(n), string(state))
		}
	}
	if g.Levels != nil {
		for _, l := range g.Levels() {
			s.counter(changesDesc, l.Count, string(l.Kind))
			if l.Count > 0 {
				s.gauge(tookDesc, l.P50.Seconds(), string(l.Kind), "0.5")
				s.gauge(tookDesc, l.P95.Seconds(), string(l.Kind), "0.95")
			}
		}
	}
	if g.Sources != nil {
		for _, st := range g.Sources() {
			s.source(st)
		}
	}
}

func (s sink) source(st follow.Status) {
	held, failing := 0, 0
	if st.Held != nil {
		held = st.Held.Missing
	}
	if st.Error != "" {
		failing = 1
	}
	s.gauge(heldDesc, float64(held), st.Source)
	s.gauge(failingDesc, float64(failing), st.Source)
	if !st.Scanned.IsZero() {
		s.gauge(scannedDesc, float64(st.Scanned.UnixMilli())/1000, st.Source)
	}
}

func (s sink) desk(h desk.Health) {
	s.gauge(waitingDesc, float64(h.Waiting))
	s.gauge(runningDesc, float64(h.Running))
	s.gauge(oldestDesc, h.Oldest.Seconds())
	s.counter(resumedDesc, h.Resumed)
	s.counter(panicsDesc, h.Panics)
	for platform, in := range h.Platforms {
		s.counter(receivedDesc, in.Received, platform)
		s.counter(endedDesc, in.Duplicates, platform, "duplicate")
		s.counter(endedDesc, in.Shed, platform, "busy")
		s.counter(endedDesc, in.Stale, platform, "stale")
		s.counter(endedDesc, in.Errors, platform, "error")
		s.gauge(ackDesc, in.AckP99.Seconds(), platform)
		if !in.Last.IsZero() {
			s.gauge(lastDesc, float64(in.Last.UnixMilli())/1000, platform)
		}
	}
}
