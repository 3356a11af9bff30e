package naming

import (
	"bytes"
	"encoding/binary"
	"io"
	"strings"
	"testing"
	"unicode/utf16"

	"golang.org/x/net/html/charset"
)

// inUTF16 returns text in UTF-16, without a byte order mark.
func inUTF16(order binary.AppendByteOrder, text string) string {
	var b []byte
	for _, unit := range utf16.Encode([]rune(text)) {
		b = order.AppendUint16(b, unit)
	}
	return string(b)
}

func TestXMLInAnotherEncodingIsRead(t *testing.T) {
	const (
		utf16Doc = `<?xml version="1.0" encoding="UTF-16"?><a><id>é€𝄞</id></a>`
		latin    = "<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?><a><id>caf\xe9</id></a>"
	)
	big, little := binary.BigEndian, binary.LittleEndian
	for _, tt := range []struct {
		name, body, want string
		r                Reading
	}{
		{"ISO-8859-1", latin, "café", ReadFound},
		{"windows-1252", "<?xml version='1.0' encoding='windows-1252' ?>\n<a><id>\x80</id></a>", "€", ReadFound},
		{"a label in lower case", strings.Replace(latin, "ISO", "iso", 1), "café", ReadFound},
		{"Shift JIS", "<?xml version='1.0' encoding='Shift_JIS'?><a><id>\x93\xfa</id></a>", "日", ReadFound},
		{"UTF-16 with a mark, big endian", "\xfe\xff" + inUTF16(big, utf16Doc), "é€𝄞", ReadFound},
		{"UTF-16 with a mark, little endian", "\xff\xfe" + inUTF16(little, utf16Doc), "é€𝄞", ReadFound},
		{"UTF-16 without a mark", inUTF16(little, utf16Doc), "é€𝄞", ReadFound},
		{"UTF-16 that declares nothing", "\xfe\xff" + inUTF16(big, "<a><id>é</id></a>"), "é", ReadFound},
		{"UTF-16 cut in the middle of a unit", inUTF16(big, utf16Doc) + "\x00", "", ReadMissing},
		{"half a surrogate pair", "\xfe\xff" + inUTF16(big, "<a><id>") + "\xd8\x34" + inUTF16(big, "</id></a>"), "",
			ReadMissing},
		{"UTF-8 that says UTF-16", `<?xml version="1.0" encoding="utf-16"?><a><id>x</id></a>`, "", ReadMissing},
		{"UTF-16 that says ISO-8859-1", "\xfe\xff" + inUTF16(big, latin), "", ReadMissing},
		{"a mark of UTF-8 before ISO-8859-1", "\ufeff" + latin, "", ReadMissing},
		{"an encoding that is not known", "<?xml version='1.0' encoding='klingon'?><a><id>x</id></a>", "", ReadMissing},
		{"bytes that the encoding does not have", "<?xml version='1.0' encoding='windows-1252'?><a><id>\x81</id></a>",
			"", ReadMissing},
		{"a declaration behind the first one", "<?xml version='1.0'?><?xml encoding='ISO-8859-1'?><a><id>x</id></a>",
			"", ReadMissing},
		{"a declaration inside", "<a><?xml encoding='ISO-8859-1'?><id>x</id></a>", "", ReadMissing},
		{"a declaration for each element", latin[:44] + "<a>" + strings.Repeat("<?xml encoding='ISO-8859-1'?>", 1000) +
			"<id>x</id></a>", "", ReadMissing},
	} {
		if got, r := lookedUp(t, "xml.a.id", &Message{Body: []byte(tt.body)}); got != tt.want || r != tt.r {
			t.Errorf("%s: %q %v, want %q %v", tt.name, got, r, tt.want, tt.r)
		}
	}
}

// FuzzXMLEncoding: in no encoding does a document become more text than the bound allows, or panic;
// and what is read has no character that stands for bytes that could not be read.
func FuzzXMLEncoding(f *testing.F) {
	for _, label := range []string{"iso-8859-1", "utf-16", "utf-16be", "big5", "gb18030", "iso-2022-jp", "koi8-r",
		"utf8", "replacement", "x-user-defined"} {
		f.Add(label, []byte("caf\xe9\x81\xfe\xff"), false)
		f.Add(label, []byte("\x00x\xd8\x34\xdd\x1e"), true)
	}
	f.Fuzz(func(t *testing.T, label string, id []byte, marked bool) {
		body := []byte("<?xml version='1.0' encoding='" + label + "'?><a><id>" + string(id) + "</id></a>")
		if marked {
			body = append([]byte("\xfe\xff"), inUTF16(binary.BigEndian, string(body))...)
		}
		value, r := lookedUp(t, "xml.a.id", &Message{Body: body})
		if r == ReadFound && strings.Contains(value, replacement) && !bytes.Contains(id, []byte(replacement)) {
			t.Fatalf("%q in %s is read as %q", id, label, value)
		}
		encoding, _ := charset.Lookup(label)
		if encoding == nil {
			return
		}
		if text, err := encoding.NewDecoder().Bytes(id); err == nil && len(text) > maxGrowth*max(len(id), 1) {
			t.Fatalf("%s makes %d bytes of %d: raise maxGrowth", label, len(text), len(id))
		}
		n, _ := io.Copy(io.Discard, newStrictReader(bytes.NewReader(id), encoding.NewDecoder(), len(id)))
		if n > int64(maxGrowth*len(id)) {
			t.Fatalf("%d bytes of %d", n, len(id))
		}
	})
}
