package naming

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"
)

// membersOf returns the members that are visited.
func membersOf(m *Message, limit int) (all map[string]string, whole bool) {
	all = map[string]string{}
	whole = new(MemberVisitor).Visit(m, limit, func(path, value []byte) { all[string(path)] = string(value) })
	return all, whole
}

func TestMembersAreVisitedAsTemplatesSpellThem(t *testing.T) {
	for body, c := range map[string]struct {
		kind string
		want map[string]string
	}{
		`{"id":1,"a.b":{"c":"x"},"n":null,"e":"","l":[{"k":true},2],"s":"{\"in\":3}"}`: {"application/json",
			map[string]string{
				"body.id": "1", `body["a.b"].c`: "x", "body.l#": "2", "body.l[0].k": "true", "body.l[1]": "2",
				"body.s.in": "3"}},
		"id=1%202&payload=%7B%22t%22%3A5%7D": {"application/x-www-form-urlencoded",
			map[string]string{"form.id": "1 2", "form.payload.t": "5"}},
		"<a><n><i>1</i></n><n><i>2</i></n><t> 3 </t></a>": {"text/xml",
			map[string]string{"xml.a.n[0].i": "1", "xml.a.n[1].i": "2", "xml.a.t": "3"}},
	} {
		m := bodyOf(c.kind, body)
		all, whole := membersOf(m, 100)
		delete(all, "header.content-type")
		if got, want := fmt.Sprint(all), fmt.Sprint(c.want); got != want || !whole {
			t.Errorf("%s: %v, whole %v", body, got, whole)
		}
		for path, value := range all {
			if path[len(path)-1] == '#' {
				continue
			}
			l, err := CompileLookup(path)
			if err != nil {
				t.Fatal(err)
			}
			if read, r := l.Read(m); r != ReadFound || !bytes.Equal(read, []byte(value)) {
				t.Errorf("{%s} reads %q", path, read)
			}
		}
	}
}

func TestABodyThatIsNotVisitedWholeIsSaid(t *testing.T) {
	for _, body := range []string{`{"a":1,"b":2,"c":3}`, `{"a":`, string(bytes.Repeat([]byte(" "), 65<<10)) + `{}`} {
		if _, whole := membersOf(bodyOf("application/json", body), 2); whole {
			t.Errorf("%.40q counts as whole", body)
		}
	}
}

// FuzzVisitedMembers checks that each member that is visited is what a template of that spelling
// reads.
func FuzzVisitedMembers(f *testing.F) {
	f.Add(`{"a":[{"b":1}],"c d":"x"}`, "application/json")
	f.Add(`<a><b>1</b><b>2</b></a>`, "text/xml")
	f.Add("a=1&b=%7B%7D", "application/x-www-form-urlencoded")
	f.Fuzz(func(t *testing.T, body, kind string) {
		m := bodyOf(kind, body)
		all, _ := membersOf(m, 64)
		for path, value := range all {
			if path[len(path)-1] == '#' || len(value) > 0 && (value[0] == '{' || value[0] == '[') ||
				path == "header.content-type" {
				continue
			}
			l, err := CompileLookup(path)
			if err != nil {
				continue // a name that no template can spell
			}
			read, r := l.Read(m)
			if r == ReadFound && !bytes.Equal(read, []byte(value)) && !json.Valid(read) {
				t.Fatalf("{%s} of %q reads %q, and was visited as %q", path, body, read, value)
			}
		}
	})
}
