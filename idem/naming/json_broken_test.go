package naming

import (
	"encoding/json"
	"strings"
	"testing"
)

// isJSON is what the scan says of body, for keys that want a member of it.
func isJSON(body string) bool {
	set := new(bodySet)
	set.addPath([]pathStep{{name: "id"}})
	set.addPath([]pathStep{{name: "a"}, {index: 1, isIndex: true}, {name: "b"}})
	var scan jsonScan
	return scan.scanText([]byte(body), set)
}

// An event ID that is read from a body which others read in another way would make two events of
// one, or one of two.
func TestABodyIsJSONJustWhereTheStandardSaysSo(t *testing.T) {
	for _, whole := range []string{
		`{"id":"x","a":[0,{"b":"y"}]}`, `{"\u0069d":"\ud83d\ude00\n\"","other":{"id":[]}}`,
		`{"n":[-0.5e+10,12,0,1E-2],"t":[true,false,null]}`, ` [ { } , "x" ] `,
	} {
		for at := range len(whole) + 1 {
			tried := []string{whole[:at], whole[at:]}
			if at < len(whole) {
				for _, c := range "{}[]\",:\\u0-+.eE1a \x00\x1f\x7fé" {
					tried = append(tried, whole[:at]+string(c)+whole[at+1:], whole[:at]+string(c)+whole[at:])
				}
				tried = append(tried, whole[:at]+whole[at+1:])
			}
			for _, body := range tried {
				if got, want := isJSON(body), json.Valid([]byte(body)); got != want {
					t.Errorf("%q: is JSON %v, encoding/json says %v", body, got, want)
				}
			}
		}
	}
}

func TestABodyNestsAtMostMaxDepthDeep(t *testing.T) {
	for open, shut := range map[string]string{"[": "]", `{"id":`: "}", `{"x":`: "}"} {
		if !isJSON(strings.Repeat(open, maxDepth) + "0" + strings.Repeat(shut, maxDepth)) {
			t.Errorf("%s: what is just deep enough is refused", open)
		}
		if isJSON(strings.Repeat(open, maxDepth+1) + "0" + strings.Repeat(shut, maxDepth+1)) {
			t.Errorf("%s: one level more is taken", open)
		}
	}
}
