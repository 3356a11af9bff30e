package arch

import (
	"slices"
	"strings"
	"testing"
)

func TestArrowsBetweenPackagesAreThoseOfTheDesign(t *testing.T) {
	packages, err := Load(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"hooklock/idem", "hooklock/etcdlock", "hooklock/proxy", "hooklock/proxy/wire",
		"hooklock/config", "hooklock/cmd/hooklock"} {
		if !slices.ContainsFunc(packages, func(p Package) bool { return p.ImportPath == path && len(p.Deps) > 0 }) {
			t.Errorf("go list does not know %s: the rules below would hold nothing", path)
		}
	}
	for _, b := range Broken(packages, Rules) {
		t.Error(b)
	}
}

func TestForbiddenArrowsAreFound(t *testing.T) {
	for _, c := range []struct {
		name string
		p    Package
		want string // a part of the sentence; "" means that nothing is wrong
	}{
		{"idem with a server", Package{"hooklock/idem", []string{"net/http"}, []string{"net/http"}},
			"hooklock/idem imports net/http: decisions are pure"},
		{"idem with another library", Package{"hooklock/idem", []string{"github.com/tidwall/gjson"}, nil},
			"not one of"},
		{"idem as it may be", Package{"hooklock/idem", []string{"strings", "github.com/cespare/xxhash/v2"},
			[]string{"strings", "github.com/cespare/xxhash/v2"}}, ""},
		{"etcdlock through another", Package{"hooklock/etcdlock", []string{"example.com/x"},
			[]string{"example.com/x", "github.com/valyala/fasthttp"}},
			"hooklock/etcdlock reaches github.com/valyala/fasthttp"},
		{"etcdlock with the server", Package{"hooklock/etcdlock", nil, []string{"go.etcd.io/etcd/server/v3/embed"}},
			"go.etcd.io/etcd/server/v3/embed"},
		{"embedded with the server", Package{"hooklock/etcdlock/embedded", nil,
			[]string{"go.etcd.io/etcd/server/v3/embed"}}, ""},
		{"proxy with the ledger", Package{"hooklock/proxy", nil, []string{"hooklock/etcdlock"}}, "hooklock/etcdlock"},
		{"proxy/wire with a library", Package{"hooklock/proxy/wire", []string{"go.uber.org/zap"}, nil},
			"go.uber.org/zap"},
		{"sender that fetches", Package{"hooklock/proxy/sender", []string{"net"}, []string{"net"}},
			"nothing that a delivery names is ever fetched"},
		{"hot path with the API", Package{"hooklock/etcdlock", nil, []string{"hooklock/admin"}}, "hooklock/admin"},
		{"config with a live client", Package{"hooklock/config", nil, []string{"go.etcd.io/etcd/client/v3"}},
			"go.etcd.io/etcd/client/v3"},
		{"the client with a package of ours", Package{"hooklock/admin/client", []string{"hooklock/idem"}, nil},
			"nothing comes along"},
		{"a package with the configuration", Package{"hooklock/admin", nil, []string{"hooklock/config"}},
			"hooklock/config"},
		{"a test's help in the program", Package{"hooklock/cmd/hooklock", nil, []string{"hooklock/proxy/wiretest"}},
			"what helps tests is not shipped"},
		{"the command", Package{"hooklock/cmd/hooklock", nil,
			[]string{"hooklock/config", "hooklock/admin", "go.etcd.io/etcd/server/v3/embed"}}, ""},
		{"a test around the program", Package{"hooklock/test/fault", nil,
			[]string{"hooklock/proxy/wiretest", "go.etcd.io/etcd/server/v3/embed"}}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := strings.Join(Broken([]Package{c.p}, Rules), "\n")
			if c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestEveryRuleHasAPackageAReasonAndALimit(t *testing.T) {
	for i, r := range Rules {
		if len(r.Packages) == 0 || r.Why == "" || len(r.Never) == 0 && r.Only == nil {
			t.Errorf("rule %d holds nothing: %+v", i, r)
		}
	}
}

func TestPatternsMeanATreeOnlyWithDots(t *testing.T) {
	for _, c := range []struct {
		pattern, path string
		want          bool
	}{
		{"net", "net", true}, {"net", "net/url", false}, {"net/http/...", "net/http", true},
		{"net/http/...", "net/http/httptrace", true},
		{"net/http/...", "net/httpx", false}, {"hooklock/idem", "hooklock/idempotent", false},
	} {
		if got := covers(c.pattern, c.path); got != c.want {
			t.Errorf("covers(%q, %q) = %v", c.pattern, c.path, got)
		}
	}
}

func TestAnAnswerOfTheGoCommandThatIsCutOffIsAnError(t *testing.T) {
	if _, err := decode(strings.NewReader(`{"ImportPath": "hooklock/idem"}{"Imp`)); err == nil {
		t.Error("a cut-off answer was taken for a whole one")
	}
}
