package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/knights-analytics/hugot"
	"github.com/knights-analytics/hugot/options"
	"github.com/knights-analytics/hugot/pipelines"

	"footnote/models/assets"
	"footnote/models/catalog"
	"footnote/models/onnx"
)

// passages are real text: the demo documents, one after the other, in pieces of
// 1,000 bytes.
func passages() ([]string, error) {
	var all strings.Builder
	err := filepath.WalkDir("deploy/demo", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".md" {
			return err
		}
		data, err := os.ReadFile(path)
		all.Write(data)
		return err
	})
	var out []string
	for text := all.String(); len(text) > 1000 && len(out) < 24; text = text[1000:] {
		out = append(out, strings.ToValidUTF8(text[:1000], ""))
	}
	if err == nil && len(out) < 8 {
		err = errors.New("too little text in deploy/demo")
	}
	return out, err
}

// embedding compares texts a second against hugot on the same ONNX file.
func embedding(ctx context.Context, s settings) error {
	texts, err := passages()
	if err != nil {
		return err
	}
	card, err := catalog.Lookup(catalog.DefaultEmbedder)
	if err != nil {
		return err
	}
	dir, err := assets.Model(card.Name)
	if err != nil {
		return err
	}
	if err := os.CopyFS(filepath.Join(s.cache, "model"), dir); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	for _, threads := range []int{1, 2} {
		rt, err := onnx.New(onnx.Options{Threads: threads})
		if err != nil {
			return err
		}
		e, err := rt.Embedder(card, dir)
		if err != nil {
			return err
		}
		p, err := startPeer(here(), "-peer", "hugot", "-threads", strconv.Itoa(threads), "-cache", s.cache, "-library", rt.Library())
		if err != nil {
			return err
		}
		ours := func() (time.Duration, error) {
			start := time.Now()
			_, err := e.EmbedPassages(ctx, texts)
			return time.Since(start) / time.Duration(len(texts)), err
		}
		err = compare(s.rounds, fmt.Sprintf("embedding a text, %d thread(s)", threads), "hugot", 1, ours, p.round)
		if err := errors.Join(err, p.close(), rt.Close()); err != nil {
			return err
		}
	}
	return nil
}

// hugotPeer embeds the same texts with hugot until its input ends. It starts
// the runtime itself: a process has room for one.
func hugotPeer(cache, library string, threads int) error {
	texts, err := passages()
	if err != nil {
		return err
	}
	// hugot looks for the library under its name without a version.
	link := filepath.Join(cache, "libonnxruntime.so")
	if strings.HasSuffix(library, ".dylib") {
		link = filepath.Join(cache, "libonnxruntime.dylib")
	}
	if err := os.Symlink(library, link); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	session, err := hugot.NewORTSession(options.WithOnnxLibraryPath(cache), options.WithIntraOpNumThreads(threads))
	if err != nil {
		return err
	}
	p, err := hugot.NewPipeline(session, hugot.FeatureExtractionConfig{
		ModelPath: filepath.Join(cache, "model"), Name: "bench", OnnxFilename: "model.onnx",
		Options: []hugot.FeatureExtractionOption{pipelines.WithNormalization()},
	})
	if err != nil {
		return err
	}
	fmt.Println("ready")
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		start := time.Now()
		// Batches of 8, as hugot's users run it.
		for i := 0; i < len(texts); i += 8 {
			if _, err := p.RunPipeline(texts[i:min(i+8, len(texts))]); err != nil {
				return err
			}
		}
		fmt.Println(time.Since(start).Seconds() / float64(len(texts)))
	}
	return session.Destroy()
}
