package discordtest

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	"footnote/adapters/fakeserver"
)

// Fault spoils calls of a route. Exactly the calls are hit that match Route,
// Param and either Calls or Chance. Several faults may be set; the first that
// hits a call wins.
type Fault struct {
	Route  string           // as in Request.Route, see the Route constants; "" for every route
	Param  string           // only calls with this path parameter: a channel, a token, …
	Calls  func(n int) bool // n counts matching calls from 1; nil: every call
	Chance float64          // when > 0, the share of calls that are hit

	Latency time.Duration // on the server's clock, before anything else

	// Before processing: the call has no effect.
	Status      int     // 429, 500, 502, …; 400 when only Code is set
	Code        int     // Discord's error code
	Message     string  // text of the error
	RetryAfter  float64 // seconds, of a 429
	Scope       string  // of a 429: user (default), global, shared
	HTML        bool    // the edge's HTML instead of JSON
	ResetBefore bool    // connection reset

	// After processing: the call took effect.
	ResetAfter bool           // connection reset
	FailAfter  bool           // 500 after all
	Truncate   bool           // half of the JSON
	Malformed  bool           // not JSON
	Extra      map[string]any // further fields in a JSON object
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
func (s *Server) fault(c *call) *Fault {
	params := slices.Collect(maps.Values(c.p))
	return s.faults.Hit(s.rng, func(f *Fault) bool {
		return (f.Route == "" || f.Route == c.req.Route) && (f.Param == "" || slices.Contains(params, f.Param))
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
		s.spoil(c, result{})
		fakeserver.Reset(w)
		return false
	}
	if f.Status == 0 && f.Code == 0 {
		return true
	}
	out := f.refusal()
	s.spoil(c, out)
	s.mu.Lock()
	h := s.headers(c, out)
	s.mu.Unlock()
	maps.Copy(w.Header(), h)
	w.WriteHeader(out.status)
	if page, isHTML := out.body.(html); isHTML {
		_, _ = w.Write([]byte(page))
	} else {
		_, _ = w.Write(raw(out.body))
	}
	return false
}

// refusal is the answer that the fault gives instead of the real one.
func (f *Fault) refusal() result {
	out := failure(max(f.Status, http.StatusBadRequest), f.Code, f.Message)
	if f.Status == http.StatusTooManyRequests {
		scope := f.Scope
		if scope == "" {
			scope = "user"
		}
		out = tooMany(time.Duration(f.RetryAfter*float64(time.Second)), scope)
		out.body.(object)["retry_after"] = f.RetryAfter
	}
	if f.HTML {
		out.body = html("<!DOCTYPE html><html><head><title>" + strconv.Itoa(out.status) + "</title></head><body>error code: 1015</body></html>")
	}
	return out
}

func (s *Server) spoil(c *call, out result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.req.Status, c.req.Code = out.status, out.code()
	s.count(out, out.header)
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
		status, b = http.StatusInternalServerError, []byte(`{"message":"500: Internal Server Error","code":0}`)
	case f.Truncate:
		b = b[:len(b)/2]
	case f.Malformed:
		b = []byte("<html>not JSON")
	case len(f.Extra) > 0:
		b = extended(b, f.Extra)
	}
	if w.Header().Get("Content-Type") == "text/html; charset=UTF-8" {
		var page string
		if json.Unmarshal(b, &page) == nil {
			b = []byte(page)
		}
	}
	w.WriteHeader(status)
	_, _ = w.Write(b)
}

// extended adds fields to a JSON object and leaves anything else alone.
func extended(b []byte, extra map[string]any) []byte {
	var o map[string]any
	if json.Unmarshal(b, &o) != nil || o == nil {
		return b
	}
	maps.Copy(o, extra)
	return raw(o)
}
