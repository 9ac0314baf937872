package catalog

// Names of the models that ship with the program.
const (
	DefaultEmbedder = "multilingual-e5-small-koen-q4"
	DefaultReranker = "reranker-minilm-l6-en"
)

// Cards returns every card, in a fixed order. The caller owns the result.
func Cards() []Card {
	return []Card{
		{
			Name:      DefaultEmbedder,
			Kind:      Embedder,
			Base:      "intfloat/multilingual-e5-small",
			Licence:   "MIT",
			Precision: "q4",
			Files: []File{
				{Weights, 44357374, "2372651c9021c8fae254163459d3878b2fce7156d58188c8d19a30a97c5815f5"},
				{Tokenizer, 4294364, "55e65a5f9fa107ba6ab761ee971c3ac82d7e77f0334b78623728cbd1abb0860f"},
			},
			Inputs: []string{"input_ids", "attention_mask"},
			Output: "last_hidden_state",
			Window: 512,
			// The vocabulary is cut to Latin, Greek and Hangul: text in other
			// scripts becomes <unk>. Measured: English and Korean.
			Languages:     []string{"en", "ko"},
			Dimensions:    384,
			Pooling:       Mean,
			QueryPrefix:   "query: ",
			PassagePrefix: "passage: ",
			// Measured on en_docs and ko_react by asking every question without
			// cuts. Questions off the corpus have their best passage at 0.713 to
			// 0.7998, questions of another set at up to 0.81 (5 of 220 over 0.80);
			// formal ones of the set begin at 0.858 (ko_react), all but one at 0.817
			// (en_docs), tickets at 0.785.
			MinLate: 0.80,
			// Likewise: right answers come from passages at up to 0.21, questions
			// off the corpus have their nearest at 0.153 to 0.231. The distance only
			// keeps the farthest out; the support of a sentence decides.
			MaxDistance: 0.22,
			Unrelated:   0.80,
			// ko_react: of 24 formal questions 22 right and 1 wrong, of 48 others 8
			// right and 2 wrong; near misses answered 3 of 12, off the corpus 0 of 6,
			// 0 of 100 questions of other sets.
			MinSupport: 0.12,
		},
		{
			Name:      DefaultReranker,
			Kind:      Reranker,
			Base:      "sentence-transformers/all-MiniLM-L6-v2",
			Licence:   "Apache-2.0",
			Precision: "int8",
			Files: []File{
				{Weights, 23600612, "da8281d8a379dae4e584d439c5069b5efa0b3b1136df3f27393b265e5848f805"},
				{Tokenizer, 527292, "6681992d43e581b35b3dd61f3c81ee0f891fbf13ad54f8b692ea868bd46b066b"},
			},
			Inputs:      []string{"input_ids", "attention_mask", "token_type_ids"},
			Output:      "logits",
			Window:      256, // in training; the positions go to 512
			QueryWindow: 64,
			// A chunk of 500 embedder tokens is about 450 here: with 32 it takes
			// two windows, with 64 three.
			Overlap:   32,
			Languages: []string{"en"},
			// Measured on en_docs by asking every question without cuts: 0.04 lets
			// as few unanswerable questions through as 0.05 (11 of 36), and one more
			// formal one (37 of 38).
			MinProbability: 0.04,
			// en_docs: of 38 formal questions 34 right and 0 wrong, of 38 tickets all
			// refused; near misses answered 0 of 24, off the corpus 0 of 12.
			// en_squad2: 97 of 120 right, of 120 adversarial near misses 77 answered:
			// no figure of these models tells them apart.
			MinSupport: 0.22,
		},
	}
}
