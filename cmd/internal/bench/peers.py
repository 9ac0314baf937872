"""The peers from PyPI: faiss-cpu IndexFlatIP on one thread, and tantivy.

python3 peers.py faiss|tantivy FOLDER TOP: prints "ready", then for each line
of standard input the median seconds of one question over all questions.
"""

import statistics
import sys
import time

DIMS = 384


def faiss_peer(folder, top):
    import faiss
    import numpy as np

    faiss.omp_set_num_threads(1)
    index = faiss.IndexFlatIP(DIMS)
    index.add(np.fromfile(folder + "/vectors.f32", dtype="<f4").reshape(-1, DIMS))
    asked = np.fromfile(folder + "/asked.f32", dtype="<f4").reshape(-1, 1, DIMS)
    return asked, lambda q: index.search(q, top)


def tantivy_peer(folder, top):
    import tantivy

    schema = tantivy.SchemaBuilder()
    schema.add_text_field("text", stored=False, tokenizer_name="whitespace", index_option="freq")
    index = tantivy.Index(schema.build())
    writer = index.writer(200_000_000, 1)
    with open(folder + "/texts.txt") as lines:
        for line in lines:
            writer.add_document(tantivy.Document(text=line.strip()))
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    searcher = index.searcher()
    with open(folder + "/questions.txt") as lines:
        asked = [index.parse_query(line.strip(), ["text"]) for line in lines]
    return asked, lambda q: searcher.search(q, top, count=False).hits


def main():
    peer = {"faiss": faiss_peer, "tantivy": tantivy_peer}[sys.argv[1]]
    asked, search = peer(sys.argv[2], int(sys.argv[3]))
    search(asked[0])
    print("ready", flush=True)
    for _ in sys.stdin:
        took = []
        for q in asked:
            start = time.perf_counter()
            search(q)
            took.append(time.perf_counter() - start)
        print(statistics.median(took), flush=True)


main()
