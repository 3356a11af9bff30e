package page

import (
	"bytes"
	"testing"
)

func TestACellDoesNotEndAtASemicolon(t *testing.T) {
	var text bytes.Buffer
	writeCSV(&text, []string{"a;=1+2", "b\t=1", `c"d`, "e,f", " g", "h"})
	if want := `"a;=1+2","b` + "\t" + `=1","c""d","e,f"," g",h` + "\n"; text.String() != want {
		t.Errorf("%q, want %q", text.String(), want)
	}
}

func TestOneTokenHasAQuarterOfTheLiveScreens(t *testing.T) {
	p := &Page{streams: map[string]int{}}
	for range maxStreamsEach {
		if !p.openStream("a") {
			t.Fatal("refused within its share")
		}
	}
	if p.openStream("a") || !p.openStream("b") || !p.openStream("") {
		t.Error("a token has more than its share, or others have none")
	}
	p.closeStream("a")
	if !p.openStream("a") {
		t.Error("a place is not free again")
	}
}
