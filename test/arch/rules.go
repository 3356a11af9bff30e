package arch

import (
	"fmt"
	"slices"
)

// module is our own name, and the first element of the path of each of our packages.
const module = "hooklock"

// Rule says what some packages may not know. Patterns are import paths; "/..." at the end means
// everything below, too.
type Rule struct {
	Packages []string // whom the rule binds
	But      []string // and whom of them it does not
	Never    []string // they may not reach these, not even through others
	Own      []string // they may not import these themselves, though a library may bring them along
	Only     []string // besides the standard library and themselves they import these alone; nil means no such limit
	Why      string
}

// Everything around the program may know every package: it is not part of it.
var around = []string{"hooklock/test/...", "hooklock/deploy/...", "hooklock/docs/..."}

// Rules are the arrows of the project. They bind what is shipped; tests of a package may use more.
var Rules = []Rule{
	{
		Packages: []string{"hooklock/idem"},
		Never: []string{"net", "net/http/...", "github.com/valyala/fasthttp/...", "go.etcd.io/...",
			"google.golang.org/grpc/..."},
		Only: []string{"github.com/cespare/xxhash/v2"},
		Why: "decisions are pure: they see no server, no store and no other package, so that they can be " +
			"tested as tables",
	},
	{
		Packages: []string{"hooklock/idem/naming"},
		Never: []string{"net", "net/http/...", "github.com/valyala/fasthttp/...", "go.etcd.io/...",
			"google.golang.org/grpc/..."},
		Only: []string{"github.com/cespare/xxhash/v2", "github.com/valyala/fastjson",
			"golang.org/x/net/html/charset", "golang.org/x/text/...", "hooklock/idem", "hooklock/idem/naming/xmlscan"},
		Why: "a name is a pure function of a delivery, and deciding does not know how it was made",
	},
	{
		Packages: []string{"hooklock/idem/guard", "hooklock/idem/worker"},
		Never: []string{"net", "net/http/...", "github.com/valyala/fasthttp/...", "go.etcd.io/...",
			"google.golang.org/grpc/..."},
		Why: "they reach the store and the upstream through interfaces, so that a test can order every event",
	},
	{
		Packages: []string{"hooklock/idem/guard"},
		Only:     []string{"github.com/cespare/xxhash/v2", "hooklock/idem"},
		Why:      "a delivery is decided with the words of idem alone; the park worker is an interface here",
	},
	{
		Packages: []string{"hooklock/idem/worker"},
		Only:     []string{"hooklock/idem", "hooklock/idem/guard"},
		Why:      "a try of a parked execution runs as a delivery does, in the guard, and needs nothing else",
	},
	{
		Packages: []string{"hooklock/etcdlock/..."},
		Never:    []string{"hooklock/idem/guard", "hooklock/idem/worker"},
		Why:      "the ledger is an interface of idem, and does not know what uses it",
	},
	{
		Packages: []string{"hooklock/etcdlock/protocol"},
		Own:      []string{"net/http"}, // etcd's client, whose operations a transaction is made of, brings it along
		Never:    []string{"hooklock/etcdlock", "hooklock/etcdlock/link"},
		Only: []string{"go.etcd.io/etcd/client/v3", "go.etcd.io/etcd/api/v3/...", "github.com/cespare/xxhash/v2",
			"hooklock/idem"},
		Why: "the protocol is values and transactions: it sends nothing, so that a model can hold it against " +
			"every order of events",
	},
	{
		Packages: []string{"hooklock/etcdlock/link"},
		Never:    []string{"hooklock/idem", "hooklock/etcdlock", "hooklock/etcdlock/protocol"},
		Why:      "the way to etcd is the same whatever travels on it: it knows no lock and no execution",
	},
	{
		Packages: []string{
			"hooklock/etcdlock/callback", "hooklock/etcdlock/carry", "hooklock/etcdlock/claim",
			"hooklock/etcdlock/commit", "hooklock/etcdlock/finish",
			"hooklock/etcdlock/history", "hooklock/etcdlock/locker", "hooklock/etcdlock/operate",
			"hooklock/etcdlock/owned", "hooklock/etcdlock/park", "hooklock/etcdlock/predecessor",
			"hooklock/etcdlock/queue", "hooklock/etcdlock/reap", "hooklock/etcdlock/session", "hooklock/etcdlock/slots",
			"hooklock/etcdlock/view",
		},
		Never: []string{"hooklock/etcdlock"},
		Why: "the parts of the ledger get what they use through constructors: none knows the Store that is made " +
			"of them",
	},
	{
		Packages: []string{"hooklock/etcdlock/claim"},
		Never: []string{"hooklock/etcdlock/queue", "hooklock/etcdlock/carry", "hooklock/etcdlock/locker",
			"hooklock/etcdlock/callback"},
		Why: "a claim is one transaction and its answers: waiting, carrying and the lock API are built on it",
	},
	{
		Packages: []string{"hooklock/etcdlock/queue", "hooklock/etcdlock/carry", "hooklock/etcdlock/operate"},
		Never:    []string{"hooklock/etcdlock/locker", "hooklock/etcdlock/callback"},
		Why:      "what waits and what is parked does not depend on what a client or an upstream asks for",
	},
	{
		Packages: []string{"hooklock/..."},
		But: append([]string{"hooklock/cmd/...", "hooklock/etcdlock/diagnose", "hooklock/etcdlock/tend"},
			around...),
		Never: []string{"hooklock/etcdlock/diagnose", "hooklock/etcdlock/tend"},
		Why: "a diagnosis, and work on etcd's members, are for a person who asks: what runs does not depend on " +
			"them",
	},
	{
		Packages: []string{"hooklock/etcdlock", "hooklock/etcdlock/link", "hooklock/etcdlock/diagnose",
			"hooklock/etcdlock/tend"},
		Never: []string{"github.com/valyala/fasthttp/...", "hooklock/proxy/...", "hooklock/config/...",
			"hooklock/admin/...", "go.etcd.io/etcd/server/..."},
		Why: "the ledger can be imported by any Go service, without a proxy and without a whole etcd server " +
			"coming along",
	},
	{
		Packages: []string{"hooklock/..."},
		But: append([]string{"hooklock/cmd/...", "hooklock/etcdlock/embedded", "hooklock/etcdlock/etcdtest",
			"hooklock/etcdlock/ledgertest"}, around...),
		Never: []string{"go.etcd.io/etcd/server/..."},
		Why: "the etcd server is large, and is one package's affair: etcdlock/embedded starts it, etcdtest " +
			"does so for tests",
	},
	{
		Packages: []string{"hooklock/proxy/..."},
		Never:    []string{"go.etcd.io/...", "hooklock/etcdlock/...", "hooklock/config/...", "hooklock/admin/..."},
		Why: "what may run is decided behind a small interface; the proxy carries deliveries and knows no " +
			"store, no file and no API",
	},
	{
		Packages: []string{"hooklock/proxy", "hooklock/idem/...", "hooklock/etcdlock"},
		Never: []string{"go.opentelemetry.io/otel/sdk/...", "go.opentelemetry.io/otel/exporters/...",
			"hooklock/proxy/telemetry", "hooklock/admin/report"},
		Why: "the code that does the work reports its outcome in its own words; counting, tracing and " +
			"reporting are behind a small interface",
	},
	{
		Packages: []string{"hooklock/admin/report"},
		Only:     []string{"hooklock/idem", "hooklock/admin/client"},
		Why: "the report counts what it is told, in the types of the API's answers, and knows neither the " +
			"proxy that tells it nor the API that shows it",
	},
	{
		Packages: []string{"hooklock/proxy/wire"},
		Only: []string{"golang.org/x/sys/...", "github.com/valyala/fasthttp", "hooklock/idem",
			"hooklock/proxy/connect"},
		Why: "exact bytes need no help; each library here would run on every request",
	},
	{
		Packages: []string{"hooklock/proxy/requests"},
		Never:    []string{"github.com/valyala/fasthttp/...", "hooklock/proxy", "hooklock/proxy/wire"},
		Only: []string{"github.com/minio/minio-go/v7/...", "hooklock/idem", "hooklock/proxy/connect",
			"hooklock/proxy/kept"},
		Why: "it keeps bytes: it knows no route, no order and no ledger, so that parking and the park worker " +
			"can share it; the proxy knows what is kept (proxy/kept), and not where",
	},
	{
		Packages: []string{"hooklock/..."},
		But:      append([]string{"hooklock/cmd/...", "hooklock/proxy/requests"}, around...),
		Never:    []string{"github.com/minio/minio-go/v7/..."},
		Why: "the S3 client belongs to proxy/requests, and comes with parking: deciding, the ledger and the API " +
			"do not",
	},
	{
		Packages: []string{"hooklock/proxy/sender"},
		Own:      []string{"net"}, // crypto/x509, which reads keys, needs it
		Never:    []string{"net/http/...", "github.com/valyala/fasthttp/...", "go.etcd.io/..."},
		Only:     []string{"github.com/golang-jwt/jwt/v5", "github.com/valyala/fastjson", "hooklock/idem/..."},
		Why:      "a signature is verified by a pure function: nothing that a delivery names is ever fetched",
	},
	{
		Packages: []string{"hooklock/..."},
		But:      append([]string{"hooklock/cmd/...", "hooklock/admin/..."}, around...),
		Never:    []string{"hooklock/admin/..."},
		Why:      "the API looks at the hot path, and the hot path does not know that it is looked at",
	},
	{
		Packages: []string{"hooklock/proxy/telemetry/logs"},
		Only:     []string{},
		Why:      "each line of the log goes through here, on every delivery",
	},
	{
		Packages: []string{"hooklock/admin/client"},
		Only:     []string{},
		Why:      "any Go service can import the client, and nothing comes along",
	},
	{
		Packages: []string{"hooklock/config"},
		Never: []string{
			"hooklock/proxy/...", "hooklock/etcdlock/...", "hooklock/admin/...",
			"net/http/...", "github.com/valyala/fasthttp/...", "go.etcd.io/...", "google.golang.org/grpc/...",
		},
		Why: "configuration is values with units and defaults, in the words of idem and naming, which are pure; " +
			"cmd/hooklock makes live objects of them",
	},
	{
		Packages: []string{"hooklock/..."},
		But:      append([]string{"hooklock/cmd/...", "hooklock/config/..."}, around...),
		Never:    []string{"hooklock/config/..."},
		Why: "packages take what they need through their constructors, so that each can be used and tested " +
			"without a file",
	},
	{
		Packages: []string{"hooklock/..."},
		But:      append([]string{"hooklock/cmd/..."}, around...),
		Never:    []string{"hooklock/cmd/..."},
		Why:      "cmd/hooklock is the only package that knows every other package, and nobody knows it",
	},
	{
		Packages: []string{"hooklock/..."},
		But: append([]string{"hooklock/proxy/wiretest", "hooklock/etcdlock/etcdtest",
			"hooklock/etcdlock/ledgertest"}, around...),
		Never: []string{
			"hooklock/proxy/wiretest", "hooklock/etcdlock/etcdtest", "hooklock/etcdlock/ledgertest", "testing",
			"go.uber.org/goleak", "pgregory.net/rapid", "github.com/anishathalye/porcupine",
			"github.com/rogpeppe/go-internal/...", "github.com/invopop/jsonschema",
		},
		Why: "what helps tests is not shipped",
	},
}

// Broken returns a sentence for each arrow in packages that a rule forbids.
func Broken(packages []Package, rules []Rule) []string {
	var broken []string
	for _, p := range packages {
		for _, r := range rules {
			if coversAny(r.Packages, p.ImportPath) && !coversAny(r.But, p.ImportPath) {
				broken = append(broken, r.brokenBy(p)...)
			}
		}
	}
	return broken
}

func (r *Rule) brokenBy(p Package) []string {
	var broken []string
	for _, reached := range p.Deps {
		if !coversAny(r.Never, reached) {
			continue
		}
		how := "reaches"
		if slices.Contains(p.Imports, reached) {
			how = "imports"
		}
		broken = append(broken, fmt.Sprintf("%s %s %s: %s", p.ImportPath, how, reached, r.Why))
	}
	for _, path := range p.Imports {
		if coversAny(r.Own, path) {
			broken = append(broken, fmt.Sprintf("%s imports %s: %s", p.ImportPath, path, r.Why))
		}
		if r.Only != nil && !standard(path) && !coversAny(r.Only, path) {
			broken = append(broken, fmt.Sprintf("%s imports %s, which is not one of %v: %s", p.ImportPath, path, r.Only,
				r.Why))
		}
	}
	return broken
}
