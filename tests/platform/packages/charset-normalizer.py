import charset_normalizer

TEXTS = {
    "cp1251": "Привет как дела сегодня хорошо, это русский текст для проверки",
    "euc_kr": "이것은 인코딩 테스트를 위한 한국어 문장입니다",
    "mac_cyrillic": "Привет как дела сегодня хорошо, это русский текст",
    "shift_jis": "これはエンコーディングのテストです。日本語の文章",
}


def work():
    for encoding, text in TEXTS.items():
        best = charset_normalizer.from_bytes(text.encode(encoding)).best()
        yield encoding, best.encoding, str(best)
