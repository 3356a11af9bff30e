package proxy

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

const (
	readableLook = 2048 // bytes of an answer that are looked at
	readableMost = 160  // bytes of its text that are returned
)

// readableBeginning returns the beginning of the body of an answer on one line; of a page of HTML
// its title. It returns "" if there is no text, as in a compressed body.
func readableBeginning(body []byte) string {
	body = bytes.TrimSpace(body[:min(len(body), readableLook)])
	if bytes.HasPrefix(body, []byte("<")) {
		body = titleOf(body)
	}
	for _, c := range body {
		if c < ' ' && c != '\t' && c != '\n' && c != '\r' || c == 0x7f {
			return ""
		}
	}
	text := strings.Join(strings.Fields(strings.ToValidUTF8(string(body), "")), " ")
	if len(text) <= readableMost {
		return text
	}
	end := readableMost
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}

// titleOf returns what is in the title element of a page; nil if there is none.
func titleOf(page []byte) []byte {
	_, after, found := bytes.Cut(page, []byte("<title>"))
	title, _, closed := bytes.Cut(after, []byte("</title>"))
	if !found || !closed {
		return nil
	}
	return title
}
