package page

import (
	"testing"
)

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
