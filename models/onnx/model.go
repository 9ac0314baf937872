package onnx

import (
	"errors"
	"fmt"
	"io/fs"
	"sync"

	ort "github.com/yalue/onnxruntime_go"
	"golang.org/x/sync/errgroup"

	"footnote/models/catalog"
)

// model is a session and its tokenizer. Runs share mu; close takes it alone.
type model struct {
	card catalog.Card
	rt   *Runtime

	mu      sync.RWMutex
	tok     *tokenizer
	session *ort.DynamicAdvancedSession // nil once closed
}

// open loads and verifies the model's files and makes its session.
func (rt *Runtime) open(card catalog.Card, kind catalog.Kind, dir fs.FS) (*model, error) {
	if err := card.Validate(); err != nil {
		return nil, fmt.Errorf("model %q: its card is not valid: %w", card.Name, err)
	}
	if card.Kind != kind {
		return nil, fmt.Errorf("model %s is of kind %s; wanted is %s", card.Name, card.Kind, kind)
	}
	m := &model{card: card, rt: rt}
	// Side by side: each takes a third of a second.
	var g errgroup.Group
	g.Go(func() (err error) {
		m.tok, err = loadFile(card, dir, catalog.Tokenizer, newTokenizer)
		return err
	})
	g.Go(func() (err error) {
		m.session, err = loadFile(card, dir, catalog.Weights, func(data []byte) (*ort.DynamicAdvancedSession, error) {
			return newSession(data, card)
		})
		return err
	})
	if err := g.Wait(); err != nil {
		return nil, errors.Join(err, m.close())
	}
	if err := rt.adopt(m); err != nil {
		return nil, err
	}
	return m, nil
}

func loadFile[T any](card catalog.Card, dir fs.FS, name string, load func([]byte) (T, error)) (T, error) {
	var zero T
	data, err := card.Read(dir, name)
	if err != nil {
		return zero, err
	}
	v, err := load(data)
	if err != nil {
		return zero, fmt.Errorf("model %s: loading %s: %w", card.Name, name, err)
	}
	return v, nil
}

// unfit wraps what shows that the card does not describe the files.
func (m *model) unfit(err error) error {
	return fmt.Errorf("model %s does not run as its card says (dimensions, window, inputs, output): %w", m.card.Name, err)
}

func newSession(weights []byte, card catalog.Card) (*ort.DynamicAdvancedSession, error) {
	o, err := ort.NewSessionOptions()
	if err != nil {
		return nil, err
	}
	defer o.Destroy()
	// One thread: the run stays on the calling thread and there is no pool.
	// No arena, no memory pattern: both keep what the longest text once took,
	// and a pattern for each length seen.
	for _, err := range []error{
		o.SetIntraOpNumThreads(1),
		o.SetInterOpNumThreads(1),
		o.SetCpuMemArena(false),
		o.SetMemPattern(false),
	} {
		if err != nil {
			return nil, err
		}
	}
	return ort.NewDynamicAdvancedSessionWithONNXData(weights, card.Inputs, []string{card.Output}, o)
}

// use runs f while the model cannot be closed.
func (m *model) use(f func() error) error {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if m.session == nil {
		return ErrClosed
	}
	return f()
}

// run infers one sequence of tokens: ids and types are as long as each other,
// out receives the output, of this shape. The caller is inside use.
func (m *model) run(ids, types []int64, out []float32, shape ...int64) error {
	inputs := make([]ort.Value, 0, len(m.card.Inputs))
	defer func() {
		for _, v := range inputs {
			v.Destroy()
		}
	}()
	one := ort.NewShape(1, int64(len(ids)))
	for _, name := range m.card.Inputs {
		data, err := inputData(name, ids, types)
		if err != nil {
			return err
		}
		t, err := ort.NewTensor(one, data)
		if err != nil {
			return err
		}
		inputs = append(inputs, t)
	}
	output, err := ort.NewTensor(ort.NewShape(shape...), out)
	if err != nil {
		return err
	}
	defer output.Destroy()
	return m.session.Run(inputs, []ort.Value{output})
}

func inputData(name string, ids, types []int64) ([]int64, error) {
	switch name {
	case "input_ids":
		return ids, nil
	case "token_type_ids":
		return types, nil
	case "attention_mask":
		mask := make([]int64, len(ids))
		for i := range mask {
			mask[i] = 1
		}
		return mask, nil
	}
	return nil, fmt.Errorf("the card names an input %q; known are input_ids, attention_mask, token_type_ids", name)
}

// close frees what is loaded. It may be called again.
func (m *model) close() (err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.session != nil {
		err = m.session.Destroy()
	}
	if m.tok != nil {
		err = errors.Join(err, m.tok.t.Close())
	}
	m.session, m.tok = nil, nil
	return err
}
