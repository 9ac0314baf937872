// Command ingestbench prints how fast documents are taken in: documents a
// second and the share of the time in which the embedding model works, the
// memory that a folder of many files needs, and extraction beside pdftotext
// and python-docx.
//
// Its one idea: the model is the bottleneck by nature, so that everything else
// is measured by how little it adds. Speed is measured with the shipped model;
// memory with a stub in its place and in a process of its own, since the model
// would need hours for a gigabyte; extraction as the ratio of times on the same
// files in the same run.
//
// `make bench-ingest` runs it. FOOTNOTE_BENCH_BYTES sets the size of the folder.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
)

// settings of a run.
type settings struct {
	part    string
	cache   string // work folder
	python  string // with python-docx
	formats string // folder of PDF and DOCX files
	library string // ONNX runtime
	docs    int    // of the speed part
	bytes   int64  // of the memory part
	rounds  int
}

func main() {
	var s settings
	flag.StringVar(&s.part, "part", "", "only this `PART`: speed, memory or extraction")
	flag.StringVar(&s.cache, "cache", ".cache/bench", "work `FOLDER`")
	flag.StringVar(&s.python, "python", "python3", "`PROGRAM` with python-docx")
	flag.StringVar(&s.formats, "formats", "../shared/data/formats/files", "`FOLDER` of PDF and DOCX files")
	flag.StringVar(&s.library, "library", "", "ONNX runtime; looked for if not given")
	flag.IntVar(&s.docs, "docs", 40, "`NUMBER` of documents of the speed part")
	flag.Int64Var(&s.bytes, "bytes", 64<<20, "size of the folder of the memory part")
	flag.IntVar(&s.rounds, "rounds", 3, "`NUMBER` of rounds of extraction")
	flag.Parse()
	if err := run(context.Background(), s); err != nil {
		fmt.Fprintln(os.Stderr, "ingestbench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, s settings) error {
	for _, p := range []struct {
		name string
		work func(context.Context, settings) error
	}{{"extraction", extraction}, {"speed", speed}, {"memory", apart}} {
		if s.part == p.name || s.part == "" {
			if err := p.work(ctx, s); err != nil {
				return fmt.Errorf("%s: %w", p.name, err)
			}
		}
	}
	if s.part == "memory-here" {
		return memory(ctx, s)
	}
	return nil
}

func verdict(reached bool) string {
	if reached {
		return "reached"
	}
	return "MISSED"
}
