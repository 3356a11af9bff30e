package renewal

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"hooklock/test/testkit"
)

// nodeLibrary is a library of a sender that publishes none for Go. script ends with
// accept(boolean); it has the delivery as d.
type nodeLibrary struct {
	library
	pack, script string
}

func nodeLibraries() []nodeLibrary {
	return []nodeLibrary{
		{library{name: "HubSpot's api-client", preset: "hubspot"}, "@hubspot/api-client@14",
			`const { Signature } = require("@hubspot/api-client");
accept(Signature.isValid({ signatureVersion: "v3", signature: d.headers["x-hubspot-signature-v3"], timestamp: Number(d.headers["x-hubspot-request-timestamp"]),
  method: d.method, url: d.url, requestBody: d.body, clientSecret: d.secret }))`},
		{library{name: "Zoom's rivet", preset: "zoom", ageless: true}, "@zoom/rivet@0.4",
			`const { AwsLambdaReceiver } = require("@zoom/rivet/meetings");
console.debug = () => {};
const receiver = new AwsLambdaReceiver({ webhooksSecretToken: d.secret });
receiver.init({ eventEmitter: { emit: async () => {} } });
receiver.start()({ headers: d.headers, body: d.body }, {}).then(answer => accept(answer.statusCode === 200))`},
	}
}

const nodeHead = `const d = JSON.parse(require("fs").readFileSync(0, "utf8"));
const accept = yes => console.log(yes ? "accepted" : "refused");
`

// byNode installs the package with npm and asks it in a process of its own. Without Node, or a
// registry, the test is skipped.
func byNode(t *testing.T, l *nodeLibrary) verify {
	t.Helper()
	node, npm, dir := testkit.Program(t, "node"), testkit.Program(t, "npm"), t.TempDir()
	if out, err := exec.Command(npm, "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", dir,
		l.pack).CombinedOutput(); err != nil {
		t.Skipf("npm cannot install %s: %v\n%s", l.pack, err, out)
	}
	return func(secret string, r *http.Request, body []byte) error {
		headers := map[string]string{}
		for name, values := range r.Header {
			headers[strings.ToLower(name)] = strings.Join(values, ", ")
		}
		delivery, err := json.Marshal(map[string]any{"method": r.Method, "url": "https://hooks.example.com" +
			r.RequestURI, "headers": headers, "body": string(body), "secret": secret})
		if err != nil {
			return err
		}
		c := exec.CommandContext(r.Context(), node, "-e", nodeHead+l.script)
		c.Dir, c.Stdin = dir, bytes.NewReader(delivery)
		out, err := c.CombinedOutput()
		if err == nil && strings.TrimSpace(string(out)) == "accepted" {
			return nil
		}
		return errors.New(string(out))
	}
}

func TestTheLibrariesOfSendersForNodeAcceptWhatIsRenewed(t *testing.T) {
	for _, l := range nodeLibraries() {
		t.Run(l.name, func(t *testing.T) {
			l.verify = byNode(t, &l)
			l.check(t)
		})
	}
}
