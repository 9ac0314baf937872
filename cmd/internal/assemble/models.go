package assemble

import (
	"fmt"

	"footnote/cmd/internal/config"
	"footnote/models/assets"
	"footnote/models/catalog"
	"footnote/models/onnx"
)

// Models are the shipped models on one runtime.
type Models struct {
	Runtime  *onnx.Runtime
	Embedder *onnx.Embedder
	Reranker *onnx.Reranker
}

// OpenModels starts the runtime and opens the shipped models, verified.
func OpenModels(c config.Config) (*Models, error) {
	rt, err := onnx.New(onnx.Options{Threads: c.Models.Threads, Library: c.Models.Runtime})
	if err != nil {
		return nil, err
	}
	m := &Models{Runtime: rt}
	if err := m.open(); err != nil {
		_ = rt.Close() // the first error says what is wrong
		return nil, fmt.Errorf("opening the models: %w", err)
	}
	return m, nil
}

func (m *Models) open() error {
	card, err := catalog.Lookup(catalog.DefaultEmbedder)
	if err != nil {
		return err
	}
	files, err := assets.Model(card.Name)
	if err != nil {
		return err
	}
	if m.Embedder, err = m.Runtime.Embedder(card, files); err != nil {
		return err
	}
	if card, err = catalog.Lookup(catalog.DefaultReranker); err != nil {
		return err
	}
	if files, err = assets.Model(card.Name); err != nil {
		return err
	}
	m.Reranker, err = m.Runtime.Reranker(card, files)
	return err
}

// Close waits for running inferences and frees the models.
func (m *Models) Close() error { return m.Runtime.Close() }
