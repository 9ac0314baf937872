package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
)

const (
	dims    = 384
	words   = 180     // of a chunk
	vocab   = 200_000 // words by Zipf's law
	perDoc  = 10
	groups  = 50
	atOnce  = 100 // hits of a search
	inQuery = 6   // words of a question
)

// corpus is made up, the same in every run: words by Zipf's law, vectors on
// the unit sphere. Questions draw from the same words, the very commonest
// among them.
type corpus struct {
	texts     [][]string
	vectors   [][]float32
	questions [][]string
	asked     [][]float32
}

func newCorpus(s settings) *corpus {
	r := rand.New(rand.NewPCG(7, 11))
	zipf := rand.NewZipf(r, 1.1, 8, vocab-1)
	draw := func(n int) []string {
		out := make([]string, n)
		for i := range out {
			out[i] = fmt.Sprintf("w%d", zipf.Uint64())
		}
		return out
	}
	c := &corpus{}
	for range s.chunks {
		c.texts = append(c.texts, draw(words))
		c.vectors = append(c.vectors, unit(r))
	}
	for range s.queries {
		c.questions = append(c.questions, draw(inQuery))
		c.asked = append(c.asked, unit(r))
	}
	return c
}

func unit(r *rand.Rand) []float32 {
	v := make([]float32, dims)
	var sum float64
	for i := range v {
		v[i] = float32(r.NormFloat64())
		sum += float64(v[i]) * float64(v[i])
	}
	for i := range v {
		v[i] /= float32(math.Sqrt(sum))
	}
	return v
}

// write lays the corpus where the peers in Python read it: a line of text for
// each chunk and question, vectors as little-endian float32.
func (c *corpus) write(dir string) error {
	lines := func(name string, all [][]string) error {
		return writeFile(filepath.Join(dir, name), func(w *bufio.Writer) error {
			for _, t := range all {
				if _, err := fmt.Fprintln(w, strings.Join(t, " ")); err != nil {
					return err
				}
			}
			return nil
		})
	}
	floats := func(name string, all [][]float32) error {
		return writeFile(filepath.Join(dir, name), func(w *bufio.Writer) error {
			for _, v := range all {
				if err := binary.Write(w, binary.LittleEndian, v); err != nil {
					return err
				}
			}
			return nil
		})
	}
	for _, err := range []error{
		lines("texts.txt", c.texts), lines("questions.txt", c.questions),
		floats("vectors.f32", c.vectors), floats("asked.f32", c.asked),
	} {
		if err != nil {
			return err
		}
	}
	return nil
}

func writeFile(path string, fill func(*bufio.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	w := bufio.NewWriter(f)
	if err := fill(w); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return f.Close()
}
