package slacktest

import (
	"encoding/json"
	"net/http"
	"time"

	"footnote/adapters/fakeserver"
)

// Fault spoils calls of a route. Exactly the calls are hit that match Route,
// Channel and either Calls or Chance. Several faults may be set; the first
// that hits a call wins.
type Fault struct {
	Route   string           // method name; "" for every route
	Channel string           // only calls that name this channel
	Calls   func(n int) bool // n counts matching calls from 1; nil: every call
	Chance  float64          // when > 0, the share of calls that are hit

	Latency time.Duration // on the server's clock, before anything else

	// Before processing: the call has no effect.
	Status      int    // 429, 500, 503, ...; 0: 200
	RetryAfter  string // header as given, "" for none
	Body        string // raw body, for example HTML; "" for a JSON error
	Error       string // ok:false with this code
	EmptyError  bool   // ok:false without a code
	ResetBefore bool   // connection reset

	// After processing: the call took effect.
	ResetAfter bool // connection reset
	FailAfter  bool // 500 after all
	Truncate   bool // half of the JSON
	Malformed  bool // not JSON
}

// Nth hits only the n-th call.
func Nth(n int) func(int) bool { return fakeserver.Nth(n) }

// First hits the first n calls.
func First(n int) func(int) bool { return fakeserver.First(n) }

// AddFault sets a fault; the function returned takes it away.
func (s *Server) AddFault(f Fault) (remove func()) {
	return s.faults.Add(f, fakeserver.Trigger{Calls: f.Calls, Chance: f.Chance})
}

// fault finds what hits this call, or nil; the caller holds s.mu.
func (s *Server) fault(route string, args map[string]string) *Fault {
	channel := args["channel"] + args["channel_id"]
	return s.faults.Hit(s.rng, func(f *Fault) bool {
		return (f.Route == "" || f.Route == route) && (f.Channel == "" || f.Channel == channel)
	})
}

// before applies what comes before processing; false: the call is over.
func (s *Server) before(w http.ResponseWriter, r *http.Request, c *call, f *Fault) bool {
	if f == nil {
		return true
	}
	c.req.Faulted = true
	s.Delay(r, f.Latency)
	if f.ResetBefore {
		s.spoil(c, 0, errReset.Error())
		fakeserver.Reset(w)
		return false
	}
	if f.Status == 0 && f.Body == "" && f.Error == "" && !f.EmptyError {
		return true
	}
	status := max(f.Status, http.StatusOK)
	body := f.Body
	if body == "" {
		o := reply{"ok": false}
		if f.Error != "" {
			o["error"] = f.Error
		} else if status == http.StatusTooManyRequests {
			o["error"] = "ratelimited"
		}
		b, _ := json.Marshal(o)
		body = string(b)
	}
	s.spoil(c, status, "fault: "+f.Error)
	if f.RetryAfter != "" {
		w.Header().Set("Retry-After", f.RetryAfter)
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	if f.Body != "" {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
	}
	w.WriteHeader(status)
	_, _ = w.Write([]byte(body))
	return false
}

func (s *Server) spoil(c *call, status int, code string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.req.Status, c.req.Error = status, code
	s.record(c.req)
}

// answer writes the result of a processed call, spoilt if the fault says so.
func (s *Server) answer(w http.ResponseWriter, f *Fault, status int, b []byte) {
	switch {
	case f == nil:
	case f.ResetAfter:
		fakeserver.Reset(w)
		return
	case f.FailAfter:
		status, b = http.StatusInternalServerError, []byte(`{"ok":false,"error":"internal_error"}`)
	case f.Truncate:
		b = b[:len(b)/2]
	case f.Malformed:
		b = []byte("<html>not JSON")
	}
	w.WriteHeader(status)
	_, _ = w.Write(b)
}
