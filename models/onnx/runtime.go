// Package onnx runs embedders and rerankers on the ONNX runtime, with the
// tokenizers of their own model files. It is the only package with cgo.
//
// Its one idea: one text, one inference, one thread. A text never shares a
// padded batch with another, so that its vector depends on nothing but itself
// (dynamic quantisation over a padded batch would break this), and the cores are kept
// busy by running as many texts side by side as there are threads. Sessions are
// shared, hold no thread pool of their own, and run on the calling thread;
// memory is what the texts in flight need.
//
// Formats: a model directory as models/catalog describes it (model.onnx,
// tokenizer.json). Truncation and padding that a tokenizer.json asks for are
// switched off: the window is cut here, and counted.
//
// It needs libonnxruntime at run time (see findLibrary for the places) and
// libtokenizers.a at build time (make native). It downloads nothing and chooses
// no model.
package onnx

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	ort "github.com/yalue/onnxruntime_go"
	"golang.org/x/sync/errgroup"
)

// Options configure a Runtime. The zero value is ready to use.
type Options struct {
	// Threads bounds the inferences that run at once, each on one core, over
	// all models of the Runtime. 0: one for each core.
	Threads int
	// Library is the path of libonnxruntime. Empty: it is searched.
	Library string
}

// Runtime is the ONNX runtime with the models that were opened on it. It is
// safe for concurrent use.
type Runtime struct {
	slots   chan struct{}
	library string
	runs    atomic.Int64

	mu     sync.Mutex
	models []*model
	closed bool
}

// ErrClosed is returned by every model of a closed Runtime.
var ErrClosed = errors.New("the model runtime is closed")

// New starts the runtime. The library is loaded once in a process: a second
// Runtime shares it, and must not name another file.
func New(o Options) (*Runtime, error) {
	if o.Threads < 0 {
		return nil, fmt.Errorf("threads must be 0 (one for each core) or more, not %d", o.Threads)
	}
	if o.Threads == 0 {
		o.Threads = runtime.GOMAXPROCS(0)
	}
	library, err := loadLibrary(o.Library)
	if err != nil {
		return nil, err
	}
	return &Runtime{slots: make(chan struct{}, o.Threads), library: library}, nil
}

// Library is the path of the libonnxruntime in use.
func (rt *Runtime) Library() string { return rt.library }

// Version is that of the libonnxruntime in use.
func (rt *Runtime) Version() string { return ort.GetVersion() }

// Threads is the number of inferences that run at once.
func (rt *Runtime) Threads() int { return cap(rt.slots) }

// Close waits for running inferences and frees all models. The library stays
// loaded.
func (rt *Runtime) Close() error {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	rt.closed = true
	var errs []error
	for _, m := range rt.models {
		errs = append(errs, m.close())
	}
	rt.models = nil
	return errors.Join(errs...)
}

func (rt *Runtime) adopt(m *model) error {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if rt.closed {
		return errors.Join(ErrClosed, m.close())
	}
	rt.models = append(rt.models, m)
	return nil
}

// one runs f on one of the slots. It waits for the slot no longer than ctx
// lives.
func (rt *Runtime) one(ctx context.Context, f func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case rt.slots <- struct{}{}:
		defer rt.leave()
		return f()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// runsPerTrim spreads the cost of a trim, about a millisecond, over inferences
// of 3 to 150 ms each.
const runsPerTrim = 128

func (rt *Runtime) leave() {
	if rt.runs.Add(1)%runsPerTrim == 0 {
		trimHeap()
	}
	<-rt.slots
}

// each runs f(0) … f(n-1) over all slots and returns the first error, after
// all have ended.
func (rt *Runtime) each(ctx context.Context, n int, f func(i int) error) error {
	g, ctx := errgroup.WithContext(ctx)
	var next atomic.Int64
	for range min(n, rt.Threads()) {
		g.Go(func() error {
			for {
				i := int(next.Add(1)) - 1
				if i >= n {
					return nil
				}
				if err := rt.one(ctx, func() error { return f(i) }); err != nil {
					return err
				}
			}
		})
	}
	return g.Wait()
}
