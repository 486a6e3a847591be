from bs4 import BeautifulSoup


def work():
    page = """<html><head><title>Tägliches &amp; mehr</title></head><body><!-- note --><p class="a b">One <b>two</p>
    <table><tr><td>1<td>2</table><a href="/x?a=1&amp;b=2">link</a><ul><li>x<li>y</ul><br>end"""
    soup = BeautifulSoup(page, "html.parser")
    yield soup.title.string, soup.p["class"], [tag.get_text(strip=True) for tag in soup.select("td")], soup.a["href"]
    yield [tag.name for tag in soup.find_all(True)], soup.get_text(" ", strip=True)
    yield soup.prettify()
    soup.p.append(soup.new_tag("i", attrs={"data-x": "<1>"}))
    soup.b.unwrap()
    yield str(soup.p), [str(tag) for tag in soup.select("p.a:not(.c) > i, ul li:nth-of-type(2)")]
    yield BeautifulSoup("caf\xe9".encode("latin-1"), "html.parser", from_encoding="latin-1").get_text()
    yield BeautifulSoup(b"<meta charset=windows-1252><p>\x93quoted\x94", "html.parser").p.string
