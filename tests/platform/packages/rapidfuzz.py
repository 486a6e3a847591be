from rapidfuzz import distance, fuzz, process, utils


def work():
    names = ["new york jets", "new york giants", "dallas cowboys", "atlanta falcons", "São Paulo"]
    for scorer in (fuzz.ratio, fuzz.partial_ratio, fuzz.token_sort_ratio, fuzz.token_set_ratio, fuzz.WRatio, fuzz.QRatio):
        yield [round(scorer("the new york mets", name), 6) for name in names]
    yield process.extract("cowboys dallas", names, scorer=fuzz.token_sort_ratio, limit=2, processor=utils.default_process)
    yield process.extractOne("sao paulo", names, scorer=distance.JaroWinkler.normalized_similarity)
    yield distance.Levenshtein.distance("kitten", "sitting"), [tuple(op) for op in distance.Levenshtein.editops("kitten", "sitting")]
    yield distance.Indel.normalized_distance("lewenstein", "levenshtein"), distance.Hamming.distance("abc", "abd")
    yield distance.DamerauLevenshtein.distance("ca", "abc"), distance.OSA.similarity("ca", "abc"), distance.LCSseq.similarity("abcd", "bxd")
