package xmlscan

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
)

// spelled reads a document into one line: elements as <a> and </a>, text in one piece, and "!" for
// comments and instructions.
func spelled(document string) (string, error) {
	var b strings.Builder
	s := New(strings.NewReader(document))
	for {
		kind, err := s.Next()
		if err == io.EOF {
			return b.String(), nil
		}
		if err != nil {
			return b.String(), err
		}
		switch kind {
		case Start:
			fmt.Fprintf(&b, "<%s>", s.Name())
		case End:
			fmt.Fprintf(&b, "</%s>", s.Name())
		case Text:
			b.Write(s.Text())
		case Aside:
			b.WriteByte('!')
		}
	}
}

// decoded is spelled by encoding/xml.
func decoded(document string) (string, error) {
	var b strings.Builder
	d := xml.NewDecoder(strings.NewReader(strings.TrimPrefix(document, "\ufeff")))
	for {
		token, err := d.Token()
		if err == io.EOF {
			return b.String(), nil
		}
		if err != nil {
			return b.String(), err
		}
		switch t := token.(type) {
		case xml.StartElement:
			fmt.Fprintf(&b, "<%s>", t.Name.Local)
		case xml.EndElement:
			fmt.Fprintf(&b, "</%s>", t.Name.Local)
		case xml.CharData:
			b.Write(t)
		default:
			b.WriteByte('!')
		}
	}
}

var accepted = []string{
	"<a/>", "<a></a>", "<a b='1' c = \"2\" d='&lt;&#x41;>]]>'/>", "<a>x</a>", " <a> x\r\ny\rz </a>\n",
	"<s:a xmlns:s='u'><s:b/></s:a>",
	"<?xml version='1.0' encoding=\"UTF-8\" standalone='yes'?><a/>",
	"<?xml version='1.0'?><!-- c - d --><a><?p q ? > ?></a><!---->",
	"<a><![CDATA[x]]></a>", "<a><![CDATA[]]]]><![CDATA[>]]></a>", "<a><![CDATA[]]]></a>", "<a><![CDATA[x]]]]]]></a>",
	"<a><![CDATA[<&\r\n]] >]]></a>",
	"<a>]]&gt;]</a>", "<a>&amp;&lt;&gt;&apos;&quot;&#65;&#x1F600;&#0000000000000000000000000065;</a>", "\ufeff<a/>",
	"<größe>é\U0001F600</größe>", "<a.b-c_1/>",
	"<a>" + strings.Repeat("]", 3000) + "</a>", "<a>" + strings.Repeat("é", 3000) + "</a>",
	"<a><![CDATA[" + strings.Repeat("]", 3000) + "]]></a>",
	strings.Repeat("<a>", MaxDepth) + strings.Repeat("</a>", MaxDepth), "<" + strings.Repeat("n", MaxName) + "/>",
	"<a b='1'c='2'/>", "<a\n/>", "<a></a >",
}

func TestWhatEncodingXMLReadsIsReadTheSame(t *testing.T) {
	for _, document := range accepted {
		got, err := spelled(document)
		want, wantErr := decoded(document)
		if err != nil || wantErr != nil || got != want {
			t.Errorf("%.100q: %.200q %v, encoding/xml says %.200q %v", document, got, err, want, wantErr)
		}
	}
}

func TestWhatIsNotOneXMLDocumentIsAnError(t *testing.T) {
	for _, document := range []string{
		"", " ", "x", "<", "<a", "<a ", "<a>", "<a/", "<a / >", "</a>", "<a></b>", "<s:a></t:a>", "<a></a>x", "x<a/>",
		"<a/><b/>", "<a/>&#65;", "<![CDATA[x]]><a/>", "<a><![CDATA[x]></a>",
		"<a b/>", "<a b=c/>", "<a b='<'/>", "<a b='&x;'/>", "<a b='\x01'/>", "<a b='\xff'/>", "<a>\x00</a>",
		"<a>\xff</a>", "<a>\uffff</a>", "<a>]]></a>", "<a>" + strings.Repeat("]", 3000) + "></a>",
		"<a>&x;</a>", "<a>&amp</a>", "<a>&;</a>", "<a>& </a>", "<a>&#;</a>", "<a>&#x;</a>", "<a>&#0;</a>",
		"<a>&#xD800;</a>", "<a>&#x110000;</a>", "<a>&#99999999999999999999999;</a>",
		"<1/>", "<-a/>", "<a:b:c/>", "<a><!-- -- --></a>", "<a><!- x -></a>", "<a><![CDAT[x]]></a>", "<!DOCTYPE a><a/>",
		"<a><!ENTITY x 'y'></a>", "<?xml version='1.1'?><a/>",
		"<?xml version='1.0' encoding='latin1'?><a/>", "<?xml version='1.0' encoding = 'latin1'?><a/>",
		" <?xml version='1.0'?><a/>", "<a><?xml version='1.0'?></a>", "<a><?x", "<a><!--x",
		"<?xml " + strings.Repeat(" ", maxDeclaration) + "?><a/>",
		"<" + strings.Repeat("n", MaxName+1) + "/>", "<a " + strings.Repeat("n", MaxName+1) + "=''/>",
		strings.Repeat("<a>", MaxDepth+1) + strings.Repeat("</a>", MaxDepth+1),
	} {
		if got, err := spelled(document); err == nil || err == io.EOF {
			t.Errorf("%.100q is read as %q", document, got)
		}
	}
	if _, err := spelled("<!DOCTYPE a><a/>"); !errors.Is(err, ErrDoctype) {
		t.Error(err)
	}
}

func TestTheReaderOfADeclaredEncodingReadsTheRest(t *testing.T) {
	s := New(strings.NewReader("<?xml version='1.0' encoding='upper'?><A>X</A>"))
	s.Charset = func(label string, rest io.Reader) (io.Reader, error) {
		text, err := io.ReadAll(rest)
		return bytes.NewReader(bytes.ToLower(text)),
			errors.Join(err, map[bool]error{label != "upper": errors.New(label)}[true])
	}
	var kinds []Kind
	for {
		kind, err := s.Next()
		if err != nil {
			if err != io.EOF {
				t.Error(err)
			}
			break
		}
		if kinds = append(kinds, kind); kind == Start && string(s.Name()) != "a" {
			t.Errorf("the element is %q", s.Name())
		}
	}
	if len(kinds) != 4 {
		t.Errorf("tokens: %v", kinds)
	}
}

// TestMemoryDoesNotGrowWithTheDocument: whatever a document has many of, or has one of that is
// long.
func TestMemoryDoesNotGrowWithTheDocument(t *testing.T) {
	const size = 8 << 20
	for _, form := range []struct{ begin, piece, end string }{
		{"<a ", `b="" `, "/>"}, {`<a b="`, "x", `"/>`}, {"<a ", "\n", "/>"}, {"<a>", "<b/>", "</a>"},
		{"<a>", "<b c='d'></b>", "</a>"}, {"<a>", "x", "</a>"}, {"<a>", "&#65;", "</a>"}, {"<a>", "]", "</a>"},
		{"<a><![CDATA[", "]", "]]></a>"}, {"<a><![CDATA[", "x", "]]></a>"}, {"<a><!--", "x", "--></a>"},
		{"<a><?p ", "x", "?></a>"}, {"<a>", "<!--x-->", "</a>"}, {"<", "a", "/>"}, {"<a ", "b", "/>"},
		{"<a ", "xmlns:b='c' ", "/>"}, {"<?xml ", "x", "?><a/>"}, {"", "<a>", ""}, {"<a>&", "a", ";</a>"},
		{"<a>&#", "0", "65;</a>"}, {"", "\n", "<a/>"}, {"<!DOCTYPE a [", "<!ENTITY b 'c'>", "]><a/>"},
	} {
		document := []byte(form.begin + strings.Repeat(form.piece, size/len(form.piece)) + form.end)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		s := New(bytes.NewReader(document))
		for {
			if _, err := s.Next(); err != nil {
				break
			}
		}
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > 64<<10 {
			t.Errorf("%s%s…: %d bytes for a document of %d", form.begin, form.piece, took, len(document))
		}
	}
}

// FuzzScanner holds the scanner against encoding/xml: what it accepts, encoding/xml reads in the
// same way.
func FuzzScanner(f *testing.F) {
	for _, document := range accepted {
		f.Add(document)
	}
	f.Fuzz(func(t *testing.T, document string) {
		got, err := spelled(document)
		if err != nil {
			return
		}
		want, err := decoded(document)
		if err == nil && got != want {
			t.Fatalf("%q: %q, encoding/xml says %q", document, got, want)
		}
		if err != nil && isASCII(document) { // its table of names is that of an older edition
			t.Fatalf("%q: %q, encoding/xml says %v", document, got, err)
		}
	})
}

func isASCII(s string) bool { return strings.IndexFunc(s, func(r rune) bool { return r > 0x7f }) < 0 }
